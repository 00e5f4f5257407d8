/*
 * json_reader.h - reads JSON (RFC 8259) in place: no tree, no allocation.
 *
 * A value is a piece of the text, which the caller keeps. The text comes from a server that is not
 * trusted: it is checked whole once, nesting is bounded, and after that reading cannot fail but for
 * a different type.
 */
#ifndef DARKROOM_LOADGEN_LOAD_JSON_READER_H
#define DARKROOM_LOADGEN_LOAD_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_json {
	const char *at, *end;
};

/* A member of an object or an element of an array; the name is as written, between its quotes, and
 * NULL in arrays. */
struct load_json_item {
	const char *name;
	size_t name_length;
	struct load_json value;
};

/* Checks that data[0..length) is one JSON value, and makes *value that. */
bool load_json_parse(struct load_json *value, const char *data, size_t length);

bool load_json_is_object(const struct load_json *value);
bool load_json_is_array(const struct load_json *value);

/*
 * Walks through an object or an array (anything else is empty): *item begins zeroed and is changed
 * by the call. False at the end.
 */
bool load_json_next(const struct load_json *container, struct load_json_item *item);

/* Finds a member whose name needs no escapes. */
bool load_json_member(const struct load_json *object, const char *name, struct load_json *value);

/* A non-negative integer without fraction and exponent, up to 2^53. */
bool load_json_uint(const struct load_json *value, uint64_t *n);

/* A string, unescaped and zero-terminated; false if it has anything but ASCII, a U+0000, or not
 * enough room. */
bool load_json_ascii(const struct load_json *value, char *buffer, size_t size);

#endif

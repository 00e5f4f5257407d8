/*
 * json_reader.h - the few look-ups in JSON (RFC 8259) that the store and darkroom-load need.
 *
 * A value is a pointer into the text, which the caller keeps; there is no tree and no allocation.
 * The text is not trusted: it is checked whole before the first look-up. Any thread.
 */
#ifndef DARKROOM_BASE_JSON_READER_H
#define DARKROOM_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value that is the whole text, or NULL if the text is not JSON or is nested more than
 * 32 levels deep. A zero byte must follow the text. */
const char *json_reader_check(const char *text, size_t length);

/* Returns the value after `value` in an array or object, the first one after NULL, and NULL at the
 * end. A container of another type has no values. */
const char *json_reader_next(const char *container, const char *value);

/* The same for an object, with the member's name of printable ASCII. A member with another name is
 * the end. */
const char *json_reader_next_named(const char *object, const char *value, char *name, size_t size);

/* Returns an object's first member of this name, which needs no escapes, or NULL. */
const char *json_reader_member(const char *object, const char *name);

/* Returns the end of a value, behind its last character. */
const char *json_reader_end(const char *value);

/* Reads an integer from 0 to 2^53 without fraction and exponent. `value` may be NULL. */
bool json_reader_uint(const char *value, uint64_t *n);

/* Reads a number. `value` may be NULL. The locale's decimal point must be ".". */
bool json_reader_double(const char *value, double *x);

/* Reads a string of printable ASCII, without escapes and zero-terminated. `value` may be NULL. */
bool json_reader_ascii(const char *value, char *buffer, size_t size);

#endif

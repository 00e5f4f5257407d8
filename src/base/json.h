/*
 * json.h - writes JSON into a text. Commas and nesting are kept right, strings are escaped.
 *
 * darkroom writes JSON only in these few shapes (json_reader.h reads it). A writer of one page
 * needs no allocation per answer, which no library for JSON offers. A writer belongs to one thread
 * at a time.
 */
#ifndef DARKROOM_BASE_JSON_H
#define DARKROOM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* Begins as { .text = ... }. */
struct json {
	struct text *text; /* borrowed */
	bool need_comma;
};

/* name is NULL in arrays and at the top. It is not escaped: it must be a constant of ours. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
/* Writes a value that is JSON already. */
void json_raw(struct json *j, const char *name, const char *data, size_t length);
/* Invalid UTF-8 in the value becomes U+FFFD. */
void json_string(struct json *j, const char *name, const char *value);
void json_string_n(struct json *j, const char *name, const char *value, size_t length);
void json_uint(struct json *j, const char *name, uint64_t value);
void json_ms(struct json *j, const char *name, uint64_t ns);      /* as text_ms() */
void json_double(struct json *j, const char *name, double value); /* not finite: null */
void json_bool(struct json *j, const char *name, bool value);

/* Returns the length of the well-formed UTF-8 sequence at s[0..n), or 0 (RFC 3629: no overlong
 * forms, surrogates, or code points above U+10FFFF). n >= 1. */
size_t json_utf8_length(const unsigned char *s, size_t n);

#endif

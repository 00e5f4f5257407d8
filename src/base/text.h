/*
 * text.h - bounded text building, and JSON on top of it.
 *
 * JSON is written, never read, by darkroom, and only in these few shapes; a writer of one page over
 * a fixed buffer needs no allocation per answer, which no library for JSON offers.
 */
#ifndef DARKROOM_BASE_TEXT_H
#define DARKROOM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A buffer that fills up: the data is the caller's, or grows in memory of the pool if growable.
 * Always terminated by a zero byte beyond length. Once overflowed it takes nothing more. */
struct text {
	char *data;
	size_t length;
	size_t size;
	size_t size_max; /* grows up to this; == size: never */
	bool overflowed;
};

/* In the caller's memory; size >= 1. */
void text_init(struct text *t, char *data, size_t size);

/* Growable up to size_max bytes, freed by text_fini. */
void text_init_growable(struct text *t, size_t size_max);
void text_fini(struct text *t);

void text_put(struct text *t, const char *data, size_t length);
static inline void text_puts(struct text *t, const char *string)
{
	text_put(t, string, strlen(string)); /* known where the string is */
}

void text_uint(struct text *t, uint64_t value);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_ms(struct text *t, uint64_t ns); /* in milliseconds, with three decimals */

/* ---- JSON: commas and nesting are kept right; strings are escaped, invalid UTF-8 becomes U+FFFD
 * ---- */

struct json {
	struct text *text;
	bool need_comma;
};

void json_init(struct json *j, struct text *t);

/* name is NULL inside arrays and at the top; it stands there as it is, so it is our own word and
 * nobody else's. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *name, const char *value);
void json_string_n(struct json *j, const char *name, const char *value, size_t length);
void json_uint(struct json *j, const char *name, uint64_t value);
void json_ms(struct json *j, const char *name, uint64_t ns);      /* as text_ms() */
void json_double(struct json *j, const char *name, double value); /* finite; else null */
void json_bool(struct json *j, const char *name, bool value);

#endif

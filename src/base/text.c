/*
 * text.c - bounded text building, and JSON on top of it.
 *
 * Knows nothing of what the text is for. A text belongs to one thread at a time.
 */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pool.h"

#define GROWTH_MIN                                                                            \
	4096 /* bytes that a growable text has at first: the pool's smallest buffer, and most \
	        answers fit */

static const char replacement_character[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* ---- text ---- */

void text_init(struct text *t, char *data, size_t size)
{
	assert(size >= 1);
	*t = (struct text){ .data = data, .size = size, .size_max = size };
	data[0] = '\0';
}

/* The empty growable text has size 0 and data of its own nowhere: "" until the first byte comes. */
static char nothing[1];

void text_init_growable(struct text *t, size_t size_max)
{
	assert(size_max >= 1);
	*t = (struct text){ .data = nothing, .size_max = size_max };
}

void text_fini(struct text *t)
{
	if (t->data != nothing)
		pool_put(t->data);
	*t = (struct text){ .data = nothing };
}

static bool text_grow(struct text *t, size_t length)
{
	size_t size = t->size ? t->size : GROWTH_MIN, got;
	char *data;

	if (t->overflowed || t->size_max <= t->length || length >= t->size_max - t->length)
		goto overflow;
	while (size <= t->length + length)
		size = size > t->size_max / 2 ? t->size_max : size * 2;
	if (size > t->size_max)
		size = t->size_max;
	data = pool_get_sized(size, &got);
	if (!data)
		goto overflow;
	memcpy(data, t->data, t->length + 1);
	if (t->data != nothing)
		pool_put(t->data);
	t->data = data;
	t->size = got < t->size_max ? got : t->size_max;
	return true;
overflow:
	t->overflowed = true;
	return false;
}

/* Makes room for length more bytes and the zero; false and overflowed if there is none. */
static inline bool text_reserve(struct text *t, size_t length)
{
	/* If there is anything, there is room for the zero. */
	return (length < t->size - t->length && !t->overflowed) || text_grow(t, length);
}

void text_put(struct text *t, const char *data, size_t length)
{
	if (length == 0 || !text_reserve(t, length))
		return;
	memcpy(t->data + t->length, data, length);
	t->length += length;
	t->data[t->length] = '\0';
}

void text_uint(struct text *t, uint64_t value)
{
	char digits[20], *first = digits + sizeof digits;

	do
		*--first = (char)('0' + value % 10);
	while (value /= 10);
	text_put(t, first, (size_t)(digits + sizeof digits - first));
}

void text_printf(struct text *t, const char *format, ...)
{
	size_t room = t->length < t->size && !t->overflowed ? t->size - t->length : 0;
	va_list args;

	va_start(args, format);
	int length = vsnprintf(room ? t->data + t->length : NULL, room, format, args);
	va_end(args);
	if (length >= 0 && (size_t)length < room) {
		t->length += (size_t)length;
		return;
	}
	if (room)
		t->data[t->length] = '\0';
	if (length < 0) {
		t->overflowed = true;
		return;
	}
	if (length == 0 || !text_reserve(t, (size_t)length))
		return;
	va_start(args, format);
	vsnprintf(t->data + t->length, (size_t)length + 1, format, args);
	va_end(args);
	t->length += (size_t)length;
}

void text_ms(struct text *t, uint64_t ns)
{
	unsigned us = (unsigned)(ns / 1000 % 1000);
	const char fraction[] = { '.', (char)('0' + us / 100), (char)('0' + us / 10 % 10),
		                  (char)('0' + us % 10) };

	text_uint(t, ns / 1000000);
	text_put(t, fraction, sizeof fraction);
}

/* ---- JSON ---- */

void json_init(struct json *j, struct text *t)
{
	*j = (struct json){ .text = t };
}

/*
 * Length of the well-formed UTF-8 sequence at s[0..n), 0 if there is none (RFC 3629: neither
 * overlong forms nor surrogates nor anything above U+10FFFF).
 */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	unsigned char low = 0x80, high = 0xBF; /* range of the second byte */
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xC2 || s[0] > 0xF4)
		return 0;
	length = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	if (length > n)
		return 0;
	if (s[0] == 0xE0)
		low = 0xA0;
	else if (s[0] == 0xED)
		high = 0x9F;
	else if (s[0] == 0xF0)
		low = 0x90;
	else if (s[0] == 0xF4)
		high = 0x8F;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	return length;
}

static void json_escape(struct text *t, unsigned char c)
{
	static const char shorts[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
	const char *found = c ? strchr(shorts, c) : NULL;
	char out[8];

	if (found) {
		out[0] = '\\';
		out[1] = letters[found - shorts];
		text_put(t, out, 2);
	} else {
		snprintf(out, sizeof out, "\\u%04x", (unsigned)c);
		text_put(t, out, 6);
	}
}

static void json_quote(struct text *t, const char *value, size_t length)
{
	const unsigned char *s = (const unsigned char *)value;
	size_t i = 0, plain = 0; /* s[plain..i) needs no change and is not written yet */

	text_put(t, "\"", 1);
	while (i < length) {
		if (s[i] >= 0x20 && s[i] < 0x7F && s[i] != '"' && s[i] != '\\') {
			i++; /* nearly all there ever is */
			continue;
		}
		size_t step = utf8_length(s + i, length - i);

		if (step > 1) {
			i += step;
			continue;
		}
		text_put(t, value + plain, i - plain);
		if (step == 0)
			text_puts(t, replacement_character);
		else
			json_escape(t, s[i]);
		plain = ++i;
	}
	text_put(t, value + plain, i - plain);
	text_put(t, "\"", 1);
}

/* What stands before any value: a comma if it is not the first here, and its name. */
static void json_begin(struct json *j, const char *name)
{
	if (j->need_comma)
		text_put(j->text, ",\"", name ? 2 : 1);
	else if (name)
		text_put(j->text, "\"", 1);
	if (name) {
		debug_assert(!strpbrk(name, "\"\\"));
		text_puts(j->text, name);
		text_put(j->text, "\":", 2);
	}
	j->need_comma = true;
}

void json_object(struct json *j, const char *name)
{
	json_begin(j, name);
	text_put(j->text, "{", 1);
	j->need_comma = false;
}

void json_object_end(struct json *j)
{
	text_put(j->text, "}", 1);
	j->need_comma = true;
}

void json_array(struct json *j, const char *name)
{
	json_begin(j, name);
	text_put(j->text, "[", 1);
	j->need_comma = false;
}

void json_array_end(struct json *j)
{
	text_put(j->text, "]", 1);
	j->need_comma = true;
}

void json_string(struct json *j, const char *name, const char *value)
{
	json_string_n(j, name, value, strlen(value));
}

void json_string_n(struct json *j, const char *name, const char *value, size_t length)
{
	json_begin(j, name);
	json_quote(j->text, value, length);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
	json_begin(j, name);
	text_uint(j->text, value);
}

void json_ms(struct json *j, const char *name, uint64_t ns)
{
	json_begin(j, name);
	text_ms(j->text, ns);
}

void json_double(struct json *j, const char *name, double value)
{
	json_begin(j, name);
	if (isfinite(value))
		text_printf(j->text, "%.9g",
		            value); /* no locale is ever set: the point is a point */
	else
		text_puts(j->text, "null");
}

void json_bool(struct json *j, const char *name, bool value)
{
	json_begin(j, name);
	text_puts(j->text, value ? "true" : "false");
}

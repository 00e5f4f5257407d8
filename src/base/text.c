/*
 * text.c - appends to bounded texts. Knows nothing of what they are for.
 *
 * A text belongs to one thread at a time.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "pool.h"

/* First size of a growable text: the smallest buffer of the pool. Most answers fit. */
#define GROWTH_MIN 4096

void text_init(struct text *t, char *data, size_t size)
{
	assert(size >= 1);
	*t = (struct text){ .data = data, .size = size, .size_max = size };
	data[0] = '\0';
}

/* The data of an empty growable text, which has size 0. */
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

/* Makes room for length more bytes and the zero. False: there is none, and the text overflows. */
static inline bool text_reserve(struct text *t, size_t length)
{
	/* A text that has a buffer has room for the zero. */
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

struct document *document_new(struct text *t)
{
	struct document *d = t->overflowed ? NULL : malloc(sizeof *d + t->length);

	if (d) {
		d->references = 1;
		d->length = t->length;
		memcpy(d->data, t->data, t->length);
	}
	text_fini(t);
	return d;
}

void document_drop(struct document *d)
{
	if (d && --d->references == 0)
		free(d);
}

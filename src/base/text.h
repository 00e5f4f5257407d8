/*
 * text.h - bounded texts: strings that are built by appending.
 */
#ifndef DARKROOM_BASE_TEXT_H
#define DARKROOM_BASE_TEXT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The data is in memory of the caller, or of the pool if the text is growable. A zero byte follows
 * it. A text that has overflowed takes nothing more. */
struct text {
	char *data;
	size_t length;
	size_t size;
	size_t size_max; /* bound of growth; == size: fixed */
	bool overflowed;
};

/* Begins an empty text in the caller's memory; size >= 1. */
void text_init(struct text *t, char *data, size_t size);

/* An empty text of that many bytes, which ends with the block: struct text t = TEXT_LOCAL(256); */
#define TEXT_LOCAL(bytes)                                                         \
	{                                                                         \
		.data = (char[bytes]){ "" }, .size = (bytes), .size_max = (bytes) \
	}

/* Begins an empty text that grows up to size_max bytes; the caller calls text_fini(). */
void text_init_growable(struct text *t, size_t size_max);
void text_fini(struct text *t);

void text_put(struct text *t, const char *data, size_t length);
static inline void text_puts(struct text *t, const char *string)
{
	text_put(t, string, strlen(string)); /* inline: lengths of constants are known */
}

void text_uint(struct text *t, uint64_t value);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_ms(struct text *t, uint64_t ns); /* as milliseconds with three decimals */

/* Appends why something is refused, as text_printf(). t may be NULL. Returns -EINVAL. */
#define text_refuse(t, ...) ((t) ? (text_printf(t, __VA_ARGS__), -EINVAL) : -EINVAL)

/* Returns what follows a noun behind the number. */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Data that several readers send. One thread has all of them. */
struct document {
	unsigned references;
	size_t length;
	char data[];
};

/* Makes one of a growable text, which ends, with one reference. Returns NULL if the text has
 * overflowed or there is no memory. */
struct document *document_new(struct text *t);
void document_drop(struct document *d); /* gives a reference back; NULL is ignored */

#endif

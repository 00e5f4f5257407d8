/* s3_list.c - finds a few elements in XML that is never nested in a way that matters. Any thread.
 */
#include "s3_list.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/"

static const char *find(const char *at, const char *end, const char *what)
{
	return memmem(at, (size_t)(end - at), what, strlen(what));
}

bool s3_list_begin(struct s3_list *l, const char *data, size_t length)
{
	const char *end = data + length;

	*l = (struct s3_list){ .at = find(data, end, "<ListBucketResult"),
		               .end = find(data, end, "</ListBucketResult>") };
	if (!l->at || !l->end || l->at > l->end)
		return false;
	bool is_whole = find(l->at, l->end, "<IsTruncated>false</IsTruncated>") != NULL;

	l->is_truncated = find(l->at, l->end, "<IsTruncated>true</IsTruncated>") != NULL;
	return is_whole != l->is_truncated;
}

/* Writes the character of an entity such as "&amp;" or "&#x20;", which the length covers, in UTF-8.
 * Returns its bytes; 0 for an entity that no key needs. */
static size_t read_entity(const char *text, size_t length, char to[4])
{
	static const char *const names[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&apos;" };
	char entity[sizeof "&#1114111;"] = "";
	unsigned code = 0;

	memcpy(entity, text, length < sizeof entity ? length : 0);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(names[i], entity) == 0)
			code = (unsigned char)"&<>\"'"[i];
	if (!code)
		(void)sscanf(entity, entity[2] == 'x' ? "&#x%6x;" : "&#%7u;", &code);
	if (code < 0x80) {
		to[0] = (char)code;
		return code != 0;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n; --i > 0; code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)(0xf00 >> n | code); /* RFC 3629, 3 */
	return code <= 0xffu >> (n + 1) ? n : 0;
}

/* Copies a text without its entities. Returns false if it is too long, or has others. */
static bool copy_text(const char *at, const char *end, char *to, size_t size)
{
	size_t n = 0;

	for (; at < end; at++) {
		const char *stop = *at == '&' ? memchr(at, ';', (size_t)(end - at)) : NULL;
		char next[4] = { *at };
		size_t length = stop ? read_entity(at, (size_t)(stop + 1 - at), next) : *at != '\0';

		if (!length || n + length >= size)
			return false;
		memcpy(to + n, next, length);
		n += length;
		at = stop ? stop : at;
	}
	to[n] = '\0';
	return true;
}

/* Copies the content of the next element, "" if it cannot be. Returns what follows, or NULL if
 * there is no such element: then the content is "". */
static const char *take(const char *at, const char *end, const char *begin, const char *finish,
                        char *content, size_t size)
{
	const char *first = find(at, end, begin), *last = first ? find(first, end, finish) : NULL;

	if (!last || !copy_text(first + strlen(begin), last, content, size))
		content[0] = '\0';
	return last;
}

bool s3_list_next(struct s3_list *l, struct s3_listed *next)
{
	const char *at = take(l->at, l->end, "<Key>", "</Key>", next->name, S3_NAME_MAX);
	char date[32], size[24], more; /* "2026-11-23T02:38:08.000Z" */
	struct tm tm = { .tm_sec = 0 };

	if (!at)
		return false;
	const char *stop = find(at, l->end, "</Contents>"), *end = stop ? stop : at;

	(void)take(at, end, "<LastModified>", "</LastModified>", date, sizeof date);
	(void)take(at, end, "<Size>", "</Size>", size, sizeof size);
	(void)take(at, end, "<ETag>", "</ETag>", next->etag, sizeof next->etag);
	l->at = at;
	next->is_plain = strspn(next->name, PLAIN) == strlen(next->name);
	next->modified = strptime(date, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
	if (sscanf(size, "%20" SCNu64 "%c", &next->size, &more) != 1)
		next->size = UINT64_MAX;
	return true;
}

bool s3_list_is_right(const char *data, size_t length, const char *of_all, const char *prefix,
                      const char *after)
{
	struct s3_listed listed[2]; /* the last one and the next one, in turns */
	size_t above = strlen(of_all);
	struct s3_list l;
	unsigned n = 0;

	if (!s3_list_begin(&l, data, length))
		return false;
	for (; s3_list_next(&l, &listed[n % 2]); n++) {
		const char *name = listed[n % 2].name, *key = name + above;

		if (strncmp(name, of_all, above) != 0 ||
		    strncmp(key, prefix, strlen(prefix)) != 0 || strcmp(key, after) <= 0)
			return false;
		after = key;
	}
	return n || !l.is_truncated;
}

void s3_get_code(const char *data, size_t length, char *code, size_t size)
{
	(void)take(data, data + length, "<Code>", "</Code>", code, size);
	if (strspn(code, PLAIN) != strlen(code))
		code[0] = '\0';
}

/* s3_list.c - finds a few elements in XML that is never nested in a way that matters. Any thread.
 */
#include "s3_list.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* Returns the character of an entity such as "&amp;" or "&#x20;", which the length covers; 0 for
 * one that no key needs. */
static char read_entity(const char *text, size_t length)
{
	static const char *const names[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&apos;" };
	char entity[8] = "";
	unsigned code = 0;

	memcpy(entity, text, length < sizeof entity ? length : 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i], entity) == 0)
			return "&<>\"'"[i];
	return sscanf(entity, entity[2] == 'x' ? "&#x%2x;" : "&#%3u;", &code) == 1 && code < 0x80
	               ? (char)code
	               : 0;
}

/* Copies a text without its entities. Returns false if it is too long, or has others. */
static bool copy_text(const char *at, const char *end, char *to, size_t size)
{
	size_t n = 0;

	for (; at < end && n + 1 < size; at++, n++) {
		const char *stop = *at == '&' ? memchr(at, ';', (size_t)(end - at)) : NULL;

		to[n] = stop ? read_entity(at, (size_t)(stop + 1 - at)) : *at;
		at = stop ? stop : at;
		if (!to[n])
			break;
	}
	to[n] = '\0';
	return at == end;
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

bool s3_list_next(struct s3_list *l, char key[S3_NAME_MAX])
{
	const char *at = take(l->at, l->end, "<Key>", "</Key>", key, S3_NAME_MAX);
	char date[32], size[24], more; /* "2026-11-23T02:38:08.000Z" */
	struct tm tm = { .tm_sec = 0 };

	if (!at)
		return false;
	const char *stop = find(at, l->end, "</Contents>"), *end = stop ? stop : at;

	(void)take(at, end, "<LastModified>", "</LastModified>", date, sizeof date);
	(void)take(at, end, "<Size>", "</Size>", size, sizeof size);
	(void)take(at, end, "<ETag>", "</ETag>", l->etag, sizeof l->etag);
	l->at = at;
	l->is_plain = strspn(key, PLAIN) == strlen(key);
	l->modified = strptime(date, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
	if (sscanf(size, "%20" SCNu64 "%c", &l->size, &more) != 1)
		l->size = UINT64_MAX;
	return true;
}

bool s3_list_is_right(const char *data, size_t length, const char *prefix, const char *after)
{
	char key[2][S3_NAME_MAX]; /* the last one and the next one, in turns */
	struct s3_list l;
	unsigned n = 0;

	if (!s3_list_begin(&l, data, length))
		return false;
	for (; s3_list_next(&l, key[n % 2]); n++, after = key[(n - 1) % 2])
		if (strncmp(key[n % 2], prefix, strlen(prefix)) != 0 ||
		    strcmp(key[n % 2], after) <= 0)
			return false;
	return n || !l.is_truncated;
}

void s3_get_code(const char *data, size_t length, char *code, size_t size)
{
	code[0] = '\0';
	(void)take(data, data + length, "<Code>", "</Code>", code, size);
	if (strspn(code, PLAIN) != strlen(code))
		code[0] = '\0';
}

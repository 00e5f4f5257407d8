/* s3_list.c - finds a few elements in XML that is never nested in a way that matters. Any thread.
 */
#include "s3_list.h"

#include <stdint.h>
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

/* Reads the time of an element, from its key on. */
static time_t read_modified(const char *at, const char *end)
{
	static const char begin[] = "<LastModified>";
	const char *stop = find(at, end, "</Contents>");
	const char *text = stop ? find(at, stop, begin) : NULL;
	char date[20]; /* 2026-11-23T02:38:08 */
	struct tm tm = { .tm_sec = 0 };

	if (!text || stop - text < (ptrdiff_t)(sizeof begin + sizeof date))
		return 0;
	memcpy(date, text + sizeof begin - 1, sizeof date - 1);
	date[sizeof date - 1] = '\0';
	const char *rest = strptime(date, "%Y-%m-%dT%H:%M:%S", &tm);

	return rest && !*rest ? timegm(&tm) : 0;
}

bool s3_list_next(struct s3_list *l, char *key, size_t size)
{
	static const char begin[] = "<Key>", finish[] = "</Key>";

	for (;;) {
		const char *at = find(l->at, l->end, begin);
		const char *end = at ? find(at, l->end, finish) : NULL;

		if (!end)
			return false;
		at += sizeof begin - 1;
		l->at = end;
		size_t length = (size_t)(end - at);

		if (length == 0 || length >= size)
			continue;
		memcpy(key, at, length);
		key[length] = '\0';
		if (strspn(key, PLAIN) != length)
			continue;
		l->modified = read_modified(end, l->end);
		return true;
	}
}

void s3_get_code(const char *data, size_t length, char *code, size_t size)
{
	static const char begin[] = "<Code>", finish[] = "</Code>";
	const char *end_of_data = data + length, *at = find(data, end_of_data, begin);
	const char *end = at ? find(at, end_of_data, finish) : NULL;

	code[0] = '\0';
	if (!end)
		return;
	at += sizeof begin - 1;
	size_t n = (size_t)(end - at);

	if (n >= size)
		return;
	memcpy(code, at, n);
	code[n] = '\0';
	if (strspn(code, PLAIN) != n) /* it is logged */
		code[0] = '\0';
}

bool s3_has_code(const char *data, size_t length, const char *code)
{
	char found[64];

	s3_get_code(data, length, found, sizeof found);
	return strcmp(found, code) == 0;
}

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

/* Copies the content of the next element, "" if it is too long or not plain. Returns what follows,
 * or NULL if there is no such element. */
static const char *take(const char *at, const char *end, const char *begin, const char *finish,
                        char *content, size_t size)
{
	const char *first = find(at, end, begin), *last = first ? find(first, end, finish) : NULL;

	content[0] = '\0';
	if (!last)
		return NULL;
	first += strlen(begin);
	size_t length = (size_t)(last - first);

	if (length < size) {
		memcpy(content, first, length);
		content[length] = '\0';
		if (strspn(content, PLAIN) != length)
			content[0] = '\0';
	}
	return last;
}

bool s3_list_next(struct s3_list *l, char *key, size_t size)
{
	const char *end;

	while ((end = take(l->at, l->end, "<Key>", "</Key>", key, size))) {
		l->at = end;
		if (!key[0])
			continue;
		l->modified = read_modified(end, l->end);
		return true;
	}
	return false;
}

void s3_get_code(const char *data, size_t length, char *code, size_t size)
{
	(void)take(data, data + length, "<Code>", "</Code>", code, size);
}

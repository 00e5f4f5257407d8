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

/* Returns the time in an element such as <LastModified>2009-10-12T17:50:30.000Z</LastModified>, or
 * 0. */
static time_t read_modified(const char *at, const char *end)
{
	static const char begin[] = "<LastModified>";
	char text[sizeof "2009-10-12T17:50:30"];
	struct tm t = { .tm_year = 0 };
	const char *from = find(at, end, begin);

	if (!from || (size_t)(end - from) < sizeof begin - 1 + sizeof text)
		return 0;
	memcpy(text, from + sizeof begin - 1, sizeof text - 1);
	text[sizeof text - 1] = '\0';
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);

	return rest && !*rest ? timegm(&t) : 0;
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
		const char *next = find(end, l->end, begin);

		l->modified = read_modified(end, next ? next : l->end);
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

/* head.c - splits field lines, and reads Content-Length, Transfer-Encoding and Connection. Any
 * thread. */
#include "head.h"

#include <string.h>

static void drop(struct slice *s, size_t n)
{
	s->data += n;
	s->length -= n;
}

int head_next(struct slice *rest, struct slice *name, struct slice *value)
{
	const char *lf = rest->length ? memchr(rest->data, '\n', rest->length) : NULL;

	if (!lf)
		return rest->length ? -1 : 0;
	struct slice line = { rest->data, (size_t)(lf - rest->data) };

	drop(rest, line.length + 1);
	if (line.length && line.data[line.length - 1] == '\r')
		line.length--;
	if (line.length == 0)
		return rest->length ? -1 : 0;
	const char *colon = memchr(line.data, ':', line.length);

	if (!colon || memchr(line.data, '\r', line.length))
		return -1;
	*name = (struct slice){ line.data, (size_t)(colon - line.data) };
	drop(&line, name->length + 1);
	*value = slice_trim(line);
	return slice_is_token(*name) ? 1 : -1;
}

bool head_find(struct slice *rest, const char *lower, struct slice *value)
{
	struct slice name;

	while (head_next(rest, &name, value) > 0)
		if (slice_is(name, lower))
			return true;
	return false;
}

/* ---- framing ---- */

void head_framing_init(struct head_framing *f)
{
	memset(f, 0, sizeof *f);
}

/* RFC 9112 6.3: several lengths, or a list of them, have no safe reading. */
static void add_length(struct head_framing *f, struct slice value)
{
	if (f->has_length)
		f->error = "the request has several Content-Length header fields";
	f->has_length = true;
	f->length = 0;
	if (value.length == 0)
		f->error = "Content-Length is empty";
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] < '0' || value.data[i] > '9' ||
		    __builtin_mul_overflow(f->length, 10, &f->length) ||
		    __builtin_add_overflow(f->length, (uint64_t)(value.data[i] - '0'),
		                           &f->length)) {
			f->error = "Content-Length is not a number below 2^64";
			return;
		}
	}
}

/* RFC 9112 6.1 and 7: chunked is the last coding, and occurs once. */
static void add_coding(struct head_framing *f, struct slice value)
{
	struct slice element;

	if (!field_list_next(&value, &element)) {
		f->error = "Transfer-Encoding is empty";
		return;
	}
	do {
		if (f->is_chunked)
			f->error = "Transfer-Encoding has a coding behind chunked";
		else if (slice_is(element, "chunked"))
			f->is_chunked = true;
		else
			f->has_other_coding = true;
	} while (field_list_next(&value, &element));
}

static void add_connection(struct head_framing *f, struct slice value)
{
	struct slice element;

	while (field_list_next(&value, &element)) {
		if (slice_is(element, "close"))
			f->says_close = true;
		else if (slice_is(element, "keep-alive"))
			f->says_keep_alive = true;
	}
}

void head_framing_add(struct head_framing *f, struct slice name, struct slice value)
{
	if (slice_is(name, "content-length"))
		add_length(f, value);
	else if (slice_is(name, "transfer-encoding"))
		add_coding(f, value);
	else if (slice_is(name, "connection"))
		add_connection(f, value);
	if (f->has_length && (f->is_chunked || f->has_other_coding) && !f->error)
		f->error = "the request has both Content-Length and Transfer-Encoding";
}

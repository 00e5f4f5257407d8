/* head_fields.c - splits field lines, and reads Content-Length, Transfer-Encoding and Connection.
 * Any thread. */
#include "head_fields.h"

#include <string.h>

int head_next(struct slice *rest, struct slice *name, struct slice *value)
{
	const char *lf = rest->length ? memchr(rest->data, '\n', rest->length) : NULL;

	if (!lf)
		return rest->length ? -1 : 0;
	struct slice line = { rest->data, (size_t)(lf - rest->data) };

	slice_drop(rest, line.length + 1);
	if (line.length && line.data[line.length - 1] == '\r')
		line.length--;
	if (line.length == 0)
		return rest->length ? -1 : 0;
	const char *colon = memchr(line.data, ':', line.length);

	if (!colon || memchr(line.data, '\r', line.length))
		return -1;
	*name = (struct slice){ line.data, (size_t)(colon - line.data) };
	slice_drop(&line, name->length + 1);
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

/* RFC 9112 6.3: several lengths, or a list of them, have no safe reading. */
static void add_length(struct head_framing *f, struct slice value)
{
	if (f->has_length)
		f->error = "the request has several Content-Length header fields";
	f->has_length = true;
	if (value.length == 0)
		f->error = "Content-Length is empty";
	else if (!field_number(value, &f->length) || f->length == UINT64_MAX)
		f->error = "Content-Length is not a number below 2^64";
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

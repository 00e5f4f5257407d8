/*
 * chunks.c - the chunked transfer coding (RFC 9112 7.1): one line at a time, and content as a
 * whole. Bytes may be cut anywhere.
 *
 * Strict about line ends. Accepts spaces around the semicolon of an extension (BWS, 7.1.1), which
 * llhttp 8.1 does not. Skips extensions and trailer fields after a check of their characters. Any
 * thread.
 */
#include "request.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns whether a character may be in an extension or in the value of a field (RFC 9110 5.5). */
static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && (unsigned char)c != 0x7f);
}

/* Takes a line off the input, without its end. Returns 1; 0 if the line is not complete; or -1 if
 * it has no CR LF behind its text, or is too long. */
static int take_line(struct request *r, size_t length, struct slice *line)
{
	struct slice input = { r->base + r->fed, length - r->fed };
	size_t n = 0;

	while (n < input.length && n <= CHUNKS_LINE_MAX && is_text(input.data[n]))
		n++;
	if (n > CHUNKS_LINE_MAX || (n < input.length && input.data[n] != '\r'))
		return -1;
	if (input.length - n < 2)
		return 0;
	if (input.data[n + 1] != '\n')
		return -1;
	*line = (struct slice){ input.data, n };
	r->fed += n + 2;
	return 1;
}

/* Returns whether extensions begin with their names, and end outside of quotes (7.1.1). */
static bool check_extensions(struct slice s)
{
	bool is_quoted = false;
	size_t i = 0;

	while (i < s.length && is_space(s.data[i]))
		i++;
	if (i == s.length || s.data[i] != ';')
		return s.length == 0;
	for (; i < s.length; i++) {
		if (s.data[i] == '\\' && is_quoted)
			i++;
		else if (s.data[i] == '"')
			is_quoted = !is_quoted;
		if (i >= s.length || s.data[i] != ';' || is_quoted)
			continue;
		while (i + 1 < s.length && is_space(s.data[i + 1]))
			i++;
		if (i + 1 == s.length || !field_is_token_char(s.data[i + 1]))
			return false;
	}
	return !is_quoted;
}

/* Each of these returns NULL or the error. */

static const char *read_size(struct slice line, uint64_t *size)
{
	size_t n = 0;
	int digit;

	for (*size = 0; n < line.length && (digit = field_hex_value(line.data[n])) >= 0; n++) {
		if (*size >> 60)
			return "the size of a chunk is not below 2^64";
		*size = *size * 16 + (unsigned)digit;
	}
	slice_drop(&line, n);
	if (n == 0)
		return "a chunk begins without a size";
	return check_extensions(line) ? NULL : "the extension of a chunk is malformed";
}

static const char *read_trailer(struct slice line)
{
	const char *colon = line.length ? memchr(line.data, ':', line.length) : NULL;

	if (colon && slice_is_token((struct slice){ line.data, (size_t)(colon - line.data) }))
		return NULL;
	return "a trailer field of the chunked body is malformed";
}

static const char *read_line(struct chunks *k, struct slice line)
{
	const char *error = NULL;

	if (k->state == CHUNKS_SIZE) {
		error = read_size(line, &k->left);
		k->state = k->left ? CHUNKS_DATA : CHUNKS_TRAILER;
	} else if (k->state == CHUNKS_DATA_END) {
		error = line.length ? "a chunk is longer than its size" : NULL;
		k->state = CHUNKS_SIZE;
	} else if (line.length) {
		error = read_trailer(line);
	} else {
		k->state = CHUNKS_END;
	}
	return error;
}

/* Takes as much content as is there. Returns 1, 0 if none is there, or -1 if append_body() did. */
static int take_data(struct request *r, size_t length)
{
	struct chunks *k = &r->chunks;
	size_t there = length - r->fed, n = k->left < there ? (size_t)k->left : there;

	if (n == 0)
		return 0;
	if (r->append_body(r->append_body_arg, r->base + r->fed, n))
		return -1;
	r->fed += n;
	k->left -= n;
	if (k->left == 0)
		k->state = CHUNKS_DATA_END;
	return 1;
}

enum request_progress request_feed_chunks(struct request *r, size_t length, struct problem *problem)
{
	struct slice line;

	while (r->chunks.state != CHUNKS_END) {
		bool is_data = r->chunks.state == CHUNKS_DATA;
		int found = is_data ? take_data(r, length) : take_line(r, length, &line);
		const char *error = NULL;

		if (found == 0)
			return REQUEST_MORE;
		if (is_data && found < 0)
			return REQUEST_BAD; /* append_body() has set the problem */
		if (found < 0)
			error = "a line of the chunked body is too long, or does not end with "
				"CR LF";
		else if (!is_data)
			error = read_line(&r->chunks, line);
		if (error) {
			problem_set(problem, 400, "malformed-request", "%s", error);
			return REQUEST_BAD;
		}
	}
	return REQUEST_DONE;
}

/* chunks.c - one byte of a line at a time, and content as a whole. Any thread. */
#include "chunks.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns whether a character may be in an extension or in the value of a field (RFC 9110 5.5). */
static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && (unsigned char)c != 0x7f);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Each step below takes one byte and returns NULL or the error. */

static const char *size_digit(struct chunks *k, char c)
{
	int digit = hex_value(c);

	if (digit < 0)
		return "a chunk begins without a size";
	if (k->left >> 60)
		return "the size of a chunk is not below 2^64";
	k->left = k->left * 16 + (unsigned)digit;
	k->state = CHUNKS_SIZE;
	return NULL;
}

static const char *size_step(struct chunks *k, char c)
{
	if (c == '\r' && k->state == CHUNKS_SIZE)
		k->state = CHUNKS_SIZE_LF;
	else if (c == ';')
		k->state = CHUNKS_EXTENSION_BEGIN;
	else if (is_space(c))
		k->state = CHUNKS_SPACE;
	else if (k->state == CHUNKS_SIZE && hex_value(c) >= 0)
		return size_digit(k, c);
	else
		return "the size of a chunk is malformed";
	return NULL;
}

static const char *extension_step(struct chunks *k, char c)
{
	static const char error[] = "the extension of a chunk is malformed";

	if (k->state == CHUNKS_EXTENSION_BEGIN) {
		if (!is_space(c) && !field_is_token_char(c))
			return error;
		if (!is_space(c))
			k->state = CHUNKS_EXTENSION;
		return NULL;
	}
	if (c == '\r' && !k->is_quoted) {
		k->state = CHUNKS_SIZE_LF;
		return NULL;
	}
	if (!is_text(c))
		return error;
	if (k->is_escaped)
		k->is_escaped = false;
	else if (c == '\\' && k->is_quoted)
		k->is_escaped = true;
	else if (c == '"')
		k->is_quoted = !k->is_quoted;
	else if (c == ';' && !k->is_quoted)
		k->state = CHUNKS_EXTENSION_BEGIN;
	return NULL;
}

static const char *trailer_step(struct chunks *k, char c)
{
	if (c == '\r' && k->state == CHUNKS_TRAILER_BEGIN)
		k->state = CHUNKS_END_LF;
	else if (c == '\r' && k->state == CHUNKS_TRAILER_VALUE)
		k->state = CHUNKS_TRAILER_LF;
	else if (c == ':' && k->state == CHUNKS_TRAILER_NAME)
		k->state = CHUNKS_TRAILER_VALUE;
	else if (k->state == CHUNKS_TRAILER_VALUE ? !is_text(c) : !field_is_token_char(c))
		return "a trailer field of the chunked body is malformed";
	else if (k->state == CHUNKS_TRAILER_BEGIN)
		k->state = CHUNKS_TRAILER_NAME;
	return NULL;
}

static const char *expect(struct chunks *k, char c, char expected, enum chunks_state next)
{
	k->state = next;
	return c == expected ? NULL : "a line of the chunked body does not end with CR LF";
}

static const char *step(struct chunks *k, char c)
{
	switch (k->state) {
	case CHUNKS_SIZE_BEGIN:
		return size_digit(k, c);
	case CHUNKS_SIZE:
	case CHUNKS_SPACE:
		return size_step(k, c);
	case CHUNKS_EXTENSION_BEGIN:
	case CHUNKS_EXTENSION:
		return extension_step(k, c);
	case CHUNKS_SIZE_LF:
		return expect(k, c, '\n', k->left ? CHUNKS_DATA : CHUNKS_TRAILER_BEGIN);
	case CHUNKS_DATA_CR:
		return expect(k, c, '\r', CHUNKS_DATA_LF);
	case CHUNKS_DATA_LF:
		return expect(k, c, '\n', CHUNKS_SIZE_BEGIN);
	case CHUNKS_TRAILER_LF:
		return expect(k, c, '\n', CHUNKS_TRAILER_BEGIN);
	default:
		return trailer_step(k, c);
	}
}

enum chunks_result chunks_feed(struct chunks *k, struct slice input, size_t *used,
                               int (*append)(void *arg, const char *data, size_t length), void *arg,
                               const char **error)
{
	size_t at = 0;

	*error = NULL;
	while (at < input.length) {
		if (k->state == CHUNKS_DATA) {
			size_t rest = input.length - at;
			size_t n = k->left < rest ? (size_t)k->left : rest;

			*used = at;
			if (append(arg, input.data + at, n))
				return CHUNKS_STOPPED;
			at += n;
			k->left -= n;
			if (k->left == 0)
				k->state = CHUNKS_DATA_CR;
			continue;
		}
		char c = input.data[at];

		if (k->state == CHUNKS_END_LF) {
			*used = at + 1;
			*error = expect(k, c, '\n', CHUNKS_END_LF);
			return *error ? CHUNKS_BAD : CHUNKS_DONE;
		}
		*error = step(k, c);
		*used = at;
		if (*error)
			return CHUNKS_BAD;
		at++;
	}
	*used = at;
	return CHUNKS_MORE;
}

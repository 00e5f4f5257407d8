/*
 * response_reader.c - the framing of HTTP/1 responses (RFC 9112).
 *
 * Minimal, but right: what it does not need it skips, what could move the end of a body it checks.
 */
#include "response_reader.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"

#define CHUNK_DIGITS_MAX 15 /* 60 bits: no overflow */
#define LENGTH_MAX (UINT64_C(1) << 60)

void response_reader_init(struct response_reader *r)
{
	*r = (struct response_reader){ .state = LOAD_RESPONSE_HEAD };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Fills in status and version. The line is data[0..length) without its end. */
static bool parse_status_line(struct response_reader *r, const char *line, size_t length)
{
	if (length < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return false;
	r->status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		r->status = r->status * 10 + (line[i] - '0');
	}
	r->keep_alive = line[7] == '1';
	return r->status >= 100 && r->status < 600 && (length == 12 || line[12] == ' ');
}

/* Is word one of the comma-separated members of the value, in any case? */
static bool has_member(const char *value, size_t length, const char *word)
{
	size_t n = strlen(word), i = 0;

	while (i < length) {
		size_t end;

		while (i < length && (is_blank(value[i]) || value[i] == ','))
			i++;
		for (end = i; end < length && value[end] != ','; end++)
			;
		if (end - i >= n && strncasecmp(value + i, word, n) == 0 &&
		    (end - i == n || is_blank(value[i + n]) || value[i + n] == ';'))
			return true;
		i = end;
	}
	return false;
}

struct framing {
	bool has_length, is_chunked, is_bad;
	uint64_t length;
};

static void take_length(struct framing *f, const char *value, size_t length)
{
	uint64_t n = 0;

	if (length == 0)
		f->is_bad = true;
	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9' || n > LENGTH_MAX / 10)
			f->is_bad = true;
		else
			n = n * 10 + (uint64_t)(value[i] - '0');
	}
	if (f->has_length && f->length != n)
		f->is_bad = true;
	f->has_length = true;
	f->length = n;
}

static bool name_is(const char *line, size_t length, const char *name)
{
	return strlen(name) == length && strncasecmp(line, name, length) == 0;
}

static void take_field(struct response_reader *r, struct framing *f, const char *line,
                       size_t length)
{
	const char *colon = memchr(line, ':', length), *value;
	size_t name_length, n;

	if (!colon || colon == line) {
		f->is_bad = true;
		return;
	}
	name_length = (size_t)(colon - line);
	value = colon + 1;
	n = length - name_length - 1;
	while (n > 0 && is_blank(value[0]))
		value++, n--;
	while (n > 0 && is_blank(value[n - 1]))
		n--;
	if (name_is(line, name_length, "content-length"))
		take_length(f, value, n);
	else if (name_is(line, name_length, "transfer-encoding"))
		*(has_member(value, n, "chunked") ? &f->is_chunked : &f->is_bad) = true;
	else if (name_is(line, name_length, "content-type"))
		r->is_jpeg = has_member(value, n, "image/jpeg");
	else if (name_is(line, name_length, "connection"))
		r->keep_alive = !has_member(value, n, "close") &&
		                (r->keep_alive || has_member(value, n, "keep-alive"));
}

/* RFC 9112 6.3, for responses to GET and POST. */
static void choose_body(struct response_reader *r, const struct framing *f)
{
	if (f->is_bad) {
		r->state = LOAD_RESPONSE_BAD;
	} else if (r->status < 200) {
		r->state = LOAD_RESPONSE_HEAD;
	} else if (r->status == 204 || r->status == 304) {
		r->state = LOAD_RESPONSE_DONE;
	} else if (f->is_chunked) {
		r->state = LOAD_RESPONSE_CHUNK_SIZE;
		r->keep_alive = r->keep_alive && !f->has_length;
	} else if (f->has_length) {
		r->state = f->length > 0 ? LOAD_RESPONSE_LENGTH : LOAD_RESPONSE_DONE;
		r->remaining = f->length;
	} else {
		r->state = LOAD_RESPONSE_UNTIL_CLOSE;
		r->keep_alive = false;
	}
}

long response_reader_head(struct response_reader *r, const char *data, size_t length)
{
	struct framing framing = { 0 };
	const char *end = memmem(data, length, "\r\n\r\n", 4), *line = data, *line_end;

	assert(r->state == LOAD_RESPONSE_HEAD);
	if (!end)
		return length >= 7 && memcmp(data, "HTTP/1.", 7) != 0 ? -1 : 0;
	line_end = memchr(line, '\r', (size_t)(end - line) + 1);
	if (!parse_status_line(r, line, (size_t)(line_end - line)))
		return -1;
	while (line_end < end) {
		if (line_end[1] != '\n')
			return -1;
		line = line_end + 2;
		line_end = memchr(line, '\r', (size_t)(end - line) + 1);
		take_field(r, &framing, line, (size_t)(line_end - line));
	}
	choose_body(r, &framing);
	return r->state == LOAD_RESPONSE_BAD ? -1 : (long)(end - data) + 4;
}

static void take_size_digit(struct response_reader *r, char c)
{
	int digit = c >= '0' && c <= '9'   ? c - '0'
	            : c >= 'a' && c <= 'f' ? c - 'a' + 10
	            : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                                   : -1;

	if (digit >= 0 && r->digits < CHUNK_DIGITS_MAX) {
		r->remaining = r->remaining * 16 + (uint64_t)digit;
		r->digits++;
	} else if (digit < 0 && r->digits > 0 && (c == ';' || c == '\r' || is_blank(c))) {
		r->state = LOAD_RESPONSE_CHUNK_EXTENSION;
	} else {
		r->state = LOAD_RESPONSE_BAD;
	}
}

/* One byte of the framing between chunks. */
static void take_framing(struct response_reader *r, char c)
{
	switch (r->state) {
	case LOAD_RESPONSE_CHUNK_SIZE:
		take_size_digit(r, c);
		break;
	case LOAD_RESPONSE_CHUNK_EXTENSION:
		if (c == '\n')
			r->state =
				r->remaining > 0 ? LOAD_RESPONSE_CHUNK_DATA : LOAD_RESPONSE_TRAILER;
		r->line_has_text = false;
		break;
	case LOAD_RESPONSE_CHUNK_END:
		if (c == '\n') {
			r->state = LOAD_RESPONSE_CHUNK_SIZE;
			r->digits = 0;
			r->remaining = 0;
		} else if (c != '\r') {
			r->state = LOAD_RESPONSE_BAD;
		}
		break;
	default:
		assert(r->state == LOAD_RESPONSE_TRAILER);
		if (c == '\n' && !r->line_has_text)
			r->state = LOAD_RESPONSE_DONE;
		else if (c != '\r')
			r->line_has_text = c != '\n';
		break;
	}
}

size_t response_reader_body(struct response_reader *r, const char *data, size_t length,
                            struct text *capture)
{
	size_t used = 0;

	while (used < length && r->state != LOAD_RESPONSE_DONE && r->state != LOAD_RESPONSE_BAD) {
		size_t n = length - used;

		if (r->state != LOAD_RESPONSE_LENGTH && r->state != LOAD_RESPONSE_CHUNK_DATA &&
		    r->state != LOAD_RESPONSE_UNTIL_CLOSE) {
			take_framing(r, data[used++]);
			continue;
		}
		if (r->state != LOAD_RESPONSE_UNTIL_CLOSE && n > r->remaining)
			n = (size_t)r->remaining;
		if (capture)
			text_put(capture, data + used, n);
		used += n;
		r->body_bytes += n;
		if (r->state == LOAD_RESPONSE_UNTIL_CLOSE)
			continue;
		r->remaining -= n;
		if (r->remaining == 0)
			r->state = r->state == LOAD_RESPONSE_LENGTH ? LOAD_RESPONSE_DONE
			                                            : LOAD_RESPONSE_CHUNK_END;
	}
	return used;
}

bool response_reader_eof(struct response_reader *r)
{
	if (r->state == LOAD_RESPONSE_UNTIL_CLOSE)
		r->state = LOAD_RESPONSE_DONE;
	return r->state == LOAD_RESPONSE_DONE;
}

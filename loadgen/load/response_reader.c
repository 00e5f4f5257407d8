/*
 * response_reader.c - llhttp's callbacks, and the checks that llhttp leaves to its user.
 *
 * llhttp 8.1 in strict mode accepts HTTP/0.9 and HTTP/2.0, statuses of fewer than three digits,
 * line ends before the status line, bare line feeds, fields without a name, and a Transfer-Encoding
 * that is empty or does not end in "chunked". All of these are errors here.
 */
#include "response_reader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"

#define HEAD_MAX 16384
#define SECONDS_PER_DAY 86400
#define LENGTH_MAX (UINT64_C(1) << 60) /* sums of lengths cannot overflow */

static int fail(struct response_reader *r, const char *problem)
{
	r->state = RESPONSE_BAD;
	r->problem = problem;
	return HPE_USER;
}

/* ---- llhttp's callbacks ---- */

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
	text_put(&((struct response_reader *)parser->data)->name, at, length);
	return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
	text_put(&((struct response_reader *)parser->data)->value, at, length);
	return 0;
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct response_reader *r = parser->data;
	const char *value = r->value.data;
	bool has_name = r->name.length > 0 || r->name.overflowed;
	bool has_value = r->value.length > 0 || r->value.overflowed;

	/* what is left of a text that did not fit depends on the pieces in which it came */
	if (r->name.overflowed)
		r->name.data[0] = '\0';
	if (r->value.overflowed)
		r->value.data[0] = '\0';
	if (!has_name)
		return fail(r, "header field without a name");
	if (!has_value && strcasecmp(r->name.data, "transfer-encoding") == 0)
		return fail(r, "empty Transfer-Encoding");
	/* parameters may follow the type; trailers do not count */
	if (r->state == RESPONSE_HEAD && strcasecmp(r->name.data, "content-type") == 0)
		r->is_jpeg = strncasecmp(value, "image/jpeg", 10) == 0 && strchr("; \t", value[10]);
	if (r->state == RESPONSE_HEAD && strcasecmp(r->name.data, "location") == 0)
		memcpy(r->location, value, r->value.overflowed ? 1 : r->value.length + 1);
	if (r->state == RESPONSE_HEAD && strcasecmp(r->name.data, "retry-after") == 0)
		r->retry_after_s = (unsigned)strtoul(value, NULL, 10) % SECONDS_PER_DAY;
	r->name.length = r->value.length = 0;
	r->name.data[0] = r->value.data[0] = '\0';
	r->name.overflowed = r->value.overflowed = false;
	return 0;
}

static int on_chunk_header(llhttp_t *parser)
{
	return parser->content_length >= LENGTH_MAX ? fail(parser->data, "chunk size overflow") : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct response_reader *r = parser->data;

	if (r->capture)
		text_put(r->capture, at, length);
	return 0;
}

static int pause_parser(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

/* ---- reading ---- */

static void start_head(struct response_reader *r)
{
	static const llhttp_settings_t settings = {
		.on_header_field = on_header_field,
		.on_header_value = on_header_value,
		.on_header_value_complete = on_header_value_complete,
		.on_headers_complete = pause_parser,
		.on_chunk_header = on_chunk_header,
		.on_body = on_body,
		.on_message_complete = pause_parser,
	};

	llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
	/* RFC 9112 6.3: Transfer-Encoding overrides Content-Length */
	llhttp_set_lenient_chunked_length(&r->parser, 1);
	r->parser.data = r;
	r->head_bytes = 0;
}

void response_reader_init(struct response_reader *r)
{
	/* not memset(): the buffers of names and values are most of the struct */
	r->state = RESPONSE_HEAD;
	r->status = 0;
	r->keep_alive = r->is_jpeg = false;
	r->location[0] = '\0';
	r->retry_after_s = 0;
	r->problem = NULL;
	r->remaining = 0;
	r->last_byte = '\0';
	text_init(&r->name, r->name_data, sizeof r->name_data);
	text_init(&r->value, r->value_data, sizeof r->value_data);
	start_head(r);
}

static bool has_bare_line_feed(struct response_reader *r, const char *data, size_t length)
{
	const char *at = data, *end = data + length;

	for (; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
		if ((at > data ? at[-1] : r->last_byte) != '\r')
			return true;
	r->last_byte = end[-1];
	return false;
}

/* Judges a complete head and chooses how the body ends by RFC 9112 6.3, for GET and POST. */
static void start_body(struct response_reader *r)
{
	const llhttp_t *p = &r->parser;
	bool is_coded = p->flags & F_TRANSFER_ENCODING, has_length = p->flags & F_CONTENT_LENGTH;

	r->status = p->status_code;
	r->state = RESPONSE_BODY;
	/* RFC 9112 6.1: with both, or in HTTP/1.0, the next response could begin elsewhere */
	r->keep_alive =
		llhttp_should_keep_alive(p) && !(is_coded && (has_length || p->http_minor == 0));
	if (p->http_major != 1)
		fail(r, "expected HTTP/1.0 or HTTP/1.1");
	else if (r->status < 100 || r->status > 599 || r->status == 101)
		fail(r, "expected a status from 100 to 599 other than 101");
	else if (is_coded && !(p->flags & F_CHUNKED))
		fail(r, "Transfer-Encoding does not end in \"chunked\"");
	else if (p->content_length >= LENGTH_MAX)
		fail(r, "Content-Length overflow");
	else if (r->status < 200)
		r->state = RESPONSE_HEAD;
	else if (r->status == 204 || r->status == 304 ||
	         (has_length && !is_coded && p->content_length == 0))
		r->state = RESPONSE_DONE;
	else if (has_length && !is_coded)
		r->remaining = p->content_length;
	if (r->state == RESPONSE_HEAD)
		start_head(r);
}

/* The parser has used these bytes of a head. */
static void check_head(struct response_reader *r, const char *data, size_t length, bool is_complete)
{
	bool is_first = r->head_bytes == 0;

	r->head_bytes += length;
	if (is_first && data[0] != 'H')
		fail(r, "line end before the status line");
	else if (r->head_bytes > HEAD_MAX)
		fail(r, "head longer than 16 KiB");
	else if (has_bare_line_feed(r, data, length))
		fail(r, "line feed without carriage return");
	else if (is_complete)
		start_body(r);
}

size_t response_reader_skip(struct response_reader *r, size_t length)
{
	assert(r->state == RESPONSE_BODY && r->remaining > 0);
	if (length >= r->remaining) {
		length = (size_t)r->remaining;
		r->state = RESPONSE_DONE;
	}
	r->remaining -= length;
	return length;
}

/* Lets the parser use data of a head, a chunked body, or one that ends with the connection. */
static size_t parse(struct response_reader *r, const char *data, size_t length)
{
	llhttp_errno_t err = llhttp_execute(&r->parser, data, length);

	if (err == HPE_PAUSED) {
		length = (size_t)(llhttp_get_error_pos(&r->parser) - data);
		llhttp_resume(&r->parser);
	} else if (err != HPE_OK) {
		fail(r, r->problem ? r->problem : llhttp_get_error_reason(&r->parser));
	}
	if (r->state == RESPONSE_HEAD)
		check_head(r, data, length, err == HPE_PAUSED);
	else if (r->state == RESPONSE_BODY && err == HPE_PAUSED)
		r->state = RESPONSE_DONE;
	return length;
}

size_t response_reader_read(struct response_reader *r, const char *data, size_t length,
                            struct text *capture)
{
	size_t used = 0;

	r->capture = capture;
	while (used < length && (r->state == RESPONSE_HEAD || r->state == RESPONSE_BODY)) {
		const char *at = data + used;
		size_t n;

		if (r->remaining > 0) {
			n = response_reader_skip(r, length - used);
			if (capture)
				text_put(capture, at, n);
		} else {
			n = parse(r, at, length - used);
		}
		used += n;
	}
	return used;
}

bool response_reader_eof(struct response_reader *r)
{
	/* pauses in on_message_complete() if the end of the connection ends the body */
	if (r->state == RESPONSE_BODY && llhttp_finish(&r->parser) == HPE_PAUSED)
		r->state = RESPONSE_DONE;
	return r->state == RESPONSE_DONE;
}

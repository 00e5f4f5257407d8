/*
 * request.c - llhttp's callbacks, which keep offsets, and the rules of RFC 9110 and 9112 that
 * llhttp does not check.
 *
 * The Makefile compiles llhttp with LLHTTP_STRICT_MODE; otherwise it skips two bytes behind a chunk
 * without checking them. Any thread.
 */
#include "request.h"

#include <string.h>

#include "base/check.h"

/* Appends the next piece of a text to its span, which is empty before the first piece. */
static void span_add(struct span *s, const struct request *r, const char *at, size_t length)
{
	if (s->length == 0)
		s->at = (size_t)(at - r->base);
	s->length = (size_t)(at - r->base) + length - s->at;
}

static struct request *request_of(llhttp_t *parser)
{
	return parser->data;
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = request_of(parser);

	span_add(&r->target, r, at, length);
	return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = request_of(parser);

	if (r->head_length == 0) /* otherwise it is a trailer, which is ignored */
		span_add(&r->name, r, at, length);
	return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = request_of(parser);

	if (r->head_length > 0 || length == 0)
		return 0;
	/* A line end before a piece of a value means a folded field: 400 (RFC 9112 5.2). */
	const char *before = r->base + (r->value.length ? r->value.at + r->value.length
	                                                : r->name.at + r->name.length);

	if (memchr(before, '\n', (size_t)(at - before)))
		r->has_folded_field = true;
	span_add(&r->value, r, at, length);
	return 0;
}

static void note_field(struct request *r, enum request_field field)
{
	r->field[field] = r->value;
	r->field_count[field]++;
}

/* Every element of the list must be known (RFC 9110 10.1.1). */
static void note_expect(struct request *r, struct slice value)
{
	struct slice element;

	while (field_list_next(&value, &element)) {
		if (slice_is(element, "100-continue"))
			r->expects_continue = true;
		else
			r->expects_other = true;
	}
}

static int on_header_value_complete(llhttp_t *parser)
{
	static const char *const names[REQUEST_FIELD_COUNT] = {
		[REQUEST_HOST] = "host",
		[REQUEST_CONTENT_TYPE] = "content-type",
		[REQUEST_AUTHORIZATION] = "authorization",
		[REQUEST_RANGE] = "range",
		[REQUEST_IF_RANGE] = "if-range",
		[REQUEST_IF_NONE_MATCH] = "if-none-match",
		[REQUEST_ID] = "x-request-id",
	};
	struct request *r = request_of(parser);

	if (r->head_length > 0)
		return 0;
	struct slice name = span_slice(r->name, r->base);
	struct slice value = slice_trim(span_slice(r->value, r->base));

	if (name.length == 0 || memchr(name.data, ' ', name.length))
		r->has_bad_name = true;
	for (unsigned i = 0; i < REQUEST_FIELD_COUNT; i++) {
		if (slice_is(name, names[i]))
			note_field(r, (enum request_field)i);
	}
	if (slice_is(name, "prefer"))
		r->prefers_async = r->prefers_async || field_prefers(value, "respond-async");
	else if (slice_is(name, "expect"))
		note_expect(r, value);
	else if (slice_is(name, "transfer-encoding"))
		r->has_other_coding = r->has_other_coding || !slice_is(value, "chunked");
	r->name.length = r->value.length = 0;
	return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	parser->upgrade = 0; /* ignoring it is allowed (RFC 9110 7.8) */
	return HPE_PAUSED;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = request_of(parser);

	return r->append_body(r->append_body_arg, at, length) ? HPE_USER : 0;
}

static int on_message_complete(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

void request_init(struct request *r)
{
	memset(r, 0, sizeof *r);
	llhttp_init(&r->parser, HTTP_REQUEST, &settings);
	r->parser.data = r;
}

static enum route_method method_of(const llhttp_t *parser)
{
	switch (parser->method) {
	case HTTP_GET:
		return ROUTE_GET;
	case HTTP_HEAD:
		return ROUTE_HEAD;
	case HTTP_POST:
		return ROUTE_POST;
	case HTTP_DELETE:
		return ROUTE_DELETE;
	case HTTP_OPTIONS:
		return ROUTE_OPTIONS;
	default:
		return ROUTE_OTHER;
	}
}

static enum request_progress bad_version(struct problem *problem)
{
	problem_set(problem, 505, "http-version", "the request is not HTTP/1.0 or HTTP/1.1");
	return REQUEST_BAD;
}

static enum request_progress bad_coding(struct problem *problem)
{
	problem_set(problem, 501, "not-implemented",
	            "the only supported transfer coding is \"chunked\"");
	return REQUEST_BAD;
}

static enum request_progress malformed(struct problem *problem, const char *why)
{
	problem_set(problem, 400, "malformed-request", "%s", why);
	return REQUEST_BAD;
}

/* llhttp also accepts RTSP/1.0 and ICE/1.0, whose requests look the same. */
static bool is_http(const struct request *r)
{
	const char *at = r->base + r->target.at + r->target.length;

	while (*at == ' ')
		at++;
	/* The header is complete, so at least a protocol's name and a line end follow. */
	return memcmp(at, "HTTP/", 5) == 0;
}

/* Checks each character by RFC 3986 3.2.2 and 3.2.3. The value is not used here, but a proxy may
 * have understood an invalid one differently. */
static bool is_host(struct slice value)
{
	for (size_t i = 0; i < value.length; i++) {
		char c = value.data[i];
		bool is_letter =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!is_letter && (c == '\0' || !strchr("-._~%!$&'()*+,;=:[]", c)))
			return false;
	}
	return true;
}

/* Checks the rules for a complete header that are beyond its syntax. */
static enum request_progress check_head(struct request *r, struct problem *problem)
{
	const llhttp_t *p = &r->parser;
	bool is_1_0 = p->http_major == 1 && p->http_minor == 0;

	r->method = method_of(p);
	r->keeps_alive = llhttp_should_keep_alive(p);
	r->has_content_length = p->flags & F_CONTENT_LENGTH;
	r->content_length = r->has_content_length ? p->content_length : 0;
	r->is_chunked = p->flags & F_CHUNKED;
	if (p->http_major != 1 || p->http_minor > 1 || !is_http(r))
		return bad_version(problem);
	if (r->has_folded_field)
		return malformed(problem, "a header field continues on the next line");
	if (r->has_bad_name)
		return malformed(problem, "a header field has no name, or a name with a space");
	if (r->field_count[REQUEST_HOST] > 1 || (!is_1_0 && r->field_count[REQUEST_HOST] == 0))
		return malformed(problem,
		                 "an HTTP/1.1 request must have exactly one Host header field");
	if (!is_host(request_value(r, REQUEST_HOST, r->base)))
		return malformed(
			problem,
			"the Host header field has a character that a host and port cannot have");
	if (r->field_count[REQUEST_CONTENT_TYPE] > 1)
		return malformed(problem, "the request has several Content-Type header fields");
	if (is_1_0) {
		r->expects_continue = r->expects_other = false; /* RFC 9110 10.1.1 */
		if (p->flags & F_TRANSFER_ENCODING)
			return malformed(problem,
			                 "an HTTP/1.0 request cannot have a Transfer-Encoding");
	}
	return r->has_other_coding ? bad_coding(problem) : REQUEST_HEAD;
}

/* Sets the problem for an error of llhttp. */
static enum request_progress parse_error(struct request *r, llhttp_errno_t error,
                                         struct problem *problem)
{
	const char *at = llhttp_get_error_pos(&r->parser);

	/* llhttp has one error for malformed and for unknown versions; its text tells them apart.
	 */
	if (error == HPE_INVALID_VERSION &&
	    strcmp(llhttp_get_error_reason(&r->parser), "Invalid HTTP version") == 0)
		return bad_version(problem);
	switch (error) {
	case HPE_USER:
		return REQUEST_BAD; /* append_body() has set the problem */
	case HPE_PAUSED_H2_UPGRADE:
		return bad_version(problem);
	case HPE_INVALID_TRANSFER_ENCODING:
		return bad_coding(problem);
	default:
		problem_set(problem, 400, "malformed-request", "%s, at byte %zu of the request",
		            llhttp_get_error_reason(&r->parser),
		            at && at >= r->base ? (size_t)(at - r->base) : r->fed);
		return REQUEST_BAD;
	}
}

enum request_progress request_feed(struct request *r, const char *data, size_t length,
                                   struct problem *problem)
{
	assert(length >= r->fed);
	r->base = data;
	llhttp_errno_t error = llhttp_execute(&r->parser, data + r->fed, length - r->fed);

	if (error == HPE_OK) {
		r->fed = length;
		return REQUEST_MORE;
	}
	if (error != HPE_PAUSED)
		return parse_error(r, error, problem);
	r->fed = (size_t)(llhttp_get_error_pos(&r->parser) - data);
	assert(r->fed <= length);
	if (r->head_length > 0)
		return REQUEST_DONE;
	r->head_length = r->fed;
	llhttp_resume(&r->parser);
	return check_head(r, problem);
}

void request_rewind(struct request *r, size_t at)
{
	r->fed = at;
}

struct slice request_value(const struct request *r, enum request_field field, const char *data)
{
	if (r->field_count[field] != 1)
		return (struct slice){ data, 0 };
	return slice_trim(span_slice(r->field[field], data));
}

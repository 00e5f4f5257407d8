/*
 * request.c - llhttp's callbacks, which keep offsets, and the rules of RFC 9110 and 9112 that
 * llhttp does not check.
 *
 * The Makefile compiles llhttp 8.1.0 of Debian with LLHTTP_STRICT_MODE. These faults of llhttp were
 * found after that version. None is reachable, and tests hold that:
 * - CVE-2023-30589, a CR without LF ends a field: 8.1.0 refuses it.
 * - CVE-2024-27982, a space before Content-Length hides it: 8.1.0 sees a continued line, which
 *   head_next() refuses.
 * - CVE-2025-23167, CR LF CR and any byte end the header: strict mode refuses it, and so does
 *   head_next().
 * llhttp parses no bodies here: its handling of chunks is not used.
 */
#include "request.h"

#include <string.h>

#include "base/check.h"

#define METHOD_LENGTH_MAX 32 /* of one that llhttp does not know; RFC 9110 names none above 7 */

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = parser->data;

	if (r->target.length == 0)
		r->target.at = (size_t)(at - r->base);
	r->target.length = (size_t)(at - r->base) + length - r->target.at;
	return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	parser->upgrade = 0; /* ignoring it is allowed (RFC 9110 7.8) */
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_headers_complete = on_headers_complete,
};

void request_init(struct request *r)
{
	memset(r, 0, sizeof *r);
	llhttp_init(&r->parser, HTTP_REQUEST, &settings);
	r->parser.data = r;
}

/* ---- problems ---- */

static enum request_progress bad(struct problem *problem, unsigned status, const char *slug,
                                 const char *why)
{
	problem_set(problem, status, slug, "%s", why);
	return REQUEST_BAD;
}

static enum request_progress bad_version(struct problem *problem)
{
	return bad(problem, 505, "http-version", "the request is not HTTP/1.0 or HTTP/1.1");
}

static enum request_progress bad_method(struct problem *problem)
{
	return bad(problem, 501, "not-implemented",
	           "the method is unknown; expected GET, HEAD, POST, DELETE or OPTIONS");
}

static enum request_progress malformed(struct problem *problem, const char *why)
{
	return bad(problem, 400, "malformed-request", why);
}

/* ---- framing ---- */

/*
 * What decides where a request ends, and whether another one follows (RFC 9112 6.3 and 9.3), by a
 * reading of the field lines that is independent of llhttp's. A request for which llhttp has
 * another result is refused: then a proxy in front may have one as well (request smuggling, RFC
 * 9112 11.2).
 */
struct framing {
	const char *error; /* static: why the request must be refused with 400; NULL: it need not */
	uint64_t length;   /* Content-Length */
	bool has_length;
	bool is_chunked;
	bool has_other_coding; /* Transfer-Encoding has a coding that is not chunked */
	bool says_close, says_keep_alive;
};

/* RFC 9112 6.3: several lengths, or a list of them, have no safe reading. */
static void add_length(struct framing *f, struct slice value)
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
static void add_coding(struct framing *f, struct slice value)
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

/* Adds one field line to *f, which begins as zeros; lines of other fields change nothing. */
static void framing_add(struct framing *f, struct slice name, struct slice value)
{
	struct slice element;

	if (slice_is(name, "content-length"))
		add_length(f, value);
	else if (slice_is(name, "transfer-encoding"))
		add_coding(f, value);
	while (slice_is(name, "connection") && field_list_next(&value, &element)) {
		f->says_close |= slice_is(element, "close");
		f->says_keep_alive |= slice_is(element, "keep-alive");
	}
	if (f->has_length && (f->is_chunked || f->has_other_coding) && !f->error)
		f->error = "the request has both Content-Length and Transfer-Encoding";
}

/* ---- fields ---- */

/* Reads all fields. Returns NULL or why the request is malformed. */
static const char *read_fields(struct request *r, struct framing *framing)
{
	const char *line = r->base + r->line_at;
	const char *lf = memchr(line, '\n', r->head_length - r->line_at);
	struct slice rest, name, value, element;
	int found;

	assert(lf); /* the header is complete */
	r->fields.at = (size_t)(lf + 1 - r->base);
	r->fields.length = r->head_length - r->fields.at;
	rest = request_fields(r, r->base);
	*framing = (struct framing){ .error = NULL };
	while ((found = head_next(&rest, &name, &value)) > 0) {
		framing_add(framing, name, value);
		if (slice_is(name, "prefer"))
			r->prefers_async |= field_has_word(value, "respond-async");
		while (slice_is(name, "expect") && field_list_next(&value, &element)) {
			/* Every element must be known (RFC 9110 10.1.1). */
			bool is_known = slice_is(element, "100-continue");

			r->expects_continue |= is_known;
			r->expects_other |= !is_known;
		}
	}
	if (found < 0)
		return "a header line has no name, a name with a forbidden character, or continues "
		       "the line before it";
	return framing->error;
}

/* ---- the rules for a complete header that are beyond its syntax ---- */

static enum request_method method_of(const llhttp_t *parser)
{
	switch (parser->method) {
	case HTTP_GET:
		return METHOD_GET;
	case HTTP_HEAD:
		return METHOD_HEAD;
	case HTTP_POST:
		return METHOD_POST;
	case HTTP_DELETE:
		return METHOD_DELETE;
	case HTTP_OPTIONS:
		return METHOD_OPTIONS;
	case HTTP_CONNECT: /* origin servers need not have it (RFC 9110 9.3.6) */
		return METHOD_UNKNOWN;
	default:
		return METHOD_OTHER;
	}
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

/* Sets the authority, which is that of a target in absolute form, or else Host (RFC 9112 3.2.2 and
 * 3.3). Returns NULL or why the request is malformed. */
static const char *check_target(struct request *r, bool is_1_0)
{
	struct slice target = span_slice(r->target, r->base), authority, host;
	struct slice value;
	unsigned hosts = head_single(request_fields(r, r->base), "host", &value);
	bool is_absolute = request_split_target(&target, &authority);

	if (memchr(r->base + r->target.at, '#', r->target.length))
		return "the request target has a fragment, which RFC 9112 3.2 does not allow";
	if (hosts > 1 || (!is_1_0 && hosts == 0))
		return "an HTTP/1.1 request must have exactly one Host header field";
	if (value.length > 0 && !host_parse(value, &host))
		return "the Host header field is not HOST or HOST:PORT";
	if (is_absolute && !host_parse(authority, &host))
		return "the request target has an authority that is not HOST or HOST:PORT";
	if (!is_absolute)
		authority = value;
	r->authority = (struct span){ (size_t)(authority.data - r->base), authority.length };
	return NULL;
}

/* Returns whether both readings find the same end of the request. */
static bool agree(const llhttp_t *p, const struct framing *f)
{
	return !(p->flags & F_CHUNKED) == !f->is_chunked &&
	       !(p->flags & F_CONTENT_LENGTH) == !f->has_length &&
	       (!f->has_length || p->content_length == f->length);
}

static const char *check_framing(struct request *r, const struct framing *f, bool is_1_0)
{
	if (!agree(&r->parser, f))
		return "the length of the body is written in a way that other servers may read "
		       "differently";
	if (is_1_0 && (f->is_chunked || f->has_other_coding))
		return "an HTTP/1.0 request cannot have a Transfer-Encoding";
	r->keeps_alive = is_1_0 ? f->says_keep_alive && !f->says_close : !f->says_close;
	r->has_content_length = f->has_length;
	r->content_length = f->length;
	r->is_chunked = f->is_chunked;
	if (is_1_0)
		r->expects_continue = r->expects_other = false; /* RFC 9110 10.1.1 */
	return NULL;
}

static enum request_progress check_head(struct request *r, struct problem *problem)
{
	const llhttp_t *p = &r->parser;
	bool is_1_0 = p->http_major == 1 && p->http_minor == 0;
	struct framing framing;
	struct slice type;
	const char *error;

	r->method = method_of(p);
	if (p->http_major != 1 || p->http_minor > 1 || !is_http(r))
		return bad_version(problem);
	error = read_fields(r, &framing);
	if (!error && framing.has_other_coding)
		return bad(problem, 501, "not-implemented",
		           "the only supported transfer coding is \"chunked\"");
	if (!error)
		error = check_framing(r, &framing, is_1_0);
	if (!error)
		error = check_target(r, is_1_0);
	if (!error && head_single(request_fields(r, r->base), "content-type", &type) > 1)
		error = "the request has several Content-Type header fields";
	if (error)
		return malformed(problem, error);
	return r->method == METHOD_UNKNOWN ? bad_method(problem) : REQUEST_HEAD;
}

/* ---- the header ---- */

/* Skips empty lines before the request line (RFC 9112 2.2). A CR at the end waits for its LF. */
static enum request_progress skip_empty_lines(struct request *r, size_t length,
                                              struct problem *problem)
{
	while (r->fed < length) {
		const char *at = r->base + r->fed;

		if (*at != '\r' && *at != '\n') {
			r->has_begun = true;
			r->line_at = r->fed;
			return REQUEST_HEAD;
		}
		if (*at == '\r' && r->fed + 1 == length)
			break;
		if (*at == '\r' && at[1] != '\n')
			return malformed(problem,
			                 "a CR without a LF comes before the request line");
		r->fed += *at == '\r' ? 2 : 1;
	}
	return REQUEST_MORE;
}

/* llhttp stops at the first byte of a method that it does not know. This is 501, unless the line is
 * not even a request line. */
static enum request_progress check_method(struct request *r, size_t length, struct problem *problem)
{
	static const char error[] = "the request line is not METHOD TARGET HTTP/1.1";
	const char *line = r->base + r->line_at, *end = r->base + length;
	size_t rest = length - r->line_at, n = 0;

	r->has_unknown_method = true;
	while (n < rest && n <= METHOD_LENGTH_MAX && field_is_token_char(line[n]))
		n++;
	if (n == 0 || n > METHOD_LENGTH_MAX || (n < rest && line[n] != ' ')) {
		r->fed = r->line_at + n;
		return malformed(problem, error);
	}
	const char *lf = memchr(line, '\n', rest);

	if (!lf)
		return REQUEST_MORE;
	r->fed = (size_t)(lf - r->base);
	const char *target = line + n + 1, *space = memchr(target, ' ', (size_t)(lf - target));

	if (!space || space == target || end - space < 6 || memcmp(space, " HTTP/", 6) != 0)
		return malformed(problem, error);
	return bad_method(problem);
}

/* Sets the problem for an error of llhttp. */
static enum request_progress parse_error(struct request *r, llhttp_errno_t error, size_t length,
                                         struct problem *problem)
{
	const char *at = llhttp_get_error_pos(&r->parser);
	const char *reason = llhttp_get_error_reason(&r->parser);

	if (at && at >= r->base)
		r->fed = (size_t)(at - r->base);
	if (error == HPE_INVALID_METHOD || strncmp(reason, "Invalid method", 14) == 0)
		return check_method(r, length, problem);
	/* llhttp has one error for malformed and for unknown versions; its text tells them apart.
	 */
	if (error == HPE_PAUSED_H2_UPGRADE ||
	    (error == HPE_INVALID_VERSION && strcmp(reason, "Invalid HTTP version") == 0))
		return bad_version(problem);
	problem_set(problem, 400, "malformed-request", "%s, at byte %zu of the request", reason,
	            r->fed);
	return REQUEST_BAD;
}

static enum request_progress feed_head(struct request *r, size_t length, struct problem *problem)
{
	if (!r->has_begun) {
		enum request_progress progress = skip_empty_lines(r, length, problem);

		if (progress != REQUEST_HEAD)
			return progress;
	}
	if (r->has_unknown_method)
		return check_method(r, length, problem);
	llhttp_errno_t error = llhttp_execute(&r->parser, r->base + r->fed, length - r->fed);

	if (error == HPE_OK) {
		r->fed = length;
		return REQUEST_MORE;
	}
	if (error != HPE_PAUSED)
		return parse_error(r, error, length, problem);
	r->fed = (size_t)(llhttp_get_error_pos(&r->parser) - r->base);
	assert(r->fed <= length);
	r->head_length = r->fed;
	return check_head(r, problem);
}

enum request_progress request_feed(struct request *r, const char *data, size_t length,
                                   struct problem *problem)
{
	assert(length >= r->fed);
	r->base = data;
	return r->head_length > 0 ? request_feed_chunks(r, length, problem)
	                          : feed_head(r, length, problem);
}

/* ---- what was read ---- */

struct slice request_fields(const struct request *r, const char *data)
{
	return span_slice(r->fields, data);
}

bool request_split_target(struct slice *target, struct slice *authority)
{
	size_t scheme = slice_begins(*target, "http://")    ? 7
	                : slice_begins(*target, "https://") ? 8
	                                                    : 0;
	size_t at = scheme;

	*authority = (struct slice){ target->data, 0 };
	if (!scheme)
		return false;
	while (at < target->length && target->data[at] != '/' && target->data[at] != '?')
		at++;
	*authority = (struct slice){ target->data + scheme, at - scheme };
	*target = (struct slice){ target->data + at, target->length - at };
	return true;
}

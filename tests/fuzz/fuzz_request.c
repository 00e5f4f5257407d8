/*
 * fuzz_request.c - headers and chunked bodies of requests: parsing them whole and in pieces gives
 * the same request, and all fields are within the header.
 */
#include "base/check.h"
#include "conn/route.h"
#include "http/request.h"
#include "target.h"

#define BODY_MAX 4096

const unsigned target_mutants = 2000;

struct outcome {
	struct request request;
	struct problem problem;
	enum request_progress progress;
	char body[BODY_MAX];
	size_t body_size;
};

static int take(void *arg, const char *data, size_t length)
{
	struct outcome *o = arg;

	if (length > BODY_MAX - o->body_size)
		return -1;
	memcpy(o->body + o->body_size, data, length);
	o->body_size += length;
	return 0;
}

static void feed(struct outcome *o, const uint8_t *data, size_t size)
{
	char *copy = target_copy(data, size);
	struct request *r = &o->request;

	o->progress = request_feed(r, copy, size, &o->problem);
	assert(r->fed <= size);
	if (o->progress == REQUEST_HEAD && r->is_chunked)
		o->progress = request_feed(r, copy, size, &o->problem);
	free(copy);
}

static void parse(struct outcome *o, const uint8_t *data, size_t size, uint32_t *cuts)
{
	size_t end = 0;

	memset(o, 0, sizeof *o);
	request_init(&o->request);
	o->request.append_body = take;
	o->request.append_body_arg = o;
	o->progress = REQUEST_MORE;
	if (!cuts)
		feed(o, data, size);
	while (cuts && o->progress == REQUEST_MORE && end < size) {
		end = target_cut(cuts, end, size);
		feed(o, data, end);
	}
}

static void check_span(struct span s, const struct request *r)
{
	assert(s.length == 0 || (s.at < r->head_length && s.length <= r->head_length - s.at));
}

/* Reads everything that the daemon reads of a complete header. */
static void check_head(const struct request *r, const uint8_t *data, size_t size)
{
	static const char *const names[] = { "host", "content-type", "authorization", "range" };
	char *copy = target_copy(data, size);
	struct route route;

	check_span(r->target, r);
	check_span(r->fields, r);
	for (unsigned i = 0; i < COUNT_OF(names); i++) {
		struct slice value;

		head_single(request_fields(r, copy), names[i], &value);
		assert(value.length <= r->head_length);
	}
	assert(r->target.length > 0);
	assert(!(r->is_chunked && r->has_content_length));
	route_find(&route, r->method, span_slice(r->target, copy));
	assert(route.kind >= ROUTE_NONE && route.kind < ROUTE_COUNT);
	assert(strlen(route.id) <= ULID_LENGTH);
	free(copy);
}

static void compare(const struct outcome *a, const struct outcome *b)
{
	const struct request *p = &a->request, *q = &b->request;

	assert(a->progress == b->progress);
	if (a->progress == REQUEST_BAD)
		assert(a->problem.status == b->problem.status &&
		       a->problem.slug == b->problem.slug);
	if (a->progress != REQUEST_HEAD && a->progress != REQUEST_DONE)
		return;
	assert(p->fed == q->fed && p->head_length == q->head_length && p->method == q->method);
	assert(p->target.at == q->target.at && p->target.length == q->target.length);
	assert(p->fields.at == q->fields.at && p->fields.length == q->fields.length);
	assert(p->content_length == q->content_length && p->is_chunked == q->is_chunked);
	assert(p->keeps_alive == q->keeps_alive && p->prefers_async == q->prefers_async);
	assert(p->expects_continue == q->expects_continue && p->expects_other == q->expects_other);
	assert(a->body_size == b->body_size && memcmp(a->body, b->body, a->body_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, pieces;
	uint32_t cuts = target_hash(data, size);

	parse(&whole, data, size, NULL);
	parse(&pieces, data, size, &cuts);
	if (size > 0)
		compare(&whole, &pieces);
	if (whole.progress == REQUEST_HEAD || whole.progress == REQUEST_DONE)
		check_head(&whole.request, data, size);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"GET /images/01ARZ3NDEKTSV4RRFFQ69G5FAV/a.jpg?x=y HTTP/1.1\r\nHost: a:80\r\n"
		"Range: bytes=0-1\r\nIf-None-Match: \"a\"\r\n\r\nGET /",
		"POST /images HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 3\r\n"
		"Content-Type: image/jpeg\r\nExpect: 100-continue\r\n\r\nabc",
		"POST /images HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		"Prefer: respond-async\r\n\r\n3\r\nabc\r\n2;x=\"y\"\r\nde\r\n0\r\nT: u\r\n\r\nrest",
		"DELETE http://a/images/01ARZ3NDEKTSV4RRFFQ69G5FAV HTTP/1.0\r\n"
		"Authorization: Bearer abc\r\nConnection: keep-alive\r\nX-Request-Id: 1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost:\r\nConnection: close\r\nUpgrade: h2c\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"\r\n\nGET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\td\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\t\r\nTransfer-Encoding: "
		"chunked\t\r\n\r\n0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PUT /x RTSP/1.0\r\n\r\n",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}

/*
 * test_request.c - requests: the same result for all cuts of the bytes, the rules that llhttp does
 * not check, requests that llhttp and request.c read differently, and llhttp's strict mode,
 * which the Makefile must set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/request.h"

struct body {
	char bytes[256];
	size_t length;
};

static int take(void *arg, const char *data, size_t length)
{
	struct body *body = arg;

	if (body->length + length >= sizeof body->bytes)
		return -1;
	memcpy(body->bytes + body->length, data, length);
	body->length += length;
	return 0;
}

/* Parses the prefixes that end at the cuts, which ascend; each is an exact copy. Continues behind
 * the header if the body is chunked. */
static enum request_progress feed(struct request *r, struct body *body, struct problem *problem,
                                  const char *bytes, const size_t *cuts, unsigned cut_count)
{
	enum request_progress progress = REQUEST_MORE;

	request_init(r);
	memset(body, 0, sizeof *body);
	memset(problem, 0, sizeof *problem);
	r->append_body = take;
	r->append_body_arg = body;
	for (unsigned i = 0; i < cut_count && progress == REQUEST_MORE; i++) {
		char *copy = malloc(cuts[i] ? cuts[i] : 1);

		assert_non_null(copy);
		memcpy(copy, bytes, cuts[i]);
		progress = request_feed(r, copy, cuts[i], problem);
		if (progress == REQUEST_HEAD && r->is_chunked)
			progress = request_feed(r, copy, cuts[i], problem);
		free(copy);
	}
	return progress;
}

static const struct {
	const char *bytes;
	enum request_progress progress;
	unsigned status;    /* BAD */
	const char *target; /* HEAD, DONE */
	const char *body;   /* DONE */
	const char *rest;   /* HEAD, DONE: bytes behind the request */
} requests[] = {
	{ "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y", REQUEST_HEAD, 0, "/x", "", "GET /y" },
	{ "\r\nGET /x?y HTTP/1.0\r\n\r\n", REQUEST_HEAD, 0, "/x?y", "", "" },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcd", REQUEST_HEAD, 0, "/x", "",
	  "abcd" },
	{ "GET /x HTTP/1.1\r\nHost:\r\nA:\r\nB: \r\n\r\n", REQUEST_HEAD, 0, "/x", "", "" },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\nrest",
	  REQUEST_DONE, 0, "/x", "abcde", "rest" },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
	  "Content-Length: 1\r\n\r\nz",
	  REQUEST_HEAD, 0, "/x", "", "z" },
	{ "GET /x HTTP/1.1\r\nHost: a\r\n", REQUEST_MORE, 0, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", REQUEST_MORE,
	  0, NULL, NULL, NULL },

	{ "GET /x HTTP/1.1\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: a\r\nA:\r\n\tc\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost : a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: a\rb\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", REQUEST_HEAD, 0, "/x", "", "" },
	{ "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/1.0\r\nHost: a/b\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "OPTIONS /x RTSP/1.0\r\n\r\n", REQUEST_BAD, 505, NULL, NULL, NULL },
	{ "nonsense\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/x.y\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET /x HTTP/2.0\r\nHost: a\r\n\r\n", REQUEST_BAD, 505, NULL, NULL, NULL },
	{ "GET /x HTTP/1.2\r\nHost: a\r\n\r\n", REQUEST_BAD, 505, NULL, NULL, NULL },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REQUEST_BAD, 505, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", REQUEST_BAD, 400, NULL,
	  NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", REQUEST_BAD, 400, NULL, NULL,
	  NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", REQUEST_BAD,
	  501, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", REQUEST_BAD, 501, NULL,
	  NULL, NULL },
	{ "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", REQUEST_BAD, 400, NULL, NULL,
	  NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", REQUEST_BAD,
	  400, NULL, NULL, NULL },
	/* CVE-2025-23167; llhttp_is_strict() below tells which of the two readings refuses it. */
	{ "GET /x HTTP/1.1\r\nHost: a\r\n\rX", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\rXabc", REQUEST_BAD, 400, NULL,
	  NULL, NULL },
	/* CVE-2023-30589 and CVE-2024-27982 */
	{ "POST /x HTTP/1.1\r\nHost: a\r\nA: b\rContent-Length: 3\r\n\r\nabc", REQUEST_BAD, 400,
	  NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\n Content-Length: 3\r\n\r\nabc", REQUEST_BAD, 400, NULL,
	  NULL, NULL },
	{ "POST /x HTTP/1.1\r\n Content-Length: 3\r\nHost: a\r\n\r\nabc", REQUEST_BAD, 400, NULL,
	  NULL, NULL },

	/* llhttp and request.c disagree, or both refuse. */
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", REQUEST_BAD,
	  400, NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 42\t\r\n\r\n", REQUEST_BAD, 400, NULL,
	  NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 42\t\t\r\nA: b\r\n\r\n", REQUEST_BAD, 400,
	  NULL, NULL, NULL },
	{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", REQUEST_BAD, 400, NULL, NULL,
	  NULL },

	/* before the request line */
	{ "\r\n\r\n\nGET /x HTTP/1.0\r\n\r\n", REQUEST_HEAD, 0, "/x", "", "" },
	{ "\rGET /x HTTP/1.0\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "\r\n\r\r\nGET /x HTTP/1.0\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },

	/* methods */
	{ "QUERY /x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 501, NULL, NULL, NULL },
	{ "get /x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 501, NULL, NULL, NULL },
	{ "GETS /x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 501, NULL, NULL, NULL },
	{ "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", REQUEST_BAD, 501, NULL, NULL, NULL },
	{ "PLAY /x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 501, NULL, NULL, NULL },
	{ "MKCOL /x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_HEAD, 0, "/x", "", "" },
	{ "QUERY /x", REQUEST_MORE, 0, NULL, NULL, NULL },
	{ "QUERY /x\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "QUERY  HTTP/1.1\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "QU(RY /x HTTP/1.1\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", REQUEST_BAD, 400, NULL, NULL, NULL },

	/* targets and hosts */
	{ "GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET http://a/x?y#z HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET http://a:b/x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ "GET http://a?/x HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_HEAD, 0, "http://a?/x", "", "" },
	{ "GET /x HTTP/1.1\r\nHost: a:65536\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },

/* chunks */
#define CHUNKED "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	{ CHUNKED "2 ; some; a=b \t;\tc = \"d;\\\"\xff\"\r\nab\r\n00 ;e\r\n\r\n", REQUEST_DONE, 0,
	  "/x", "ab", "" },
	{ CHUNKED "1\r\na\r\nA\r\n0123456789\r\n0\r\nA: b\tc\r\nD:\r\n\r\nrest", REQUEST_DONE, 0,
	  "/x", "a0123456789", "rest" },
	{ CHUNKED "3\r\nabcde0\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1 \r\na", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED " 1\r\na", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;\r\na", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;a\nb", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;a=\"\r\nb", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1\ra", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1\r\na\n0\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1\r\na\rX", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "ffffffffffffffff\r\n", REQUEST_MORE, 0, NULL, NULL, NULL },
	{ CHUNKED "10000000000000000\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "0\r\nA b: c\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "0\r\nA: b\r\n c\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "0\r\nA: b\001\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "0\r\n\rX", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;;a\r\nb", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;a=\"\\\r\nb", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;a=\"\\\"\r\nb", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "1;a=\";\"\r\nb\r\n0;\tb\r\n\r\n", REQUEST_DONE, 0, "/x", "b", "" },
	{ CHUNKED "0\r\n: b\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
	{ CHUNKED "0\r\nb\r\n\r\n", REQUEST_BAD, 400, NULL, NULL, NULL },
};

static void the_result_does_not_depend_on_the_cuts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		size_t length = strlen(requests[i].bytes);

		for (size_t a = 0; a <= length; a++) {
			for (size_t b = a; b <= length; b++) {
				const size_t cuts[] = { a, b, length };
				struct request r;
				struct body body;
				struct problem problem;
				enum request_progress progress =
					feed(&r, &body, &problem, requests[i].bytes, cuts, 3);

				if (progress != requests[i].progress)
					fail_msg("'%s' cut at %zu and %zu: %d", requests[i].bytes,
					         a, b, (int)progress);
				if (progress == REQUEST_BAD && problem.status != requests[i].status)
					fail_msg("'%s' cut at %zu and %zu: status %u",
					         requests[i].bytes, a, b, problem.status);
				if (!requests[i].target)
					continue;
				assert_int_equal(r.target.length, strlen(requests[i].target));
				assert_memory_equal(requests[i].bytes + r.target.at,
				                    requests[i].target, r.target.length);
				assert_string_equal(body.bytes, requests[i].body);
				assert_string_equal(requests[i].bytes + r.fed, requests[i].rest);
			}
		}
	}
}

/* Otherwise llhttp would take any two bytes for the CR LF at the end of the header. */
static void llhttp_is_strict(void **state)
{
	static const char bytes[] = "GET /x HTTP/1.1\r\nHost: a\r\n\rX";
	llhttp_settings_t settings;
	llhttp_t parser;

	(void)state;
	llhttp_settings_init(&settings);
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	assert_int_equal(llhttp_execute(&parser, bytes, sizeof bytes - 1), HPE_STRICT);
}

static void whole(struct request *r, const char *bytes, enum request_progress expected)
{
	struct body body;
	struct problem problem;
	size_t length = strlen(bytes);

	assert_int_equal(feed(r, &body, &problem, bytes, &length, 1), expected);
}

static void fields_are_kept_or_evaluated(void **state)
{
	static const char bytes[] =
		"PUT /x HTTP/1.1\r\nhOST: \t a \r\nPrefer: wait=3\r\nPrefer: x, respond-async\r\n"
		"RANGE:  bytes=0-1\t\r\nIf-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n"
		"Expect: 100-Continue\r\nConnection: close\r\n\r\n";
	struct request r;

	(void)state;
	whole(&r, bytes, REQUEST_HEAD);
	assert_int_equal(r.method, METHOD_OTHER);
	struct slice fields = request_fields(&r, bytes), value;

	assert_int_equal(head_single(fields, "range", &value), 1);
	assert_int_equal(value.length, 9);
	assert_memory_equal(value.data, "bytes=0-1", 9);
	assert_int_equal(head_single(fields, "host", &value), 1);
	assert_int_equal(value.length, 1);
	assert_int_equal(head_single(fields, "content-type", &value), 0);
	assert_int_equal(value.length, 0);
	assert_int_equal(head_single(fields, "if-none-match", &value), 2);
	assert_int_equal(value.length, 0);
	assert_true(r.prefers_async);
	assert_true(r.expects_continue);
	assert_false(r.expects_other);
	assert_false(r.keeps_alive);
	assert_false(r.has_content_length);

	/* OWS is also a tab, for which llhttp keeps the connection open. */
	whole(&r, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\t\r\n\r\n", REQUEST_HEAD);
	assert_false(r.keeps_alive);
	whole(&r, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: a, \tCLOSE\r\n\r\n", REQUEST_HEAD);
	assert_false(r.keeps_alive);
	whole(&r, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue, x\r\n\r\n",
	      REQUEST_HEAD);
	assert_true(r.keeps_alive);
	assert_false(r.expects_continue || r.expects_other);
	whole(&r, "GET /x HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", REQUEST_HEAD);
	assert_true(r.keeps_alive);
	assert_true(r.expects_other);
	whole(&r, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", REQUEST_HEAD);
	assert_true(r.has_content_length);
	assert_int_equal(r.content_length, 0);
}

static void check_authority(const char *bytes, const char *expected)
{
	struct request r;

	whole(&r, bytes, REQUEST_HEAD);
	assert_int_equal(r.authority.length, strlen(expected));
	assert_memory_equal(bytes + r.authority.at, expected, strlen(expected));
}

static void the_target_decides_about_the_host(void **state)
{
	(void)state;
	check_authority("GET /x HTTP/1.1\r\nHost: a:1\r\n\r\n", "a:1");
	check_authority("GET http://b:2/x HTTP/1.1\r\nHost: a:1\r\n\r\n", "b:2");
	check_authority("GET https://b?/x HTTP/1.1\r\nHost: a\r\n\r\n", "b");
	check_authority("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "a");
	check_authority("GET /x HTTP/1.0\r\n\r\n", "");
}

/* What was parsed behind the header may be overwritten by the next chunks. */
static void a_chunked_body_can_overwrite_its_buffer(void **state)
{
	static const char head[] =
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char chunks[] = "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
	struct request r;
	struct body body = { .length = 0 };
	struct problem problem;
	char buffer[sizeof head + 8];
	size_t end = sizeof head - 1;
	enum request_progress progress;

	(void)state;
	request_init(&r);
	r.append_body = take;
	r.append_body_arg = &body;
	memcpy(buffer, head, sizeof head - 1);
	assert_int_equal(request_feed(&r, buffer, sizeof head - 1, &problem), REQUEST_HEAD);
	for (size_t i = 0; i < sizeof chunks - 1; i++) {
		memmove(buffer + r.head_length, buffer + r.fed, end - r.fed);
		end -= r.fed - r.head_length;
		r.fed = r.head_length;
		assert_true(end < sizeof buffer);
		buffer[end++] = chunks[i];
		progress = request_feed(&r, buffer, end, &problem);
		assert_int_equal(progress, i == sizeof chunks - 2 ? REQUEST_DONE : REQUEST_MORE);
	}
	assert_string_equal(body.bytes, "hello!");
}

static void a_line_of_a_chunked_body_has_a_limit(void **state)
{
	static const char head[] =
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;";
	char bytes[sizeof head + CHUNKS_LINE_MAX + 8];
	struct request r;
	struct body body;
	struct problem problem;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		size_t at = sizeof head - 1, length = at + CHUNKS_LINE_MAX - 2 + more;

		memcpy(bytes, head, at);
		memset(bytes + at, 'x', length - at);
		memcpy(bytes + length, "\r\na", 3);
		length += 3;
		const size_t cuts[] = { at + 100, length };

		assert_int_equal(feed(&r, &body, &problem, bytes, cuts, 2),
		                 more ? REQUEST_BAD : REQUEST_MORE);
		assert_int_equal(body.length, 1 - more);
	}
}

static void a_refused_body_is_bad_without_a_problem(void **state)
{
	char bytes[600] =
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1ff\r\n";
	struct request r;
	struct body body;
	struct problem problem;
	size_t at = strlen(bytes), length = at + 511;

	(void)state;
	memset(bytes + at, 'x', 511);
	assert_int_equal(feed(&r, &body, &problem, bytes, &length, 1), REQUEST_BAD);
	assert_int_equal(problem.status, 0);
}

/* However it is cut: the space before the colon is byte 21. */
static void a_fault_is_told_with_its_place(void **state)
{
	static const char bytes[] = "GET /x HTTP/1.1\r\nHost : a\r\n\r\n";
	struct request r;
	struct body body;
	struct problem problem;

	(void)state;
	for (size_t first = 0; first < sizeof bytes; first++) {
		const size_t cuts[] = { first, sizeof bytes - 1 };

		assert_int_equal(feed(&r, &body, &problem, bytes, cuts, 2), REQUEST_BAD);
		assert_non_null(strstr(problem.detail, ", at byte 21 of the request"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_is_told_with_its_place),
		cmocka_unit_test(the_result_does_not_depend_on_the_cuts),
		cmocka_unit_test(llhttp_is_strict),
		cmocka_unit_test(fields_are_kept_or_evaluated),
		cmocka_unit_test(the_target_decides_about_the_host),
		cmocka_unit_test(a_chunked_body_can_overwrite_its_buffer),
		cmocka_unit_test(a_line_of_a_chunked_body_has_a_limit),
		cmocka_unit_test(a_refused_body_is_bad_without_a_problem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_response_reader.c - responses cut at every byte, and malformed ones. */
#include "load/response_reader.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct outcome {
	int status;
	bool keep_alive;
	const char *body;
};

/* Reads the text in two pieces. Each is copied, so that a sanitizer sees reading beyond its end. */
static enum response_state feed(struct response_reader *r, struct text *body, const char *text,
                                size_t length, size_t cut)
{
	const size_t ends[] = { cut, length };
	size_t used = 0;

	response_reader_init(r);
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		size_t n = ends[i] - used;
		char *piece = malloc(n);

		assert_non_null(piece);
		memcpy(piece, text + used, n);
		used += response_reader_read(r, piece, n, body);
		free(piece);
	}
	return r->state;
}

static void expect_response(const char *text, const struct outcome *expected)
{
	size_t length = strlen(text);

	for (size_t cut = 0; cut <= length; cut++) {
		char memory[256];
		struct response_reader r;
		struct text body;

		text_init(&body, memory, sizeof memory);
		feed(&r, &body, text, length, cut);
		if (!response_reader_eof(&r))
			fail_msg("cut at %zu: %s: %s", cut, r.problem, text);
		assert_int_equal(r.status, expected->status);
		assert_int_equal(r.keep_alive, expected->keep_alive);
		assert_string_equal(memory, expected->body);
	}
}

static void expect_bad(const char *text, const char *problem)
{
	size_t length = strlen(text);

	for (size_t cut = 0; cut <= length; cut++) {
		struct response_reader r;

		if (feed(&r, NULL, text, length, cut) != RESPONSE_BAD)
			fail_msg("accepted, cut at %zu: %s", cut, text);
		assert_non_null(r.problem);
		if (problem)
			assert_string_equal(r.problem, problem);
		assert_false(response_reader_eof(&r));
	}
}

static void responses_of_every_framing_are_read(void **state)
{
	(void)state;
	expect_response("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",
	                &(struct outcome){ 201, true, "hello" });
	expect_response("HTTP/1.1 200\r\ncontent-length:0\r\n\r\n",
	                &(struct outcome){ 200, true, "" });
	expect_response("HTTP/1.1 204 No Content\r\nX: y\r\n\r\n",
	                &(struct outcome){ 204, true, "" });
	expect_response("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	                &(struct outcome){ 304, true, "" });
	expect_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	                "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n",
	                &(struct outcome){ 200, true, "abc0123456789" });
	expect_response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
	                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	                &(struct outcome){ 200, true, "ok" });
	expect_response("HTTP/1.1 200 OK\r\n\r\nto the end",
	                &(struct outcome){ 200, false, "to the end" });
}

#define A_HUNDRED_BYTES                                                                            \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"

/* Names of more than 64 bytes and values of more than 128 do not fit. */
static void fields_that_do_not_fit_are_read_alike_at_every_cut(void **state)
{
	static const char *const texts[] = {
		"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg; " A_HUNDRED_BYTES A_HUNDRED_BYTES
		"\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Type" A_HUNDRED_BYTES
		": image/jpeg\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding" A_HUNDRED_BYTES
		":\r\nContent-Length: 2\r\n\r\nok",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		expect_response(texts[i], &(struct outcome){ 200, true, "ok" });
		for (size_t cut = 0; cut <= strlen(texts[i]); cut++) {
			struct response_reader r;

			feed(&r, NULL, texts[i], strlen(texts[i]), cut);
			if (r.is_jpeg)
				fail_msg("taken for a JPEG, cut at %zu: %s", cut, texts[i]);
		}
	}
}

static void connection_stays_open_unless_the_response_closes_it(void **state)
{
	(void)state;
	expect_response("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	                &(struct outcome){ 200, false, "" });
	expect_response("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
	                &(struct outcome){ 200, false, "" });
	expect_response("HTTP/1.1 200 OK\r\nConnection: closed\r\nContent-Length: 0\r\n\r\n",
	                &(struct outcome){ 200, true, "" });
	expect_response("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n.",
	                &(struct outcome){ 200, false, "." });
	expect_response("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n.",
	                &(struct outcome){ 200, true, "." });
	/* RFC 9112 6.1 and 6.3: Transfer-Encoding wins, and the connection must be closed */
	expect_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"
	                "0\r\n\r\n",
	                &(struct outcome){ 200, false, "" });
	expect_response(
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
		"0\r\n\r\n",
		&(struct outcome){ 200, false, "" });
}

static void content_type_tells_jpegs(void **state)
{
	static const struct {
		const char *field;
		bool is_jpeg;
	} cases[] = {
		{ "Content-Type: image/jpeg", true },
		{ "content-type:IMAGE/JPEG ; q=1", true },
		{ "Content-Type: image/jpegx", false },
		{ "Content-Type: image/png", false },
		{ "Content-Type:", false },
		{ "X-Content-Type: image/jpeg", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char text[200];
		int length = snprintf(text, sizeof text,
		                      "HTTP/1.1 200 OK\r\n%s\r\nContent-Length: 0\r\n\r\n",
		                      cases[i].field);

		for (size_t cut = 0; cut <= (size_t)length; cut++) {
			struct response_reader r;

			assert_int_equal(feed(&r, NULL, text, (size_t)length, cut), RESPONSE_DONE);
			assert_int_equal(r.is_jpeg, cases[i].is_jpeg);
		}
	}
}

static void malformed_responses_are_rejected(void **state)
{
	static const char *const texts[] = {
		"220 smtp.example.org\r\n\r\n",
		"HTTP/2 200 OK\r\n\r\n",
		"HTTP/1.1 20\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 abc OK\r\n\r\n",
		"HTTP/1.1 099 No\r\n\r\n",
		"HTTP/1.1 600 No\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab",
		"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		expect_bad(texts[i], NULL);
}

/* llhttp 8.1 in strict mode accepts each of these. */
static void what_llhttp_accepts_is_rejected_by_name(void **state)
{
	(void)state;
	expect_bad("HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "expected HTTP/1.0 or HTTP/1.1");
	expect_bad("HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n", "expected HTTP/1.0 or HTTP/1.1");
	expect_bad("HTTP/1.1  200 OK\r\n\r\n", "expected a status from 100 to 599 other than 101");
	expect_bad("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	           "expected a status from 100 to 599 other than 101");
	expect_bad("\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	           "line end before the status line");
	expect_bad("HTTP/1.1 200 OK\nX: y\r\nContent-Length: 0\r\n\r\n",
	           "line feed without carriage return");
	expect_bad("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok",
	           "line feed without carriage return");
	expect_bad("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 0\r\n\r\n",
	           "empty Transfer-Encoding");
	expect_bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
	           "Transfer-Encoding does not end in \"chunked\"");
	expect_bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n gzip\r\n\r\n",
	           "Transfer-Encoding does not end in \"chunked\"");
	expect_bad("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
	           "Content-Length overflow");
}

static void heads_are_bounded(void **state)
{
	static char text[40000];
	struct response_reader r;
	size_t length = (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX: ");

	(void)state;
	memset(text + length, 'x', sizeof text - length);
	assert_int_equal(feed(&r, NULL, text, 16000, 100), RESPONSE_HEAD);
	assert_int_equal(feed(&r, NULL, text, 17000, 100), RESPONSE_BAD);
	memcpy(text + sizeof text - 4, "\r\n\r\n", 4);
	assert_int_equal(feed(&r, NULL, text, sizeof text, 0), RESPONSE_BAD);
	assert_string_equal(r.problem, "head longer than 16 KiB");
}

static void responses_that_end_early_are_incomplete(void **state)
{
	static const char *const texts[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\nX: y\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		for (size_t length = 0; length < strlen(texts[i]); length++) {
			struct response_reader r;

			feed(&r, NULL, texts[i], length, 0);
			assert_false(response_reader_eof(&r));
		}
	}
}

static void bytes_after_a_response_are_left(void **state)
{
	static const char *const texts[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct response_reader r;
		char text[200];
		int length = snprintf(text, sizeof text, "%sHTTP/1.1", texts[i]);

		response_reader_init(&r);
		assert_int_equal(response_reader_read(&r, text, (size_t)length, NULL),
		                 strlen(texts[i]));
		assert_int_equal(r.state, RESPONSE_DONE);
	}
}

static void discarded_bytes_count(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
	struct response_reader r;

	(void)state;
	assert_int_equal(feed(&r, NULL, text, strlen(text), 0), RESPONSE_BODY);
	assert_int_equal(r.remaining, 7);
	assert_int_equal(response_reader_skip(&r, 5), 5);
	assert_int_equal(r.state, RESPONSE_BODY);
	assert_false(response_reader_eof(&r));
	assert_int_equal(response_reader_skip(&r, 5), 2);
	assert_int_equal(r.state, RESPONSE_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responses_of_every_framing_are_read),
		cmocka_unit_test(fields_that_do_not_fit_are_read_alike_at_every_cut),
		cmocka_unit_test(connection_stays_open_unless_the_response_closes_it),
		cmocka_unit_test(content_type_tells_jpegs),
		cmocka_unit_test(malformed_responses_are_rejected),
		cmocka_unit_test(what_llhttp_accepts_is_rejected_by_name),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(responses_that_end_early_are_incomplete),
		cmocka_unit_test(bytes_after_a_response_are_left),
		cmocka_unit_test(discarded_bytes_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

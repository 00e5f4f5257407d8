/* Responses as darkroom-load reads them: cut at every byte, and those that are none. */
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

/* The text in two pieces, as a connection feeds it: the head collected, the rest as it comes. */
static enum response_state feed(struct response_reader *r, struct text *body, const char *text,
                                size_t length, size_t cut)
{
	const size_t ends[] = { cut, length };
	size_t used = 0;

	response_reader_init(r);
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		while (r->state == LOAD_RESPONSE_HEAD && used < ends[i]) {
			/* exactly what is there, so that a sanitizer sees reading beyond it */
			size_t n = ends[i] - used;
			char *piece = malloc(n);
			long head;

			assert_non_null(piece);
			memcpy(piece, text + used, n);
			head = response_reader_head(r, piece, n);
			free(piece);
			if (head < 0)
				return LOAD_RESPONSE_BAD;
			if (head == 0)
				break;
			used += (size_t)head;
		}
		if (r->state != LOAD_RESPONSE_HEAD)
			used += response_reader_body(r, text + used, ends[i] - used, body);
	}
	return r->state;
}

static void expect_answer(const char *text, const struct outcome *expected)
{
	size_t length = strlen(text);

	for (size_t cut = 0; cut <= length; cut++) {
		char memory[256];
		struct response_reader r;
		struct text body;

		text_init(&body, memory, sizeof memory);
		feed(&r, &body, text, length, cut);
		assert_true(response_reader_eof(&r));
		assert_int_equal(r.status, expected->status);
		assert_int_equal(r.keep_alive, expected->keep_alive);
		assert_string_equal(memory, expected->body);
	}
}

static void answers_of_every_framing(void **state)
{
	(void)state;
	expect_answer("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",
	              &(struct outcome){ 201, true, "hello" });
	expect_answer("HTTP/1.1 200\r\ncontent-length:0\r\n\r\n",
	              &(struct outcome){ 200, true, "" });
	expect_answer("HTTP/1.1 204 No Content\r\nX: y\r\n\r\n",
	              &(struct outcome){ 204, true, "" });
	expect_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	              &(struct outcome){ 304, true, "" });
	expect_answer(
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n"
		"X: y\r\nZ:\r\n\r\n",
		&(struct outcome){ 200, true, "abc0123456789" });
	expect_answer(
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2"
		"\r\n\r\nok",
		&(struct outcome){ 200, true, "ok" });
	expect_answer("HTTP/1.1 200 OK\r\n\r\nto the end",
	              &(struct outcome){ 200, false, "to the end" });
}

static void whether_the_connection_stays(void **state)
{
	(void)state;
	expect_answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	              &(struct outcome){ 200, false, "" });
	expect_answer("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
	              &(struct outcome){ 200, false, "" });
	expect_answer("HTTP/1.1 200 OK\r\nConnection: closed\r\nContent-Length: 0\r\n\r\n",
	              &(struct outcome){ 200, true, "" });
	expect_answer("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n.",
	              &(struct outcome){ 200, false, "." });
	expect_answer("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n.",
	              &(struct outcome){ 200, true, "." });
	/* RFC 9112 6.3: Transfer-Encoding wins, and one should not trust what follows */
	expect_answer(
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
		&(struct outcome){ 200, false, "" });
}

static void what_is_no_answer(void **state)
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
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		size_t length = strlen(texts[i]);

		for (size_t cut = 0; cut <= length; cut++) {
			struct response_reader r;

			if (feed(&r, NULL, texts[i], length, cut) != LOAD_RESPONSE_BAD)
				fail_msg("cut at %zu: %s", cut, texts[i]);
		}
	}
}

static void an_answer_that_ends_early_is_not_complete(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

	(void)state;
	for (size_t length = 0; length < strlen(text); length++) {
		struct response_reader r;

		feed(&r, NULL, text, length, 0);
		assert_false(response_reader_eof(&r));
	}
}

static void what_follows_an_answer_is_left(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1";
	struct response_reader r;
	long head;

	(void)state;
	response_reader_init(&r);
	head = response_reader_head(&r, text, strlen(text));
	assert_int_equal(head, strlen("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
	assert_int_equal(response_reader_body(&r, text + head, strlen(text + head), NULL), 2);
	assert_int_equal(r.state, LOAD_RESPONSE_DONE);
	assert_int_equal(r.body_bytes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_of_every_framing),
		cmocka_unit_test(whether_the_connection_stays),
		cmocka_unit_test(what_is_no_answer),
		cmocka_unit_test(an_answer_that_ends_early_is_not_complete),
		cmocka_unit_test(what_follows_an_answer_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

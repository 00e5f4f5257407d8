/* What darkroom-load makes of an upload's JSON: the variants to fetch, and everything that is no
 * such answer. */
#include "load/jpeg_check.c"
#include "load/json_reader.c"
#include "load/url.c"
#include "load/verify.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct url url;
static struct verify *verify;

static int set_up(void **state)
{
	(void)state;
	verify = verify_new(&url);
	return url_parse(&url, "http://127.0.0.1:80/images") && verify ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	verify_free(verify);
	return 0;
}

static enum verify_action begin(int status, const char *body)
{
	verify_reset(verify);
	text_puts(&verify->body, body);
	return verify_begin(verify, status);
}

static void json_is_checked_whole(void **state)
{
	static const char *const good[] = { "{}", " [] ",
		                            "[1,-0.5e+3,true,false,null,\"\\u00e4\\n\"]",
		                            "{\"a\":{\"b\":[{}]}}", "0" };
	static const char *const bad[] = { "",       "{",     "[1,]", "{\"a\"}",   "{\"a\":}",
		                           "{a:1}",  "[1 2]", "01",   "1.",        "-",
		                           "1e",     "tru",   "\"",   "\"\\x\"",   "\"\\u12g4\"",
		                           "\"\n\"", "{}x",   "[}",   "{\"a\":1,}" };
	struct load_json value;
	char deep[200];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++)
		assert_true(load_json_parse(&value, good[i], strlen(good[i])));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (load_json_parse(&value, bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	assert_false(load_json_parse(&value, deep, 200));
	assert_true(load_json_parse(&value, deep + 80, 40));
}

static void strings_are_unescaped(void **state)
{
	static const struct {
		const char *json, *text; /* NULL: refused */
	} cases[] = {
		{ "\"a\\/b\\\"\\\\\"", "a/b\"\\" },
		{ "\"\\u0041\\u007e\"", "A~" },
		{ "\"\\u00e4\"", NULL },
		{ "\"\\u0000\"", NULL },
		{ "\"\\u0800\"", NULL },
		{ "\"\xc3\xa4\"", NULL },
		{ "5", NULL },
		{ "\"123456789\"", "123456789" },
		{ "\"1234567890\"", NULL },
		{ "\"\"", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct load_json value;
		char buffer[10];

		assert_true(load_json_parse(&value, cases[i].json, strlen(cases[i].json)));
		assert_int_equal(load_json_ascii(&value, buffer, sizeof buffer),
		                 cases[i].text != NULL);
		if (cases[i].text)
			assert_string_equal(buffer, cases[i].text);
	}
}

static void variants_of_all_images_are_fetched(void **state)
{
	(void)state;
	assert_int_equal(
		begin(201,
	              "{\"images\":[{\"id\":1,\"variants\":{\"m\":{\"url\":\"/m.jpg\",\"width\":8,\"height\":6,\"bytes\":"
	              "77},\"t\":{\"url\":\"http://127.0.0.1:80\\/t.jpg\",\"width\":2,\"height\":1}}},{\"variants\":{\"m\":"
	              "{\"url\":\"/2\",\"width\":3,\"height\":4}}}]}"),
		VERIFY_FETCH);
	assert_int_equal(verify->count, 3);
	assert_string_equal(verify->variants[1].path, "/t.jpg");
	assert_int_equal(verify->variants[0].bytes, 77);
	assert_int_equal(verify->variants[2].height, 4);
	assert_non_null(
		strstr(verify_request(verify), "GET /m.jpg HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"));
}

static void answers_without_variants_are_wrong(void **state)
{
	static const char *const bodies[] = {
		"",
		"{}",
		"[]",
		"{\"images\":[]}",
		"{\"images\":7}",
		"{\"images\":[{}]}",
		"{\"images\":[{\"variants\":{}}]}",
		"{\"images\":[{\"variants\":{\"a\":{\"width\":1,\"height\":1}}}]}",
		"{\"images\":[{\"variants\":{\"a\":{\"url\":\"/a\",\"width\":-1,\"height\":1}}}]}",
		"{\"images\":[{\"variants\":{\"a\":{\"url\":\"//example.org/a\",\"width\":1,\"height\":1}}}]}",
		"{\"images\":[{\"variants\":{\"a\":{\"url\":\"/a b\",\"width\":1,\"height\":1}}}]}",
		"{\"images\":[{\"variants\":{\"a\":{\"url\":\"http://127.0.0.1:800/a\",\"width\":1,\"height\":1}}}]}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		assert_int_equal(begin(201, bodies[i]), VERIFY_END);
		assert_int_equal(verify->wrong, 1);
	}
}

static void an_image_in_the_making_is_asked_for_again(void **state)
{
	struct response_reader r = { .status = 202 };

	(void)state;
	assert_int_equal(
		begin(202, "{\"images\":[{\"url\":\"/images/1\",\"status\":\"processing\"}]}"),
		VERIFY_FETCH);
	assert_non_null(strstr(verify_request(verify), "GET /images/1 "));
	assert_int_equal(verify_answer(verify, &r), VERIFY_WAIT);
	verify_request(verify);
	r.status = 200;
	text_puts(&verify->body,
	          "{\"variants\":{\"m\":{\"url\":\"/m\",\"width\":1,\"height\":1}}}");
	assert_int_equal(verify_answer(verify, &r), VERIFY_FETCH);
	assert_non_null(strstr(verify_request(verify), "GET /m "));
	assert_int_equal(verify_answer(verify, &r), VERIFY_END);
	assert_int_equal(verify->wrong, 1);
	assert_non_null(strstr(verify->problem, "not sent as image/jpeg"));
}

static void urls(void **state)
{
	static const char *const bad[] = { "",
		                           "127.0.0.1",
		                           "https://h/",
		                           "http://",
		                           "http://:80/",
		                           "http://h:0/",
		                           "http://h:65536/",
		                           "http://h:8x/",
		                           "http://u@h/",
		                           "http://h/a b",
		                           "http://[::1",
		                           "http://[]/",
		                           "http://h?x" };
	struct url u;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (url_parse(&u, bad[i]))
			fail_msg("accepted: %s", bad[i]);
	assert_true(url_parse(&u, "HTTP://example.org"));
	assert_string_equal(u.path, "/images");
	assert_string_equal(u.port, "80");
	assert_true(url_parse(&u, "http://[::1]:8080/up?x=1#here"));
	assert_string_equal(u.host, "::1");
	assert_string_equal(u.authority, "[::1]:8080");
	assert_string_equal(u.path, "/up?x=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_checked_whole),
		cmocka_unit_test(strings_are_unescaped),
		cmocka_unit_test(variants_of_all_images_are_fetched),
		cmocka_unit_test(answers_without_variants_are_wrong),
		cmocka_unit_test(an_image_in_the_making_is_asked_for_again),
		cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

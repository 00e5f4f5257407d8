/* test_verify.c - answers to uploads: the JSON, the variants to fetch, and unusable answers. */
#include "base/json_reader.c"
#include "load/jpeg_check.c"
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
	static const char *const bad[] = { "",       "{",     "[1,]",  "{\"a\"}",    "{\"a\":}",
		                           "{a:1}",  "[1 2]", "01",    "1.",         "-",
		                           "1e",     "tru",   "\"",    "\"\\x\"",    "\"\\u12g4\"",
		                           "\"\n\"", "{}x",   "[}",    "{\"a\":1,}", "{'a':1}",
		                           "[NaN]",  "\"\\",  "\"\\u1" };
	char deep[201] = "";

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++)
		assert_non_null(json_reader_check(good[i], strlen(good[i])));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (json_reader_check(bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	assert_null(json_reader_check("[]\0]", 4));
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	assert_null(json_reader_check(deep, 200));
	deep[120] = '\0';
	assert_non_null(json_reader_check(deep + 80, 40));
}

static void json_strings_are_unescaped(void **state)
{
	static const struct {
		const char *json, *text; /* NULL: refused */
	} cases[] = {
		{ "\"a\\/b\\\"\\\\\"", "a/b\"\\" },
		{ "\"\\\\a\"", "\\a" },
		{ "\"\\u0041\\u007e\"", "A~" },
		{ "\"\\u00e4\"", NULL },
		{ "\"\\u0000\"", NULL },
		{ "\"\\u0800\"", NULL },
		{ "\"\xc3\xa4\"", NULL },
		{ "\"\\n\"", NULL },
		{ "5", NULL },
		{ "\"123456789\"", "123456789" },
		{ "\"1234567890\"", NULL },
		{ "\"\"", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const char *value = json_reader_check(cases[i].json, strlen(cases[i].json));
		char buffer[10];

		assert_non_null(value);
		assert_int_equal(json_reader_ascii(value, buffer, sizeof buffer),
		                 cases[i].text != NULL);
		if (cases[i].text)
			assert_string_equal(buffer, cases[i].text);
	}
}

static void json_numbers_are_integers(void **state)
{
	static const char *const refused[] = {
		"-1", "1.0", "1e3", "9007199254740993", "99999999999999999999", "\"1\"", "null"
	};
	uint64_t n;

	(void)state;
	assert_true(json_reader_uint("9007199254740992", &n) && n == UINT64_C(1) << 53);
	assert_true(json_reader_uint("0", &n) && n == 0);
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		assert_false(json_reader_uint(refused[i], &n));
	assert_false(json_reader_uint(NULL, &n));
}

static void json_members_are_found_by_name(void **state)
{
	static const char text[] =
		" {\"ab\" : [ 1 , {\"a\":2} ,\"]\"], \"a\":3,\"a\\\"\":4, \"\":{} } ";
	const char *object = json_reader_check(text, strlen(text)), *list, *value = NULL;
	uint64_t n;

	(void)state;
	assert_non_null(object);
	assert_true(json_reader_uint(json_reader_member(object, "a"), &n) && n == 3);
	assert_null(json_reader_member(object, "b"));
	list = json_reader_member(object, "ab");
	for (unsigned i = 0; i < 3; i++) {
		value = json_reader_next(list, value);
		assert_non_null(value);
	}
	assert_null(json_reader_next(list, value));
	assert_null(json_reader_next(value, NULL));
	assert_null(json_reader_member(list, "a"));
	assert_null(json_reader_next(json_reader_member(object, ""), NULL));
}

static void variants_of_all_images_are_fetched(void **state)
{
	static const char body[] =
		"{\"images\":[{\"id\":1,\"variants\":{"
		"\"m\":{\"url\":\"/m.jpg\",\"width\":8,\"height\":6,\"bytes\":77},"
		"\"t\":{\"url\":\"http://127.0.0.1:80\\/t.jpg\",\"width\":2,\"height\":1}}},"
		"{\"variants\":{\"m\":{\"url\":\"/2\",\"width\":3,\"height\":4}}}]}";

	(void)state;
	assert_int_equal(begin(201, body), VERIFY_FETCH);
	assert_int_equal(verify->count, 3);
	assert_string_equal(verify->variants[1].path, "/t.jpg");
	assert_int_equal(verify->variants[0].bytes, 77);
	assert_int_equal(verify->variants[2].height, 4);
	assert_non_null(
		strstr(verify_request(verify), "GET /m.jpg HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"));
}

/* Starts verifying the announcement of one variant with these members. */
static enum verify_action begin_variant(const char *members)
{
	char body[200];

	snprintf(body, sizeof body, "{\"images\":[{\"variants\":{\"a\":{%s}}}]}", members);
	return begin(201, body);
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
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		assert_int_equal(begin(201, bodies[i]), VERIFY_END);
		assert_int_equal(verify->wrong, 1);
	}
}

static void unusable_variants_are_wrong(void **state)
{
	static const char *const variants[] = {
		"\"width\":1,\"height\":1",
		"\"url\":\"/a\",\"width\":-1,\"height\":1",
		"\"url\":\"//example.org/a\",\"width\":1,\"height\":1",
		"\"url\":\"/a b\",\"width\":1,\"height\":1",
		"\"url\":\"http://127.0.0.1:800/a\",\"width\":1,\"height\":1",
	};

	(void)state;
	assert_int_equal(begin_variant("\"url\":\"/a\",\"width\":1,\"height\":1"), VERIFY_FETCH);
	for (size_t i = 0; i < COUNT_OF(variants); i++) {
		assert_int_equal(begin_variant(variants[i]), VERIFY_END);
		assert_int_equal(verify->wrong, 1);
	}
}

static void an_image_still_being_processed_is_polled(void **state)
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

static void urls_are_parsed(void **state)
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
		cmocka_unit_test(json_strings_are_unescaped),
		cmocka_unit_test(json_numbers_are_integers),
		cmocka_unit_test(json_members_are_found_by_name),
		cmocka_unit_test(variants_of_all_images_are_fetched),
		cmocka_unit_test(answers_without_variants_are_wrong),
		cmocka_unit_test(unusable_variants_are_wrong),
		cmocka_unit_test(an_image_still_being_processed_is_polled),
		cmocka_unit_test(urls_are_parsed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

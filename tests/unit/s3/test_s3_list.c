/* test_s3_list.c - answers of stores, whole and cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "s3/s3_list.h"

#define BEGIN                                        \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>" \
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
#define ITEM(key) "<Contents><Key>" key "</Key><ETag>&quot;x&quot;</ETag></Contents>"
#define END "</ListBucketResult>"

static const char two[] =
	BEGIN "<IsTruncated>true</IsTruncated>" ITEM("a/&amp;&lt;&gt;&quot;&apos;") ITEM("a/1")
		ITEM("a/2&#x9;&#33;") ITEM("a/3 \xc3\xa4") ITEM("a/4") END;

static void keys_are_read(void **state)
{
	static const char *const wanted[] = { "a/&<>\"'", "a/1", "a/2\t!", "a/3 \xc3\xa4", "a/4" };
	struct s3_listed listed;
	struct s3_list l;

	(void)state;
	assert_true(s3_list_begin(&l, two, sizeof two - 1));
	assert_true(l.is_truncated);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		assert_true(s3_list_next(&l, &listed));
		assert_string_equal(listed.name, wanted[i]);
		assert_true(listed.is_plain == (i == 1 || i == 4));
	}
	assert_false(s3_list_next(&l, &listed));
}

/* Of such a key of another program, the list must not be damaged. */
static void entities_are_characters_of_utf_8(void **state)
{
	static const char list[] = BEGIN "<IsTruncated>false</IsTruncated>" ITEM("a/&#127;&#x80;")
		ITEM("a/\xc3\xa4 &#228;") ITEM("a/&#x7FF;&#x800;") ITEM("a/&#8364;&#xFFFF;")
			ITEM("a/&#x10FFFF;") END;
	static const char *const wanted[] = { "a/\x7f\xc2\x80", "a/\xc3\xa4 \xc3\xa4",
		                              "a/\xdf\xbf\xe0\xa0\x80",
		                              "a/\xe2\x82\xac\xef\xbf\xbf", "a/\xf4\x8f\xbf\xbf" };
	static const char *const none[] = { "a/&#0;", "a/&#x200000;", "a/&#xFFFFFF;",
		                            "a/&x;",  "a/&#;",        "a/&#99999999;" };
	struct s3_listed listed;
	struct s3_list l;
	char text[256];

	(void)state;
	assert_true(s3_list_begin(&l, list, sizeof list - 1));
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		assert_true(s3_list_next(&l, &listed));
		assert_string_equal(listed.name, wanted[i]);
		assert_false(listed.is_plain);
	}
	assert_true(s3_list_is_right(list, sizeof list - 1, "a", "/", ""));
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		int n = snprintf(text, sizeof text,
		                 BEGIN "<IsTruncated>false</IsTruncated>" ITEM("%s") END, none[i]);

		assert_true(s3_list_begin(&l, text, (size_t)n));
		assert_true(s3_list_next(&l, &listed));
		assert_string_equal(listed.name, "");
	}
}

static bool is_right(const char *prefix, const char *after)
{
	return s3_list_is_right(two, sizeof two - 1, "", prefix, after);
}

static void keys_begin_with_the_prefix_and_come_in_order(void **state)
{
	static const char twice[] =
		BEGIN "<IsTruncated>false</IsTruncated>" ITEM("b") ITEM("b") END;
	static const char back[] = BEGIN "<IsTruncated>false</IsTruncated>" ITEM("b") ITEM("a") END;
	static const char none[] = BEGIN "<IsTruncated>true</IsTruncated>" END;
	static const char empty[] = BEGIN "<IsTruncated>false</IsTruncated>" ITEM("") END;
	static const char strange[] = BEGIN "<IsTruncated>false</IsTruncated>" ITEM("a&b;") END;

	(void)state;
	assert_true(is_right("a/", "") && is_right("", "") && is_right("a/", "a/"));
	assert_true(is_right("a/", "A/9") && is_right("a/", "a/!"));
	assert_false(is_right("a/1", "") || is_right("b", "") || is_right("a/", "a/&<>\"'"));
	assert_false(is_right("a/", "a/1") || is_right("a/", "b"));
	assert_false(s3_list_is_right(twice, sizeof twice - 1, "", "", ""));
	assert_false(s3_list_is_right(back, sizeof back - 1, "", "", ""));
	assert_false(s3_list_is_right(none, sizeof none - 1, "", "", ""));
	assert_false(s3_list_is_right(empty, sizeof empty - 1, "", "", ""));
	assert_false(s3_list_is_right(strange, sizeof strange - 1, "", "", ""));
}

#define TIMED(key, time) \
	"<Contents><Key>" key "</Key><LastModified>" time "</LastModified></Contents>"

static void times_belong_to_their_keys(void **state)
{
	static const char list[] =
		BEGIN "<IsTruncated>false</IsTruncated>" TIMED("a", "2009-10-12T17:50:30.000Z")
			ITEM("b") TIMED("c", "2009-10-12T17:50:31Z") TIMED("d", "2009-10-12")
				TIMED("e", "2009-10-12 17:50:30.000Z")
					TIMED("f", "1970-01-01T00:00:01.5Z") END;
	static const time_t wanted[] = { 1255369830, 0, 1255369831, 0, 0, 1 };
	struct s3_listed listed;
	struct s3_list l;

	(void)state;
	assert_true(s3_list_begin(&l, list, sizeof list - 1));
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		assert_true(s3_list_next(&l, &listed));
		assert_int_equal(listed.name[0], 'a' + i);
		assert_int_equal(listed.modified, wanted[i]);
	}
	assert_false(s3_list_next(&l, &listed));
}

static void too_long_a_key_is_none(void **state)
{
	char list[2 * S3_NAME_MAX], name[S3_NAME_MAX + 1];
	struct s3_listed listed;
	struct s3_list l;

	(void)state;
	for (size_t length = S3_NAME_MAX - 1; length <= S3_NAME_MAX; length++) {
		memset(name, 'a', length);
		name[length] = '\0';
		int n = snprintf(list, sizeof list,
		                 BEGIN "<IsTruncated>false</IsTruncated>" ITEM("%s") END, name);

		assert_true(s3_list_begin(&l, list, (size_t)n));
		assert_true(s3_list_next(&l, &listed));
		assert_int_equal(strlen(listed.name), length < S3_NAME_MAX ? length : 0);
	}
}

static void empty_list(void **state)
{
	static const char none[] = BEGIN "<IsTruncated>false</IsTruncated>" END;
	struct s3_listed listed;
	struct s3_list l;

	(void)state;
	assert_true(s3_list_begin(&l, none, sizeof none - 1));
	assert_false(l.is_truncated);
	assert_false(s3_list_next(&l, &listed));
}

/* A list that is cut would hide images. */
static void cut_lists_are_refused(void **state)
{
	struct s3_list l;

	(void)state;
	for (size_t n = 0; n < sizeof two - 1; n++) {
		char *copy = malloc(n + 1); /* exactly: for the sanitizer */

		memcpy(copy, two, n);
		assert_false(s3_list_begin(&l, copy, n));
		free(copy);
	}
}

static void codes_of_errors(void **state)
{
	static const char body[] = "<Error><Code>NoSuchKey</Code><Message/></Error>";
	static const char strange[] = "<Error><Code>No\nKey</Code></Error>";
	char code[16];

	(void)state;
	s3_get_code(body, sizeof body - 1, code, sizeof code);
	assert_string_equal(code, "NoSuchKey");
	s3_get_code(body, 20, code, sizeof code);
	assert_string_equal(code, "");
	s3_get_code(body, sizeof body - 1, code, 4);
	assert_string_equal(code, "");
	s3_get_code(strange, sizeof strange - 1, code, sizeof code);
	assert_string_equal(code, "");
	s3_get_code("", 0, code, sizeof code);
	assert_string_equal(code, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(entities_are_characters_of_utf_8),
		cmocka_unit_test(times_belong_to_their_keys),
		cmocka_unit_test(keys_begin_with_the_prefix_and_come_in_order),
		cmocka_unit_test(too_long_a_key_is_none),
		cmocka_unit_test(empty_list),
		cmocka_unit_test(cut_lists_are_refused),
		cmocka_unit_test(codes_of_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

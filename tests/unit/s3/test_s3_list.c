/* test_s3_list.c - answers of stores, whole and cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "s3/s3_list.h"

#define BEGIN                                        \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>" \
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
#define ITEM(key) "<Contents><Key>" key "</Key><ETag>&quot;x&quot;</ETag></Contents>"
#define END "</ListBucketResult>"

static const char two[] = BEGIN "<IsTruncated>true</IsTruncated>" ITEM("image/1")
	ITEM("with&amp;sign") ITEM("with%20space") ITEM("") ITEM("image/2") END;

static void keys_are_read(void **state)
{
	struct s3_list l;
	char key[16];

	(void)state;
	assert_true(s3_list_begin(&l, two, sizeof two - 1));
	assert_true(l.is_truncated);
	assert_true(s3_list_next(&l, key, sizeof key));
	assert_string_equal(key, "image/1");
	assert_true(s3_list_next(&l, key, sizeof key));
	assert_string_equal(key, "image/2");
	assert_false(s3_list_next(&l, key, sizeof key));
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
	struct s3_list l;
	char key[16];

	(void)state;
	assert_true(s3_list_begin(&l, list, sizeof list - 1));
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		assert_true(s3_list_next(&l, key, sizeof key));
		assert_int_equal(key[0], 'a' + i);
		assert_int_equal(l.modified, wanted[i]);
	}
	assert_false(s3_list_next(&l, key, sizeof key));
}

static void too_long_a_key_is_left_out(void **state)
{
	struct s3_list l;
	char key[7];

	(void)state;
	assert_true(s3_list_begin(&l, two, sizeof two - 1));
	assert_false(s3_list_next(&l, key, sizeof key));
}

static void empty_list(void **state)
{
	static const char none[] = BEGIN "<IsTruncated>false</IsTruncated>" END;
	struct s3_list l;
	char key[16];

	(void)state;
	assert_true(s3_list_begin(&l, none, sizeof none - 1));
	assert_false(l.is_truncated);
	assert_false(s3_list_next(&l, key, sizeof key));
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
		cmocka_unit_test(times_belong_to_their_keys),
		cmocka_unit_test(too_long_a_key_is_left_out),
		cmocka_unit_test(empty_list),
		cmocka_unit_test(cut_lists_are_refused),
		cmocka_unit_test(codes_of_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_s3_keys.c - files of keys. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "s3/s3_sign.h"

static int parse(const char *text, struct s3_keys *s)
{
	char copy[512];

	snprintf(copy, sizeof copy, "%s", text);
	return s3_keys_parse(copy, strlen(copy), s);
}

static void keys_are_read(void **state)
{
	struct s3_keys s;

	(void)state;
	assert_int_equal(parse("# of the photos\n[default]\n  aws_access_key_id = AKIA\r\n"
	                       "\naws_secret_access_key=a/b+c==",
	                       &s),
	                 0);
	assert_string_equal(s.id, "AKIA");
	assert_string_equal(s.secret, "a/b+c==");
	assert_string_equal(s.session, "");
	assert_int_equal(parse("aws_session_token = t\naws_access_key_id = i\n"
	                       "aws_secret_access_key = s\n",
	                       &s),
	                 0);
	assert_string_equal(s.session, "t");
}

static void wrong_files_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"aws_access_key_id = a\n",
		"aws_secret_access_key = a\n",
		"aws_access_key_id = a\naws_secret_access_key =\n",
		"aws_access_key_id = a\naws_access_key_id = a\naws_secret_access_key = s\n",
		"aws_access_key_id = a\naws_secret_access_key = s s\n",
		"aws_access_key_id = a\naws_secret_access_key = s\nregion = x\n",
		"aws_access_key_id = a\naws_secret_access_key = s\njunk\n",
	};
	char zero[] = "aws_access_key_id = a\0\naws_secret_access_key = s";
	char text[512] = "aws_secret_access_key = s\naws_access_key_id = ";
	struct s3_keys s;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (parse(wrong[i], &s) != -EINVAL)
			fail_msg("'%s'", wrong[i]);
	memset(text + strlen(text), 'x', sizeof s.id); /* one too long */
	assert_int_equal(parse(text, &s), -EINVAL);
	text[strlen(text) - 1] = '\0';
	assert_int_equal(parse(text, &s), 0);
	assert_int_equal(s3_keys_parse(zero, sizeof zero - 1, &s), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(wrong_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_handle_upload.c - the bounds of the member `errors`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "resource/handle_upload.c"

/* Appends an error whose names have this length in bytes. Returns what it adds. */
static const char *add(struct errors *e, struct text *t, size_t names)
{
	static const struct problem problem = { .status = 415, .slug = "s", .title = "t" };
	char name[100] = { 0 };
	size_t at = t->length;

	assert_true(names < 2 * sizeof name);
	memset(name, 'n', names / 2);
	error_json(e, name, name, &problem);
	return t->data + at;
}

static void names_are_left_out_when_they_are_too_long_together(void **state)
{
	char data[4096];
	struct text t;
	struct json j = { .text = &t };
	struct errors e = { .j = &j, .names_left = 100, .errors_left = 5 };

	(void)state;
	text_init(&t, data, sizeof data);
	json_array(&j, NULL);
	assert_non_null(strstr(add(&e, &t, 60), "filename"));
	assert_null(strstr(add(&e, &t, 60), "filename"));
	assert_non_null(strstr(add(&e, &t, 40), "filename"));
	assert_null(strstr(add(&e, &t, 2), "filename"));
	assert_non_null(strstr(add(&e, &t, 0), "415"));
	assert_int_equal(e.omitted, 0);
	assert_string_equal(add(&e, &t, 0), "");
	assert_int_equal(e.omitted, 1);
	assert_int_equal(e.names_left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_left_out_when_they_are_too_long_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

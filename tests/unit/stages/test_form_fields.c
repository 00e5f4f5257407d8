/* test_form_fields.c - the files and the fields that are kept of a form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "form_decode.c" /* NOLINT(bugprone-suspicious-include): its form is its own */

#define FILES 300 /* more than the smallest list has room for */

static struct form *form;

static int set_up(void **state)
{
	(void)state;
	form = pool_get(sizeof *form);
	if (form)
		*form = (struct form){ .depth = 0 };
	return form ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pool_put(form);
	pool_thread_fini();
	return 0;
}

static void files_are_kept_in_order_while_the_list_grows(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		const struct multipart_part part = { .body = { i, 2 * i } };

		assert_true(add_file(&form, &part));
		assert_int_equal(form->file_count, i + 1);
		assert_in_range(form->file_room, i + 1, 16 * FILES);
	}
	for (size_t i = 0; i < FILES; i++) {
		assert_int_equal(form->file[i].body.at, i);
		assert_int_equal(form->file[i].body.length, 2 * i);
	}
}

/* Returns whether the form takes the field. */
static bool keep(const char *name, const char *value, bool is_file, struct problem *problem)
{
	char body[64];
	const struct multipart_part part = { .name = { 0, strlen(name) },
		                             .body = { strlen(name), strlen(value) },
		                             .has_file_name = is_file };

	snprintf(body, sizeof body, "%s%s", name, value);
	return keep_field(form, &part, body, "title author", problem);
}

static void fields_with_a_meaning_are_kept(void **state)
{
	struct problem problem;

	(void)state;
	assert_true(keep("other", "x", false, &problem));
	assert_true(keep("", "x", false, &problem));
	assert_true(keep("focus", "no point", true, &problem));
	assert_int_equal(form->metadata.length, 0);
	assert_string_equal(form->focus, "");
	assert_true(keep("author", "me", false, &problem));
	assert_true(form->metadata.length > 0);
	assert_true(keep("focus", "30%:70%", false, &problem));
	assert_string_equal(form->focus, "30%:70%");
}

static void wrong_points_are_refused(void **state)
{
	struct problem problem;

	(void)state;
	assert_false(keep("focus", "30%", false, &problem));
	assert_int_equal(problem.status, 400);
	assert_string_equal(problem.slug, "malformed-form");
	assert_string_equal(form->focus, "");
	assert_true(keep("focus", "0%:100%", false, &problem));
	assert_false(keep("focus", "0%:100%", false, &problem));
	assert_string_equal(problem.detail, "the field focus occurs twice");
	assert_string_equal(form->focus, "0%:100%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_kept_in_order_while_the_list_grows,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(fields_with_a_meaning_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_points_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_conf_files.c - which files a configuration makes, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf_files.h"

static struct conf conf;

static void add_variant(const char *name, const char *formats, enum conf_when when)
{
	struct conf_variant *v = &conf.variant[conf.variant_count++];

	snprintf(v->name, sizeof v->name, "%s", name);
	snprintf(v->formats, sizeof v->formats, "%s", formats);
	v->when = when;
}

static int set_up(void **state)
{
	(void)state;
	memset(&conf, 0, sizeof conf);
	return 0;
}

static void jpegs_come_first_and_avif_before_webp(void **state)
{
	static const struct {
		const char *name, *label;
		unsigned variant;
		enum file_format format;
	} expected[] = {
		{ "a.jpg", "a", 0, FILE_JPEG },       { "b.jpg", "b", 1, FILE_JPEG },
		{ "c.jpg", "c", 2, FILE_JPEG },       { "b.avif", "b.avif", 1, FILE_AVIF },
		{ "a.webp", "a.webp", 0, FILE_WEBP }, { "b.webp", "b.webp", 1, FILE_WEBP },
	};
	struct conf_files files;

	(void)state;
	add_variant("a", "jpeg, webp", CONF_WHEN_UPLOAD);
	add_variant("b", "webp avif jpeg", CONF_WHEN_IDLE);
	add_variant("c", "jpeg", CONF_WHEN_IDLE);
	conf_files_list(&files, &conf);
	assert_int_equal(files.count, COUNT_OF(expected));
	assert_int_equal(conf_files_count(&conf), COUNT_OF(expected));
	for (unsigned i = 0; i < files.count; i++) {
		assert_string_equal(files.file[i].name, expected[i].name);
		assert_string_equal(files.file[i].label, expected[i].label);
		assert_int_equal(files.file[i].variant, expected[i].variant);
		assert_int_equal(files.file[i].format, expected[i].format);
		assert_true(conf_files_have_label(&conf, expected[i].label));
	}
	assert_int_equal(files.idle, 1 << 3 | 1 << 5); /* never a JPEG */
	assert_false(conf_files_have_label(&conf, "c.avif"));
	assert_false(conf_files_have_label(&conf, "a.jpg"));
	assert_false(conf_files_have_label(&conf, ""));
}

static void a_format_is_there_if_a_variant_has_it(void **state)
{
	(void)state;
	add_variant("a", "jpeg", CONF_WHEN_UPLOAD);
	assert_true(conf_files_have(&conf, FILE_JPEG));
	assert_false(conf_files_have(&conf, FILE_AVIF) || conf_files_have(&conf, FILE_WEBP));
	add_variant("b", "jpeg,webp", CONF_WHEN_UPLOAD);
	assert_true(conf_files_have(&conf, FILE_WEBP));
	assert_false(conf_files_have(&conf, FILE_AVIF));
	assert_true(conf_variant_has(&conf.variant[1], FILE_WEBP));
	assert_false(conf_variant_has(&conf.variant[0], FILE_WEBP));
}

/* The check of a configuration counts more than the list holds. */
static void a_list_has_a_bound(void **state)
{
	struct conf_files files;
	char name[8];

	(void)state;
	for (unsigned i = 0; i < CONF_VARIANT_MAX; i++) {
		snprintf(name, sizeof name, "v%u", i);
		add_variant(name, "jpeg avif webp", CONF_WHEN_IDLE);
	}
	conf_files_list(&files, &conf);
	assert_int_equal(files.count, CONF_FILE_MAX);
	assert_int_equal(conf_files_count(&conf), 3 * CONF_VARIANT_MAX);
	assert_int_equal(files.idle, 0xffff0000);
	assert_string_equal(files.file[CONF_FILE_MAX - 1].name, "v15.avif");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(jpegs_come_first_and_avif_before_webp, set_up),
		cmocka_unit_test_setup(a_format_is_there_if_a_variant_has_it, set_up),
		cmocka_unit_test_setup(a_list_has_a_bound, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_stored_lack.c - what an image lacks of a configuration: files, sizes, and each setting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/conf.h"
#include "store/stored_image.h"

#define SETTINGS                                                                                \
	"\"operations\":\"scale 9x9 fit\",\"enlarge\":false,\"quality\":80,\"chroma\":\"420\"," \
	"\"progressive\":true,\"optimize\":false"
#define SIZE "{\"width\":300,\"height\":200,"
#define VARIANTS "\"variants\":{\"a\":{\"bytes\":3},\"b\":{\"bytes\":5}}"
#define RECORD \
	",\"record\":{\"variants\":{\"a\":{" SETTINGS ",\"x\":1},\"b\":{" SETTINGS ",\"x\":1}}}"

static struct conf conf;
static struct stored_lack lack;
static char root[64];
static int root_fd;

static void shell(const char *command)
{
	char line[256];

	snprintf(line, sizeof line, "cd %s && %s", root, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	static const struct conf_variant variant = { .operations = "scale 9x9 fit",
		                                     .enlarge = CONF_NO,
		                                     .quality = 80,
		                                     .chroma = CONF_CHROMA_420,
		                                     .progressive = CONF_YES,
		                                     .optimize = CONF_NO };

	(void)state;
	conf.variant[0] = conf.variant[1] = conf.variant[2] = variant;
	strcpy(conf.variant[0].name, "a");
	strcpy(conf.variant[1].name, "b");
	strcpy(conf.variant[2].name, "c");
	conf.variant_count = 2;
	snprintf(root, sizeof root, "/tmp/darkroom-lack-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	shell("printf 123 > a.jpg; printf 12345 > b.jpg");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(root_fd);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static void check(const char *data, uint32_t missing, uint32_t differs)
{
	memset(&lack, 0xff, sizeof lack);
	assert_int_equal(stored_lack_find(&lack, &conf, root_fd, data, strlen(data)), 0);
	assert_int_equal(lack.missing, missing);
	assert_int_equal(lack.differs, differs);
	assert_int_equal(lack.pixels, 60000);
}

static void an_image_as_configured_lacks_nothing(void **state)
{
	(void)state;
	check(SIZE VARIANTS RECORD "}", 0, 0);
	assert_false(lack.has_original);
	assert_int_equal(lack.original_bytes, 0);
}

static void variants_without_their_file_are_missing(void **state)
{
	(void)state;
	conf.variant_count = 3;
	check(SIZE VARIANTS RECORD "}", 4, 0); /* c */
	conf.variant_count = 2;
	shell("printf 1234 > a.jpg");
	check(SIZE VARIANTS RECORD "}", 1, 0);
	shell("rm a.jpg; mv b.jpg fiveb; ln -s fiveb b.jpg"); /* the link has five bytes */
	check(SIZE VARIANTS RECORD "}", 3, 0);
	shell("rm b.jpg; mv fiveb b.jpg; mkdir a.jpg");
	check(SIZE VARIANTS RECORD "}", 1, 0);
	shell("rmdir a.jpg; printf 123 > a.jpg");
	check(SIZE "\"variants\":{\"a\":{\"bytes\":3},\"b\":{\"bytes\":\"5\"}}" RECORD "}", 2, 0);
	check(SIZE "\"variants\":{\"a\":{\"bytes\":3},\"b\":{}}" RECORD "}", 2, 0);
	check(SIZE "\"variants\":{}" RECORD "}", 3, 0);
}

static void the_longest_name_has_room(void **state)
{
	static char data[4096], command[128];
	char name[CONF_NAME_MAX];

	(void)state;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	conf.variant_count = 1;
	strcpy(conf.variant[0].name, name);
	snprintf(command, sizeof command, "mv a.jpg %s.jpg", name);
	shell(command);
	snprintf(data, sizeof data,
	         SIZE "\"variants\":{\"%s\":{\"bytes\":3}},"
	              "\"record\":{\"variants\":{\"%s\":{" SETTINGS ",\"x\":1}}}}",
	         name, name);
	check(data, 0, 0);
}

static void each_other_setting_is_seen(void **state)
{
	static const struct conf_variant others[] = {
		{ .operations = "scale 9x9 fill" },
		{ .enlarge = CONF_YES },
		{ .quality = 81 },
		{ .chroma = CONF_CHROMA_444 },
		{ .progressive = CONF_NO },
		{ .optimize = CONF_YES },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(others); i++) {
		struct conf_variant before = conf.variant[1], *v = &conf.variant[1];

		memcpy(v->operations, i == 0 ? others[i].operations : v->operations,
		       sizeof v->operations);
		v->enlarge = i == 1 ? others[i].enlarge : v->enlarge;
		v->quality = i == 2 ? others[i].quality : v->quality;
		v->chroma = i == 3 ? others[i].chroma : v->chroma;
		v->progressive = i == 4 ? others[i].progressive : v->progressive;
		v->optimize = i == 5 ? others[i].optimize : v->optimize;
		check(SIZE VARIANTS RECORD "}", 0, 2);
		*v = before;
	}
	check(SIZE VARIANTS RECORD "}", 0, 0);
}

static void settings_have_their_exact_text(void **state)
{
	static const char *const expected[] = {
		"{" SETTINGS "}",
		"{\"operations\":\"blur\",\"enlarge\":true,\"quality\":1,\"chroma\":\"444\","
		"\"progressive\":false,\"optimize\":true}",
	};
	const struct conf_variant other = { .operations = "blur",
		                            .enlarge = CONF_YES,
		                            .quality = 1,
		                            .chroma = CONF_CHROMA_444,
		                            .progressive = CONF_NO,
		                            .optimize = CONF_YES };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char data[256];
		struct text t;
		struct json j = { .text = &t };

		text_init(&t, data, sizeof data);
		json_object(&j, NULL);
		stored_settings_json(&j, i ? &other : &conf.variant[0], FILE_JPEG);
		json_object_end(&j);
		assert_string_equal(data, expected[i]);
	}
}

static void unknown_settings_are_others(void **state)
{
	(void)state;
	check(SIZE VARIANTS "}", 0, 3); /* of an earlier version */
	check(SIZE VARIANTS ",\"record\":{}}", 0, 3);
	check(SIZE VARIANTS ",\"record\":{\"variants\":{}}}", 0, 3);
	/* The settings are the beginning of the record. */
	check(SIZE VARIANTS ",\"record\":{\"variants\":{\"a\":{" SETTINGS
	                    "},\"b\":{\"x\":1," SETTINGS ",\"y\":1}}}}",
	      0, 3);
}

static void the_longest_settings_have_room(void **state)
{
	static char data[4096];
	char operations[CONF_TEXT_MAX];

	(void)state;
	conf.variant_count = 1;
	memset(operations, 'o', sizeof operations - 1);
	operations[sizeof operations - 1] = '\0';
	strcpy(conf.variant[0].operations, operations);
	snprintf(data, sizeof data,
	         SIZE VARIANTS
	         ",\"record\":{\"variants\":{\"a\":{\"operations\":\"%s\",%s,\"x\":1}}}}",
	         operations, strchr(SETTINGS, ',') + 1);
	check(data, 0, 0);
}

static void an_original_counts_if_it_has_bytes(void **state)
{
	(void)state;
	shell("printf 1234567 > original.jpg");
	check(SIZE VARIANTS RECORD "}", 0, 0);
	assert_true(lack.has_original);
	assert_int_equal(lack.original_bytes, 7);
	shell(": > original.jpg");
	check(SIZE VARIANTS RECORD "}", 0, 0);
	assert_false(lack.has_original);
	assert_int_equal(lack.original_bytes, 0);
	shell("printf 1 > original.jpg");
	check(SIZE VARIANTS RECORD "}", 0, 0);
	assert_true(lack.has_original);
	assert_int_equal(lack.original_bytes, 1);
}

static void what_the_daemon_did_not_write_is_refused(void **state)
{
	static const char *const data[] = {
		"",
		"[]",
		SIZE "\"variants\":[]}",
		SIZE "\"x\":{}}",
		SIZE VARIANTS ",\"record\":{\"variants\":[]}}",
		"{\"width\":1," VARIANTS "}",
		"{\"height\":1," VARIANTS "}",
		SIZE VARIANTS,
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(data); i++)
		assert_int_equal(stored_lack_find(&lack, &conf, root_fd, data[i], strlen(data[i])),
		                 -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_as_configured_lacks_nothing),
		TEST(variants_without_their_file_are_missing),
		TEST(the_longest_name_has_room),
		TEST(each_other_setting_is_seen),
		TEST(settings_have_their_exact_text),
		TEST(unknown_settings_are_others),
		TEST(the_longest_settings_have_room),
		TEST(an_original_counts_if_it_has_bytes),
		TEST(what_the_daemon_did_not_write_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_stored_info.c - what image.json says, and what is not one. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "store/store.h"
#include "store/stored_image.h"
#include "support/stored_fixture.h"

#define SUM(c) c c c c c c c c
#define A SUM("aaaa")
#define B SUM("bbbb")
#define O SUM("0123")
#define OWN SUM("9876")
#define SIZE "{\"width\":30,\"height\":20,"
#define VARIANTS "\"variants\":{\"a\":{\"bytes\":3},\"b\":{\"bytes\":5}},"
#define SUMS "\"variants\":{\"a\":{\"xxh128\":\"" A "\"},\"b\":{\"xxh128\":\"" B "\"}}"
#define UPLOAD "\"upload\":{\"bytes\":77,\"token\":\"site\"},"
#define ORIGINAL "\"original\":{\"bytes\":9,\"xxh128\":\"" O "\"},"
#define END ",\"xxh128\":\"" OWN "\"}}\n"
#define WHOLE SIZE VARIANTS "\"record\":{" UPLOAD ORIGINAL SUMS END

static struct stored_info info;

static int read_text(const char *data)
{
	memset(&info, 0xff, sizeof info);
	return stored_info_read(&info, data, strlen(data));
}

static void check_file(unsigned i, const char *name, uint64_t bytes, const char *sum)
{
	assert_string_equal(info.file[i].name, name);
	assert_int_equal(info.file[i].bytes, bytes);
	assert_string_equal(info.file[i].sum, sum);
}

static void a_record_is_read(void **state)
{
	(void)state;
	assert_int_equal(read_text(WHOLE), 0);
	assert_int_equal(info.width, 30);
	assert_int_equal(info.height, 20);
	assert_true(info.has_record);
	assert_int_equal(info.upload_bytes, 77);
	assert_string_equal(info.token, "site");
	assert_int_equal(info.file_count, 3);
	check_file(0, "a.jpg", 3, A);
	check_file(1, "b.jpg", 5, B);
	check_file(2, "original.jpg", 9, O);
	assert_int_equal(stored_info_bytes(&info), 17);
	assert_string_equal(info.own_sum, OWN);
	assert_int_equal(info.own_sum_at, strlen(WHOLE) - strlen(END));
}

static void an_image_of_an_earlier_version_has_no_sums(void **state)
{
	(void)state;
	assert_int_equal(read_text(SIZE "\"variants\":{\"a\":{\"bytes\":3}}}\n"), 0);
	assert_false(info.has_record);
	assert_int_equal(info.upload_bytes, 0);
	assert_string_equal(info.token, "");
	assert_string_equal(info.own_sum, "");
	assert_int_equal(info.own_sum_at, 0);
	assert_int_equal(info.file_count, 1);
	check_file(0, "a.jpg", 3, "");
}

static void token_and_original_may_be_missing(void **state)
{
	(void)state;
	assert_int_equal(read_text(SIZE VARIANTS "\"record\":{\"upload\":{\"bytes\":0}," SUMS END),
	                 0);
	assert_string_equal(info.token, "");
	assert_int_equal(info.upload_bytes, 0);
	assert_int_equal(info.file_count, 2);
	assert_int_equal(
		read_text(SIZE "\"variants\":{},\"record\":{" UPLOAD "\"variants\":{}" END), 0);
	assert_int_equal(info.file_count, 0);
	assert_int_equal(stored_info_bytes(&info), 0);
	char text[1024], token[SPOOL_TOKEN_MAX + 1];

	for (size_t n = SPOOL_TOKEN_MAX - 1; n <= SPOOL_TOKEN_MAX; n++) {
		memset(token, 't', n);
		token[n] = '\0';
		snprintf(text, sizeof text,
		         SIZE VARIANTS
		         "\"record\":{\"upload\":{\"bytes\":1,\"token\":\"%s\"}," SUMS END,
		         token);
		assert_int_equal(read_text(text), 0);
		assert_string_equal(info.token, n < SPOOL_TOKEN_MAX ? token : "");
	}
}

static void what_the_daemon_did_not_write_is_refused(void **state)
{
	static const char *const data[] = {
		"",
		"{}\n",
		"{\"width\":1," VARIANTS "\"record\":{" UPLOAD SUMS END,
		"{\"height\":1," VARIANTS "\"record\":{" UPLOAD SUMS END,
		SIZE "\"variants\":[],\"record\":{" UPLOAD SUMS END,
		SIZE "\"record\":{" UPLOAD SUMS END,
		/* without the variants' record, or with another kind of value */
		SIZE VARIANTS "\"record\":{" UPLOAD "\"x\":1" END,
		SIZE VARIANTS "\"record\":{" UPLOAD "\"variants\":[]" END,
		SIZE VARIANTS "\"record\":{" UPLOAD "\"variants\":{}" END,
		/* bytes and sums */
		SIZE
		"\"variants\":{\"a\":{\"bytes\":\"3\"},\"b\":{\"bytes\":5}},\"record\":{" UPLOAD
			SUMS END,
		SIZE "\"variants\":{\"a\":{}},\"record\":{" UPLOAD SUMS END,
		SIZE "\"variants\":{\"a\":{\"bytes\":3}},\"record\":{" UPLOAD
		     "\"variants\":{\"a\":{\"xxh128\":\"" A "a\"}}" END,
		SIZE "\"variants\":{\"a\":{\"bytes\":3}},\"record\":{" UPLOAD
		     "\"variants\":{\"a\":{\"xxh128\":\"aaa\"}}" END,
		SIZE "\"variants\":{\"a\":{\"bytes\":3}},\"record\":{" UPLOAD
		     "\"variants\":{\"a\":{\"xxh128\":7}}" END,
		/* the upload and the original */
		SIZE VARIANTS "\"record\":{" SUMS END,
		SIZE VARIANTS "\"record\":{\"upload\":{\"token\":\"site\"}," SUMS END,
		SIZE VARIANTS "\"record\":{" UPLOAD "\"original\":{\"xxh128\":\"" O "\"}," SUMS END,
		SIZE VARIANTS "\"record\":{" UPLOAD "\"original\":{\"bytes\":9}," SUMS END,
		/* the own sum */
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS "}}\n",
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS ",\"xxh128\":\"" OWN "\"}} ",
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS ",\"xxh128\":\"" OWN "\"} }",
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS ",\"xxh129\":\"" OWN "\"}}\n",
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS ",\"xxh128\":\"" OWN "9\"}}\n",
		/* no sum at its place: ,"x":" and 26 bytes */
		SIZE VARIANTS "\"record\":{" UPLOAD SUMS
			      ",\"xxh128\":1,\"x\":\"99999999999999999999999999\"}}\n",
		/* a sum without a record */
		SIZE VARIANTS "\"rekord\":{" UPLOAD SUMS END,
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(data); i++)
		assert_int_equal(read_text(data[i]), -EINVAL);
}

static void a_document_names_each_variant_once_and_no_path(void **state)
{
	static const struct {
		const char *first, *second;
		int result;
	} cases[] = {
		{ "thumb", "large-2_x", 0 }, { "thumb", "thumb", -EINVAL }, { "", "b", -EINVAL },
		{ "../b", "b", -EINVAL },    { "/etc/b", "b", -EINVAL },    { "a/b", "b", -EINVAL },
		{ "b", "B", -EINVAL },       { "b", "original", -EINVAL },
	};
	char text[512];

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		snprintf(text, sizeof text,
		         "{\"width\":1,\"height\":1,\"variants\":{\"%s\":{\"bytes\":3},"
		         "\"%s\":{\"bytes\":3}}}",
		         cases[i].first, cases[i].second);
		assert_int_equal(read_text(text), cases[i].result);
	}
}

/* Writes a document with that many variants. */
static void write_variants(char *text, size_t size, unsigned count, bool has_original)
{
	size_t n = (size_t)snprintf(text, size, SIZE "\"variants\":{");

	for (unsigned i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, size - n, "%s\"v%u\":{\"bytes\":1}", i ? "," : "",
		                      i);
	n += (size_t)snprintf(text + n, size - n, "},\"record\":{" UPLOAD "%s\"variants\":{",
	                      has_original ? ORIGINAL : "");
	for (unsigned i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, size - n, "%s\"v%u\":{\"xxh128\":\"" A "\"}",
		                      i ? "," : "", i);
	snprintf(text + n, size - n, "}" END);
}

static void there_is_room_for_all_variants_and_the_original(void **state)
{
	static char text[STORED_IMAGE_MAX + 1];

	(void)state;
	write_variants(text, sizeof text, CONF_FILE_MAX, true);
	assert_int_equal(read_text(text), 0);
	assert_int_equal(info.file_count, CONF_FILE_MAX + 1);
	assert_int_equal(stored_info_bytes(&info), CONF_FILE_MAX + 9);
	write_variants(text, sizeof text, CONF_FILE_MAX + 1, false);
	assert_int_equal(read_text(text), -EINVAL);
}

static void files_of_images_are_read(void **state)
{
	static char data[STORED_IMAGE_MAX + 1];
	char root[64] = "/tmp/darkroom-info-XXXXXX", path[160], command[128];
	struct store store;
	unsigned cleared;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(store_open(&store, root, false, &cleared), 0);
	assert_int_equal(stored_info_load(&info, &store, "01K0000000000000000000000A", data),
	                 -ENOENT);
	const char *id = stored_put(&store, NULL, "site", 8, 0);

	for (unsigned i = 0; i < 300; i++) { /* no descriptor stays open */
		memset(&info, 0, sizeof info);
		assert_int_equal(stored_info_load(&info, &store, id, data), 0);
		assert_string_equal(info.token, "site");
		assert_int_equal(stored_info_bytes(&info), 8);
	}
	int fd = dup(0);

	assert_true(fd < 100);
	close(fd);
	snprintf(path, sizeof path, "%s/%.4s/%.2s/%s/image.json", root, id, id + 4, id);
	assert_int_equal(truncate(path, STORED_IMAGE_MAX + 1), 0);
	assert_int_equal(stored_info_load(&info, &store, id, data), -EINVAL);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(stored_info_load(&info, &store, id, data), -EINVAL);
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_read),
		cmocka_unit_test(an_image_of_an_earlier_version_has_no_sums),
		cmocka_unit_test(token_and_original_may_be_missing),
		cmocka_unit_test(what_the_daemon_did_not_write_is_refused),
		cmocka_unit_test(a_document_names_each_variant_once_and_no_path),
		cmocka_unit_test(there_is_room_for_all_variants_and_the_original),
		cmocka_unit_test(files_of_images_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

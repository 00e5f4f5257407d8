/* test_export_image_write.c - the members of an archive that an image becomes. */
#include "support/export_harness.h"

#include "support/text_streams.h"

struct member {
	struct tar_header head;
	unsigned mode;
	unsigned long mtime;
	const char *data;
};

static size_t at; /* in the archive */

/* Reads the next member, and checks that zeros pad it. */
static struct member next_member(void)
{
	struct member m;
	const char *block = out_text + at;

	assert_true(at + TAR_BLOCK <= out_size);
	assert_int_equal(tar_header_read(&m.head, (const uint8_t *)block), 0);
	m.mode = (unsigned)strtoul(block + 100, NULL, 8);
	m.mtime = strtoul(block + 136, NULL, 8);
	m.data = block + TAR_BLOCK;
	at += TAR_BLOCK + m.head.size;
	assert_true(at <= out_size);
	for (; at % TAR_BLOCK; at++)
		assert_int_equal(out_text[at], 0);
	return m;
}

static void check_file(const char *name, const char *data, unsigned mode, const char *tag)
{
	struct tar_pax pax = { .tag = "" };
	char path[128];
	struct member m = next_member();

	assert_int_equal(m.head.type, TAR_PAX);
	snprintf(path, sizeof path, ID ".tag/%s", name);
	assert_string_equal(m.head.name, path);
	assert_int_equal(m.mode, 0600);
	assert_int_equal(m.mtime, modified > 0 ? modified : 0);
	assert_int_equal(tar_pax_read(&pax, m.data, m.head.size), 0);
	assert_string_equal(pax.tag, tag);
	m = next_member();
	assert_int_equal(m.head.type, TAR_FILE);
	snprintf(path, sizeof path, "01K0/00/" ID "/%s", name);
	assert_string_equal(m.head.name, path);
	assert_int_equal(m.mode, mode);
	assert_int_equal(m.mtime, modified > 0 ? modified : 0);
	assert_int_equal(m.head.size, strlen(data));
	assert_memory_equal(m.data, data, strlen(data));
}

/* Writes the image to out_stream. */
static int write_image(void)
{
	close_streams();
	open_streams();
	at = preads = writes = 0;
	int err = export_image_write(&image, out_stream);

	assert_int_equal(fflush(out_stream), 0);
	return err;
}

static void check_image(const char *suffix)
{
	static const char *const data[] = { THUMB, ZOOM, ORIGINAL };
	char tag[64];

	assert_int_equal(write_image(), 0);
	snprintf(tag, sizeof tag, "%s%s", image.file[0].sum, suffix);
	check_file(STORED_IMAGE, image.data, 0644, tag);
	for (unsigned i = 1; i < 4; i++) {
		snprintf(tag, sizeof tag, "%s%s", image.file[i].sum, suffix);
		check_file(image.file[i].name, data[i - 1], i == 3 ? 0600 : 0644, tag);
	}
	assert_int_equal(at, out_size);
}

static int open_and_setup(void **state)
{
	if (setup(state))
		return -1;
	open_streams();
	return open_image("a");
}

static int close_and_teardown(void **state)
{
	export_image_close(&image);
	close_streams();
	return teardown(state);
}

static void each_file_has_its_tag_before_it(void **state)
{
	(void)state;
	check_image("");
	tag_expires = 1800000000;
	check_image(".1800000000");
	tag_expires = 5;
	check_image(".0000000005");
}

static void times_before_1970_are_1970(void **state)
{
	(void)state;
	modified = -5;
	check_image("");
	modified = 1763800000;
	check_image("");
}

static void data_comes_in_pieces(void **state)
{
	(void)state;
	pread_most = 1;
	shell("printf x >> a/image.json"); /* a file that has grown keeps the size that it had */
	image.file[0].size = 12;
	image.data[12] = '\0';
	check_image("");
	pread_most = SIZE_MAX;
	check_image("");
	pread_most = 7;
	failing_pread = 2; /* and is repeated */
	pread_error = EINTR;
	pread_result = -1;
	check_image("");
}

static void a_file_that_is_not_read_is_a_failure(void **state)
{
	(void)state;
	failing_pread = 2;
	pread_result = -1;
	pread_error = EACCES;
	assert_int_equal(write_image(), -EACCES);
	pread_result = 0; /* it became shorter */
	assert_int_equal(write_image(), -EIO);
	pread_error = EINTR;
	shell("truncate -s 3 a/zoom.jpg");
	failing_pread = 0;
	errno = EINTR;
	assert_int_equal(write_image(), -EIO);
	for (failing_pread = 1; failing_pread <= 4; failing_pread++)
		assert_int_equal(write_image(), -EIO);
}

static void a_file_without_a_time_is_a_failure(void **state)
{
	(void)state;
	fail_call(CALL_FSTAT, 2, EACCES);
	assert_int_equal(write_image(), -EACCES);
}

static void each_write_that_fails_is_a_failure(void **state)
{
	(void)state;
	/* For each file: the tag's header and record, the header, the data and what pads it. */
	for (failing_write = 1; failing_write <= 20; failing_write++) {
		assert_int_equal(write_image(), -EIO);
		assert_int_equal(writes, failing_write);
	}
	assert_int_equal(write_image(), 0);
	assert_int_equal(writes, 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_and_setup, close_and_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_file_has_its_tag_before_it),
		TEST(times_before_1970_are_1970),
		TEST(data_comes_in_pieces),
		TEST(a_file_that_is_not_read_is_a_failure),
		TEST(a_file_without_a_time_is_a_failure),
		TEST(each_write_that_fails_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_tar_reader.c - members of an archive, in pieces of any size, with an end at any byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/tool/tar.h"

#define LONG_SIZE 20000 /* more than the reader skips at once */

static uint8_t archive[1 << 16];
static size_t archive_size, at, end, piece;
static int error_at_end;

static void add(const char *name, enum tar_type type, const void *data, size_t size)
{
	struct tar_header h = { .type = type, .size = size };

	snprintf(h.name, sizeof h.name, "%s", name);
	tar_header_write(archive + archive_size, &h, 0644, 0);
	archive_size += TAR_BLOCK;
	memcpy(archive + archive_size, data, size);
	archive_size += size;
	memset(archive + archive_size, '#', tar_padding(size));
	archive_size += tar_padding(size);
}

static void add_pax(enum tar_type type, const char *key, const char *value)
{
	char data[128];

	add("pax", type, data, tar_pax_write(data, sizeof data, key, value));
}

static ssize_t read_archive(void *arg, char *data, size_t size)
{
	assert_ptr_equal(arg, archive);
	size_t n = end - at < size ? end - at : size;

	if (n == 0 && error_at_end) {
		errno = -error_at_end;
		return -1;
	}
	n = n < piece ? n : piece;
	memcpy(data, archive + at, n);
	at += n;
	return (ssize_t)n;
}

static struct tar_reader reader_of(size_t size, size_t pieces)
{
	static FILE *stream;

	at = 0;
	end = size;
	piece = pieces;
	error_at_end = 0;
	if (stream)
		fclose(stream);
	stream = fopencookie(archive, "r", (cookie_io_functions_t){ .read = read_archive });
	assert_non_null(stream);
	setvbuf(stream, NULL, _IONBF, 0);
	return (struct tar_reader){ .in = stream };
}

static int make(void **state)
{
	static uint8_t data[LONG_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i % 251);
	archive_size = 0;
	add_pax(TAR_PAX_GLOBAL, "comment", "of all");
	add_pax(TAR_PAX, TAR_TAG_KEY, "a tag");
	add("tagged", TAR_FILE, data, 1000);
	add("plain", TAR_FILE, data, 2 * TAR_BLOCK);
	add("directory", TAR_DIRECTORY, data, 0);
	add_pax(TAR_PAX, "comment", "of one");
	add("long", TAR_FILE, data, LONG_SIZE);
	add("empty", TAR_FILE, data, 0);
	memset(archive + archive_size, 0, TAR_BLOCK);
	archive_size += TAR_BLOCK;
	return 0;
}

static const struct {
	const char *name, *tag, *comment;
	enum tar_type type;
	size_t size;
} members[] = {
	{ "tagged", "a tag", "", TAR_FILE, 1000 }, { "plain", "", "", TAR_FILE, 2 * TAR_BLOCK },
	{ "directory", "", "", TAR_DIRECTORY, 0 }, { "long", "", "of one", TAR_FILE, LONG_SIZE },
	{ "empty", "", "", TAR_FILE, 0 },
};

/* Reads `part` bytes of the member. */
static void check_data(struct tar_reader *r, size_t size, size_t part)
{
	uint8_t data[777];
	size_t done = 0;

	while (done < part) {
		size_t want = part - done < sizeof data ? part - done : sizeof data;
		long n = tar_reader_data(r, data, want);

		assert_int_equal(n, want);
		for (long i = 0; i < n; i++, done++)
			assert_int_equal(data[i], done % 251);
		assert_int_equal(r->left, size - done);
	}
	if (part == size)
		assert_int_equal(tar_reader_data(r, data, sizeof data), 0);
}

/* Reads that share of each member, in quarters. */
static void check_members(size_t pieces, unsigned quarters)
{
	struct tar_reader r = reader_of(archive_size, pieces);

	for (size_t i = 0; i < COUNT_OF(members); i++) {
		assert_int_equal(tar_reader_next(&r), 0);
		assert_string_equal(r.head.name, members[i].name);
		assert_int_equal(r.head.type, members[i].type);
		assert_int_equal(r.head.size, members[i].size);
		assert_string_equal(r.pax.tag, members[i].tag);
		assert_string_equal(r.pax.comment, members[i].comment);
		assert_string_equal(r.global.comment, "of all");
		assert_string_equal(r.global.tag, "");
		check_data(&r, members[i].size, members[i].size * quarters / 4);
	}
	assert_int_equal(tar_reader_next(&r), TAR_END);
	assert_int_equal(at, archive_size);
}

static void data_is_read_byte_by_byte(void **state)
{
	struct tar_reader r = reader_of(archive_size, 1 << 20);
	uint8_t byte;

	(void)state;
	assert_int_equal(tar_reader_next(&r), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(tar_reader_data(&r, &byte, 1), 1);
		assert_int_equal(byte, i % 251);
	}
	assert_int_equal(tar_reader_data(&r, &byte, 1), 0);
}

static void members_are_read_whole_or_skipped(void **state)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(pieces); i++)
		for (unsigned quarters = 0; quarters <= 4; quarters++)
			check_members(pieces[i], quarters);
}

static int result_of(size_t size, int error)
{
	struct tar_reader r = reader_of(size, 1 << 20);
	int err;

	error_at_end = error;
	do
		err = tar_reader_next(&r);
	while (err == 0);
	return err;
}

static void an_archive_that_ends_early_is_an_error(void **state)
{
	(void)state;
	for (size_t size = 0; size < archive_size; size += size < 3000 ? 1 : 97) {
		assert_int_equal(result_of(size, 0), -ENODATA);
		assert_int_equal(result_of(size, -EIO), -EIO);
	}
	assert_int_equal(result_of(archive_size, -EIO), TAR_END);
}

static void data_that_ends_early_is_an_error(void **state)
{
	uint8_t data[1000];
	struct tar_reader r = reader_of(5 * TAR_BLOCK + 999, 1 << 20);

	(void)state;
	assert_int_equal(tar_reader_next(&r), 0);
	assert_int_equal(tar_reader_data(&r, data, sizeof data), -ENODATA);
	r = reader_of(5 * TAR_BLOCK + 999, 1 << 20);
	assert_int_equal(tar_reader_next(&r), 0);
	error_at_end = -EIO;
	assert_int_equal(tar_reader_data(&r, data, sizeof data), -EIO);
}

static void records_have_their_largest_size(void **state)
{
	static const size_t sizes[] = { TAR_PAX_MAX, TAR_PAX_MAX - TAR_BLOCK + 1, TAR_PAX_MAX - 1 };
	static char data[TAR_PAX_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		archive_size = 0;
		memset(data, 'v', sizeof data);
		int n = snprintf(data, sizeof data, "%zu comment=", sizes[i]);

		data[n] = 'v';
		data[sizes[i] - 1] = '\n';
		add("pax", TAR_PAX, data, sizes[i]);
		add("file", TAR_FILE, data, 5);
		struct tar_reader r = reader_of(archive_size, 1000);

		assert_int_equal(tar_reader_next(&r), 0);
		assert_string_equal(r.head.name, "file");
		assert_int_equal(strspn(r.pax.comment, "v"), TAR_COMMENT_MAX - 1);
	}
}

static void damaged_headers_and_records_are_errors(void **state)
{
	(void)state;
	archive[0] ^= 1;
	assert_int_equal(result_of(archive_size, 0), -EINVAL);
	archive[0] ^= 1;
	archive[TAR_BLOCK] = 'x'; /* the length of the global record */
	assert_int_equal(result_of(archive_size, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(members_are_read_whole_or_skipped, make),
		cmocka_unit_test_setup(data_is_read_byte_by_byte, make),
		cmocka_unit_test_setup(an_archive_that_ends_early_is_an_error, make),
		cmocka_unit_test_setup(data_that_ends_early_is_an_error, make),
		cmocka_unit_test_setup(records_have_their_largest_size, make),
		cmocka_unit_test_setup(damaged_headers_and_records_are_errors, make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

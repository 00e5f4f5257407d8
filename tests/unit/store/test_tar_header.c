/* test_tar_header.c - headers and pax records: their bytes, their limits, and damaged ones. */
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

#define SUM_AT 148

static uint8_t block[TAR_BLOCK];
static struct tar_header head;

static unsigned sum_of_block(void)
{
	unsigned sum = 0;

	memset(block + SUM_AT, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	return sum;
}

/* Writes the sum that the block should have: six digits and a zero. */
static void seal(void)
{
	char text[9] = "";

	snprintf(text, sizeof text, "%06o", sum_of_block());
	memcpy(block + SUM_AT, text, 8);
}

static int make(void **state)
{
	(void)state;
	memset(block, 0, sizeof block);
	memcpy(block, "name", 4);
	memcpy(block + 124, "00000000012", 11);
	block[156] = '0';
	memcpy(block + 257, "ustar\00000", 8);
	seal();
	return 0;
}

static void check(enum tar_type type, const char *name, uint64_t size)
{
	memset(&head, 0xff, sizeof head);
	assert_int_equal(tar_header_read(&head, block), 0);
	assert_int_equal(head.type, type);
	assert_string_equal(head.name, name);
	assert_int_equal(head.size, size);
}

static void check_damaged(void)
{
	assert_int_equal(tar_header_read(&head, block), -EINVAL);
}

static void headers_are_written_as_the_standard_says(void **state)
{
	static const struct tar_header h = { "01K0/00/id/a.jpg", TAR_FILE, 077777777777 };
	static const struct {
		size_t at;
		const char *text;
	} fields[] = {
		{ 0, "01K0/00/id/a.jpg" }, { 100, "0000640" },     { 108, "0000000" },
		{ 116, "0000000" },        { 124, "77777777777" }, { 136, "00000000123" },
		{ 257, "ustar" },          { 263, "00" },
	};
	uint8_t expected[TAR_BLOCK] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		memcpy(expected + fields[i].at, fields[i].text, strlen(fields[i].text));
	expected[156] = '0';
	memset(block, 0xff, sizeof block);
	tar_header_write(block, &h, 0640, (UINT64_C(1) << 33) + 0123);
	assert_memory_equal(block, expected, SUM_AT);
	assert_memory_equal(block + SUM_AT + 8, expected + SUM_AT + 8, TAR_BLOCK - SUM_AT - 8);
	uint8_t written[8];

	memcpy(written, block + SUM_AT, 8);
	seal();
	block[SUM_AT + 7] = ' ';
	block[SUM_AT + 6] = '\0';
	assert_memory_equal(written, block + SUM_AT, 8);
	check(TAR_FILE, h.name, h.size);
}

static void each_changed_byte_is_seen(void **state)
{
	(void)state;
	check(TAR_FILE, "name", 10);
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (i >= SUM_AT + 6 && i < SUM_AT + 8)
			continue; /* behind the digits */
		block[i] ^= 1;
		check_damaged();
		block[i] ^= 1;
	}
}

static void numbers_are_octal_digits_between_spaces_or_zeros(void **state)
{
	static const struct {
		const char *text;
		int64_t size; /* -1: damaged */
	} cases[] = {
		{ "00000000017", 15 },
		{ "          7\0", 7 },
		{ "7           ", 7 },
		{ "12 garbage..", 10 },
		{ "12\0garbage..", 10 },
		{ "000000000000", 0 },
		{ "777777777777", 0777777777777 },
		{ "           7", 7 },
		{ "            ", -1 },
		{ "\0\0\0\0\0\0\0\0\0\0\0", -1 },
		{ "8          ", -1 },
		{ "12x         ", -1 },
		{ "1289        ", -1 },
		{ "/           ", -1 },
		{ "x12         ", -1 },
		{ "-1          ", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		memcpy(block + 124, cases[i].text, 12);
		seal();
		if (cases[i].size < 0)
			check_damaged();
		else
			check(TAR_FILE, "name", (uint64_t)cases[i].size);
	}
	memcpy(block + 124, "00000000012", 12);
	for (unsigned i = 0; i < 3; i++) {
		char text[9];

		if (i == 0)
			snprintf(text, sizeof text, "%08o", sum_of_block());
		else if (i == 1)
			snprintf(text, sizeof text, "%8o", sum_of_block());
		else
			snprintf(text, sizeof text, "%-8o", sum_of_block());
		memcpy(block + SUM_AT, text, 8);
		check(TAR_FILE, "name", 10);
	}
}

static void only_files_have_data(void **state)
{
	static const struct {
		char flag;
		enum tar_type type;
		uint64_t most;
	} cases[] = {
		{ '0', TAR_FILE, 0777777777777 },
		{ '\0', TAR_FILE, 0777777777777 },
		{ 'x', TAR_PAX, TAR_PAX_MAX },
		{ 'g', TAR_PAX_GLOBAL, TAR_PAX_MAX },
		{ '5', TAR_DIRECTORY, 0 },
		{ '1', TAR_OTHER, 0 },
		{ '2', TAR_OTHER, 0 },
		{ 'L', TAR_OTHER, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		for (unsigned more = 0; more < 2; more++) {
			char size[32];

			snprintf(size, sizeof size, "%012llo",
			         (unsigned long long)cases[i].most + more);
			if (strlen(size) > 12)
				continue;
			block[156] = (uint8_t)cases[i].flag;
			memcpy(block + 124, size, 12);
			seal();
			if (more)
				check_damaged();
			else
				check(cases[i].type, "name", cases[i].most);
		}
	}
}

static void long_names_have_a_prefix(void **state)
{
	char expected[TAR_NAME_MAX];

	(void)state;
	memset(block, 'n', 100);
	memset(block + 345, 'p', 155);
	memset(block + 500, 'x', 12); /* behind it */
	seal();
	memset(expected, 'n', sizeof expected);
	memset(expected, 'p', 155);
	expected[155] = '/';
	expected[256] = '\0';
	check(TAR_FILE, expected, 10);
	/* GNU's headers have other fields there. */
	memcpy(block + 257, "ustar  ", 8);
	seal();
	check(TAR_FILE, expected + 156, 10);
	memcpy(block + 257, "ustxr", 6);
	seal();
	check_damaged();
	make(NULL);
	block[345] = 'p';
	seal();
	check(TAR_FILE, "p/name", 10);
}

/* ---- records ---- */

static int read_pax(struct tar_pax *p, const char *data)
{
	size_t size = strlen(data);
	char *exact = malloc(size); /* the address sanitizer sees its end */

	*p = (struct tar_pax){ .tag = "tag", .comment = "comment" };
	assert_true(exact || size == 0);
	memcpy(exact, data, size);
	int result = tar_pax_read(p, exact, size);

	free(exact);
	return result;
}

static void records_are_read(void **state)
{
	static const struct {
		const char *data, *tag, *comment;
	} cases[] = {
		{ "", "tag", "comment" },
		{ "13 comment=x\n", "tag", "x" },
		{ "12 comment=\n", "tag", "" },
		{ "15 comment=a=b\n", "tag", "a=b" },
		{ "15 comment=a\nb\n", "tag", "a\nb" },
		{ "13 comment=x\n13 comment=y\n", "tag", "y" },
		{ "13 comments=\n12 commen=x\n", "tag", "comment" },
		{ "6 a=b\n4 =\n07 a=b\n00010 a=b\n", "tag", "comment" },
		{ "41 SCHILY.xattr.user.darkroom.xxh128=abc\n", "abc", "comment" },
		{ "39 SCHILY.xattr.user.darkroom.xxh128=a\n", "a", "comment" },
		{ "40 SCHILY.xattr.user.darkroom.xxh12=abc\n", "tag", "comment" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct tar_pax p;

		assert_int_equal(read_pax(&p, cases[i].data), 0);
		assert_string_equal(p.tag, cases[i].tag);
		assert_string_equal(p.comment, cases[i].comment);
	}
}

static void damaged_records_are_refused(void **state)
{
	static const char *const data[] = {
		" a=b\n",       "a=b\n",        "x 6 a=b\n",    "6",
		"6 ",           "6 a=b",        "7 a=b\n",      "5 a=b\n",
		"6\ta=b\n",     "3 =\n",        "2 \n",         "0 a=b\n",
		"4 a\n6 b=c\n", "000011 a=b\n", "6 a=b\n6 a=b", "6 a=bc\n",
		"99999 a=b\n",  "5 ab\n",       "1 \n",         "12345",
		"4 \n=",        "3 \n=",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(data); i++) {
		struct tar_pax p;

		assert_int_equal(read_pax(&p, data[i]), -EINVAL);
	}
}

static void records_that_change_a_member_are_refused(void **state)
{
	static const struct {
		const char *key;
		int result;
	} cases[] = {
		{ "path", -EINVAL },
		{ "linkpath", -EINVAL },
		{ "size", -EINVAL },
		{ "hdrcharset", -EINVAL },
		{ "GNU.sparse.major", -EINVAL },
		{ "GNU.sparse.", -EINVAL },
		{ "paths", 0 },
		{ "pat", 0 },
		{ "sizf", 0 },
		{ "GNU.sparse", 0 },
		{ "GNU.sparsex", 0 },
		{ "mtime", 0 },
		{ "linkpat", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char data[64];
		struct tar_pax p;

		size_t length = tar_pax_write(data, sizeof data, cases[i].key, "major");

		assert_int_equal(length, strlen(data));
		assert_int_equal(read_pax(&p, data), cases[i].result);
	}
}

/* Longer tags are not the store's, and of comments the beginning counts. */
static void values_are_bounded(void **state)
{
	char value[200], data[300];
	struct tar_pax p;

	(void)state;
	memset(value, 'v', sizeof value);
	value[STORE_TAG_MAX - 1] = '\0';
	tar_pax_write(data, sizeof data, TAR_TAG_KEY, value);
	assert_int_equal(read_pax(&p, data), 0);
	assert_string_equal(p.tag, value);
	value[STORE_TAG_MAX - 1] = 'v';
	value[STORE_TAG_MAX] = '\0';
	tar_pax_write(data, sizeof data, TAR_TAG_KEY, value);
	assert_int_equal(read_pax(&p, data), 0);
	assert_string_equal(p.tag, "tag");
	value[STORE_TAG_MAX] = 'v';
	value[TAR_COMMENT_MAX + 9] = '\0';
	tar_pax_write(data, sizeof data, "comment", value);
	assert_int_equal(read_pax(&p, data), 0);
	value[TAR_COMMENT_MAX - 1] = '\0';
	assert_string_equal(p.comment, value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_written_as_the_standard_says),
		cmocka_unit_test_setup(each_changed_byte_is_seen, make),
		cmocka_unit_test_setup(numbers_are_octal_digits_between_spaces_or_zeros, make),
		cmocka_unit_test_setup(only_files_have_data, make),
		cmocka_unit_test_setup(long_names_have_a_prefix, make),
		cmocka_unit_test(records_are_read),
		cmocka_unit_test(damaged_records_are_refused),
		cmocka_unit_test(records_that_change_a_member_are_refused),
		cmocka_unit_test(values_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_s3_image.c - objects of images, whole, cut, and with each byte changed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "s3/s3_image.h"
#include "store/checksum.h"

#define ID "01K0000000000000000000000A"
#define JSON "{\"id\":\"" ID "\"}\n"
#define OBJECT_MAX 4096

static char sums[4][CHECKSUM_LENGTH + 1];
static char object[OBJECT_MAX];
static size_t length;

/* Makes an object of four files, which come in another order. */
static int make(void **state)
{
	struct store_file file[] = { { "original.jpg", "original", 8, sums[0] },
		                     { "wide.jpg", "wide picture", 12, sums[1] },
		                     { "thumb.jpg", "thumb", 5, sums[2] },
		                     { "image.json", JSON, sizeof JSON - 1, sums[3] } };
	const struct store_item item = { .id = ID, .file = file, .file_count = 4 };
	struct iovec piece[STORED_FILES_MAX];
	struct text head;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		checksum_of(file[i].data, file[i].size, sums[i]);
	text_init_growable(&head, S3_HEAD_MAX);
	assert_int_equal(s3_image_write(&head, piece, &item, 1700000000), 4);
	length = 0;
	for (unsigned i = 0; i < 4; i++) {
		memcpy(object + length, piece[i].iov_base, piece[i].iov_len);
		length += piece[i].iov_len;
	}
	object[length] = '\0';
	text_fini(&head);
	return 0;
}

static void files_are_found_in_their_order(void **state)
{
	static const char *const order[] = { "image.json", "thumb.jpg", "wide.jpg",
		                             "original.jpg" };
	struct s3_head head;

	(void)state;
	assert_int_equal(s3_head_read(&head, ID, object, length, length), 0);
	assert_int_equal(head.count, 4);
	assert_int_equal(head.expires, 1700000000);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(head.section[i].name, order[i]);
	const struct s3_section *wide = s3_head_find(&head, "wide.jpg");

	assert_non_null(wide);
	assert_memory_equal(object + wide->at, "wide picture", 12);
	assert_null(s3_head_find(&head, "other.jpg"));
}

static void a_head_needs_no_more_than_itself(void **state)
{
	struct s3_head head;

	(void)state;
	assert_int_equal(s3_head_read(&head, ID, object, length, length), 0);
	for (size_t n = 0; n <= length; n++) {
		char part[OBJECT_MAX];
		struct s3_head other;

		memcpy(part, object, n);
		part[n] = '\0';
		assert_int_equal(s3_head_read(&other, ID, part, n, length),
		                 n < head.length ? -EBADMSG : 0);
		/* of an object that is shorter or longer */
		assert_int_equal(s3_head_read(&other, ID, part, n, length + 1), -EBADMSG);
		assert_int_equal(s3_head_read(&other, ID, part, n, n + (n == length)), -EBADMSG);
	}
}

static void a_changed_head_is_damaged(void **state)
{
	struct s3_head head, other;

	(void)state;
	assert_int_equal(s3_head_read(&head, ID, object, length, length), 0);
	for (size_t at = 0; at < head.length; at++) {
		object[at] ^= 1;
		/* but for the end of an image, which its checksum does not cover */
		if (at < 17 || at >= 27)
			assert_int_equal(s3_head_read(&other, ID, object, length, length),
			                 -EBADMSG);
		object[at] ^= 1;
	}
}

static void the_head_of_another_image_is_damaged(void **state)
{
	static const char *const other[] = { "01K0000000000000000000000B",
		                             "01K00000000000000000000000" };
	struct s3_head head;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(s3_head_read(&head, other[i], object, length, length), -EBADMSG);
}

static void the_mark_of_a_removed_image_is_known(void **state)
{
	struct s3_head head;

	(void)state;
	assert_int_equal(s3_head_read(&head, ID, S3_TOMBSTONE, 10, 10), S3_IS_REMOVED);
	assert_int_equal(s3_head_read(&head, ID, S3_FAILED, 10, 10), S3_IS_FAILED);
	assert_int_equal(s3_head_read(&head, ID, S3_TOMBSTONE, 10, 11), -EBADMSG);
	assert_int_equal(s3_head_read(&head, ID, "removed 2\n", 10, 10), -EBADMSG);
}

static void keys_are_spread(void **state)
{
	char key[S3_IMAGE_KEY_MAX];

	(void)state;
	s3_image_key(key, ID);
	assert_string_equal(key, "image/87/" ID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_found_in_their_order),
		cmocka_unit_test(a_head_needs_no_more_than_itself),
		cmocka_unit_test(a_changed_head_is_damaged),
		cmocka_unit_test(the_head_of_another_image_is_damaged),
		cmocka_unit_test(the_mark_of_a_removed_image_is_known),
		cmocka_unit_test(keys_are_spread),
	};

	return cmocka_run_group_tests(tests, make, NULL);
}

/* test_store_export.c - the archive's beginning and end, what is counted, and the exit status. */
#include "support/text_streams.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/check.h"
#include "store/export_image.h"
#include "store/store_progress.h"
#include "store/store_query.h"
#include "store/tar_header.h"

#define EXIT_FAILED 7 /* of store_query_fail() */

static struct {
	int open_err, write_err;
	const char *token;
} images[4]; /* the ids are "0" to "3" */
static unsigned image_count, walks, opened, closed, written, shown, ended;
static int terminal, each_status, reported_err, flush_result;
static unsigned write_calls, failing_write;
static const char *reported;
static bool was_last;
static struct store_progress seen;

static int fake_isatty(int fd)
{
	return fd == STDOUT_FILENO ? terminal : !terminal;
}

static size_t fake_fwrite(const void *data, size_t size, size_t count, FILE *to)
{
	assert_int_equal(size, 1);
	return ++write_calls == failing_write ? count - 1 : fwrite(data, size, count, to);
}

static int fake_each(struct store_query *q,
                     int (*each)(struct store_query *q, const char *id, void *arg), void *arg)
{
	walks++;
	for (unsigned i = 0; i < image_count; i++) {
		char id[ULID_LENGTH + 1] = { (char)('0' + i) };
		int status = each(q, id, arg);

		if (status)
			return status;
	}
	return each_status;
}

static int fake_fail(const char *what, int err)
{
	reported = what;
	reported_err = err;
	return EXIT_FAILED;
}

static int fake_usage(const char *format, ...)
{
	reported = format;
	return QUERY_EXIT_USAGE;
}

static int fake_open(struct export_image *e, struct store *s, const char *id)
{
	unsigned i = (unsigned)(id[0] - '0');

	assert_non_null(s);
	memcpy(e->id, id, sizeof e->id);
	snprintf(e->why, sizeof e->why, "a.jpg: rotten");
	snprintf(e->info.token, sizeof e->info.token, "%s", images[i].token);
	opened += !images[i].open_err;
	return images[i].open_err;
}

static int fake_write(const struct export_image *e, FILE *to)
{
	assert_ptr_equal(to, out_stream);
	written++;
	fprintf(to, "image %s\n", e->id);
	return images[e->id[0] - '0'].write_err;
}

static void fake_close(struct export_image *e)
{
	assert_non_null(e);
	closed++;
}

static void fake_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all };
}

static void fake_show(struct store_progress *p, bool is_last)
{
	assert_false(was_last);
	seen = *p;
	was_last = is_last;
	shown++;
	if (!is_last)
		assert_int_equal(p->ended, ++ended);
}

#define isatty fake_isatty
#define fwrite fake_fwrite
#define fflush(f) (assert_ptr_equal(f, out_stream), flush_result)
#define store_query_each fake_each
#define store_query_fail fake_fail
#define store_query_usage fake_usage
#define export_image_open fake_open
#define export_image_write fake_write
#define export_image_close fake_close
#define store_progress_start fake_start
#define store_progress_show fake_show
#include "store/store_export.c"
#undef fflush

static struct store_query query;

static int setup(void **state)
{
	(void)state;
	open_streams();
	for (unsigned i = 0; i < COUNT_OF(images); i++) {
		images[i].open_err = images[i].write_err = 0;
		images[i].token = i % 2 ? "shop" : "site";
	}
	image_count = 0;
	terminal = each_status = reported_err = flush_result = 0;
	failing_write = 0;
	query = (struct store_query){ .limit = UINT64_MAX };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

/* Exports a number of images. Returns the exit status. */
static int export_all(unsigned count)
{
	image_count = count;
	walks = opened = closed = written = shown = ended = write_calls = 0;
	reported = NULL;
	was_last = false;
	int status = store_export(&query);

	assert_int_equal(opened, closed);
	assert_true(was_last || status == QUERY_EXIT_USAGE);
	assert_int_equal(fflush(out_stream) | fflush(err_stream), 0);
	return status;
}

/* Checks the last line, which has the numbers of images, and what stands before it. */
static void check_counts(const char *before, unsigned exported, unsigned left_out, unsigned removed)
{
	char line[256];

	snprintf(line, sizeof line,
	         "%sdarkroomd store: %u images exported, %u left out, %u removed meanwhile\n",
	         before, exported, left_out, removed);
	assert_string_equal(err_text, line);
	close_streams();
	open_streams();
}

static void an_archive_begins_with_the_number_of_images(void **state)
{
	static const char images_of_two[] = "image 0\nimage 1\n";
	struct tar_header h;
	struct tar_pax pax = { .tag = "" };

	(void)state;
	assert_int_equal(export_all(2), EXIT_SUCCESS);
	assert_int_equal(walks, 2);
	assert_int_equal(out_size, 2 * TAR_BLOCK + sizeof images_of_two - 1 + 20 * TAR_BLOCK);
	assert_int_equal(tar_header_read(&h, (const uint8_t *)out_text), 0);
	assert_string_equal(h.name, "darkroom");
	assert_int_equal(h.type, TAR_PAX_GLOBAL);
	assert_memory_equal(out_text + 100, "0000644", 8);
	assert_memory_equal(out_text + 136, "00000000000", 12);
	assert_int_equal(tar_pax_read(&pax, out_text + TAR_BLOCK, h.size), 0);
	assert_string_equal(pax.comment, "images=2");
	for (size_t i = h.size; i < TAR_BLOCK; i++)
		assert_int_equal(out_text[TAR_BLOCK + i], 0);
	assert_memory_equal(out_text + 2 * TAR_BLOCK, images_of_two, sizeof images_of_two - 1);
	for (size_t i = out_size - 20 * TAR_BLOCK; i < out_size; i++)
		assert_int_equal(out_text[i], 0);
	assert_int_equal(seen.all, 2);
	assert_int_equal(seen.ended, 2);
	assert_int_equal(shown, 3);
	check_counts("", 2, 0, 0);
}

static void an_archive_without_a_number_begins_with_an_image(void **state)
{
	static const char *const path = "-", *const token = "shop";

	(void)state;
	assert_int_equal(export_all(0), EXIT_SUCCESS);
	assert_int_equal(out_size, 20 * TAR_BLOCK);
	check_counts("", 0, 0, 0);
	query.ids_path = path;
	assert_int_equal(export_all(1), EXIT_SUCCESS);
	assert_int_equal(walks, 1);
	assert_memory_equal(out_text, "image 0\n", 8);
	assert_int_equal(seen.all, 0);
	check_counts("", 1, 0, 0);
	query.ids_path = NULL;
	query.token = token;
	assert_int_equal(export_all(4), EXIT_SUCCESS);
	assert_int_equal(walks, 1);
	assert_memory_equal(out_text, "image 1\nimage 3\n", 16);
	assert_int_equal(written, 2);
	assert_int_equal(opened, 4);
	check_counts("", 2, 0, 0);
}

static void an_image_that_is_gone_was_removed_or_never_there(void **state)
{
	static const char missing[] = "darkroomd store: 0: left out: does not exist\n";

	(void)state;
	images[0].open_err = -ENOENT;
	assert_int_equal(export_all(2), EXIT_SUCCESS);
	check_counts("", 1, 0, 1);
	query.word_count = 1;
	assert_int_equal(export_all(2), EXIT_FAILURE);
	check_counts(missing, 1, 1, 0);
	query.word_count = 0;
	query.ids_path = "-";
	assert_int_equal(export_all(2), EXIT_FAILURE);
	check_counts(missing, 1, 1, 0);
}

static void a_damaged_image_is_left_out(void **state)
{
	(void)state;
	images[0].open_err = -EBADMSG;
	images[1].open_err = -EACCES;
	assert_int_equal(export_all(3), EXIT_FAILURE);
	assert_int_equal(written, 1);
	check_counts("darkroomd store: 0: left out: a.jpg: rotten\n"
	             "darkroomd store: 1: left out: Permission denied\n",
	             1, 2, 0);
}

static void output_that_is_not_written_ends_it(void **state)
{
	(void)state;
	failing_write = 1; /* the number of images */
	assert_int_equal(export_all(2), EXIT_FAILED);
	assert_string_equal(reported, "standard output");
	assert_int_equal(reported_err, -EIO);
	assert_int_equal(written, 0);
	assert_int_equal(out_size, 0);
	check_counts("", 0, 0, 0);
	failing_write = 2; /* the end */
	assert_int_equal(export_all(2), EXIT_FAILED);
	assert_string_equal(reported, "standard output");
	check_counts("", 2, 0, 0);
	failing_write = 0;
	flush_result = -1;
	assert_int_equal(export_all(2), EXIT_FAILED);
	assert_int_equal(reported_err, -EIO);
	check_counts("", 2, 0, 0);
	flush_result = 0;
	images[1].write_err = -ENOSPC;
	assert_int_equal(export_all(3), EXIT_FAILED);
	assert_int_equal(reported_err, -ENOSPC);
	assert_int_equal(written, 2);
	assert_int_equal(out_size, 2 * TAR_BLOCK + 16);
	check_counts("", 1, 0, 0);
}

static void a_walk_that_fails_ends_it(void **state)
{
	(void)state;
	each_status = 5;
	assert_int_equal(export_all(1), 5);
	assert_int_equal(walks, 1);
	assert_int_equal(out_size, 0);
	check_counts("", 0, 0, 0);
}

static void an_archive_is_not_written_to_a_terminal(void **state)
{
	(void)state;
	terminal = 1;
	assert_int_equal(export_all(1), QUERY_EXIT_USAGE);
	assert_non_null(strstr(reported, "expected a file or a pipe"));
	assert_int_equal(walks, 0);
	assert_int_equal(out_size, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_archive_begins_with_the_number_of_images),
		TEST(an_archive_without_a_number_begins_with_an_image),
		TEST(an_image_that_is_gone_was_removed_or_never_there),
		TEST(a_damaged_image_is_left_out),
		TEST(output_that_is_not_written_ends_it),
		TEST(a_walk_that_fails_ends_it),
		TEST(an_archive_is_not_written_to_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

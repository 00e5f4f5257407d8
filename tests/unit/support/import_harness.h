/* import_harness.h - store_import.c with an archive and a store that a test describes. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_IMPORT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_IMPORT_HARNESS_H
#include "text_streams.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/check.h"
#include "store/import_image.h"
#include "store/import_pictures.h"
#include "store/import_place.h"
#include "store/store_progress.h"
#include "store/store_query.h"

#define EXIT_FAILED 7 /* of store_query_fail() */
#define ID(c) "01K0000000000000000000000" c
#define PATH(c, name) "01K0/00/" ID(c) "/" name
#define MIB (UINT64_C(1) << 20)
#define LAST_LINE \
	"darkroomd store: %u images stored, %u were there already, %u differ, %u refused\n"

/* A member of the archive, and what is known of its image. */
struct member {
	const char *name;
	enum tar_type type;
	int err; /* of the archive, while the member is read */
	uint64_t bytes;
};
static const struct member *members;
static unsigned member_count, next;
static int end; /* of the archive */
static const char *comment;
static char damaged, same, different, appeared, unstored; /* the last characters of such ids */

static unsigned puts_of[8], put_count, live, opens, closes, shows, reads, reads_most;
static int open_status, reported_err, terminal, pictures;
static const char *reported;
static bool was_last;
static struct store_progress seen;
static ssize_t read_size, after_interrupt; /* what reads return */
static int read_error;

static inline int fake_isatty(int fd)
{
	return fd == STDIN_FILENO ? terminal : !terminal;
}

static inline ssize_t fake_read(int fd, void *data, size_t size)
{
	assert_int_equal(fd, STDIN_FILENO);
	assert_int_equal(size, 16 * TAR_BLOCK);
	assert_non_null(data);
	assert_true(++reads <= reads_most + (after_interrupt != 0));
	if (reads > reads_most)
		return after_interrupt;
	if (reads == reads_most && read_error) {
		errno = read_error;
		return -1;
	}
	return reads == reads_most ? 0 : read_size;
}

static inline int fake_next(struct tar_reader *r)
{
	assert_non_null(r->read);
	assert_true(next <= member_count);
	if (next == 1)
		snprintf(r->global.comment, sizeof r->global.comment, "%s", comment);
	if (next++ == member_count)
		return end;
	snprintf(r->head.name, sizeof r->head.name, "%s", members[next - 1].name);
	r->head.type = members[next - 1].type ? members[next - 1].type : TAR_FILE;
	return 0;
}

static inline int fake_add(struct import_image *image, const char *name, struct tar_reader *r,
                           uint64_t bytes_max)
{
	assert_non_null(r);
	assert_int_equal(bytes_max, 2000);
	live += image->file_count == 0;
	image->expires = 5;
	image->bytes += members[next - 1].bytes;
	snprintf(image->file[image->file_count].name, sizeof image->file[0].name, "%s", name);
	snprintf(image->file[image->file_count].sum, sizeof image->file[0].sum, "sum");
	image->file[image->file_count].data = image->id;
	image->file[image->file_count++].size = 9;
	return members[next - 1].err;
}

static inline void fake_verify(struct import_image *image, struct stored_info *info)
{
	assert_non_null(info);
	if (image->id[ULID_LENGTH - 1] == damaged)
		snprintf(image->why, sizeof image->why, "x");
}

static inline enum import_state fake_compare(const struct import_image *image, struct store *s)
{
	assert_non_null(s);
	char last = image->id[ULID_LENGTH - 1];

	return last == same ? IMPORT_SAME : last == different ? IMPORT_DIFFERS : IMPORT_ABSENT;
}

static inline void fake_clear(struct import_image *image)
{
	live -= image->file_count > 0;
	*image = (struct import_image){ .bytes = 0 };
}

static inline void fake_put(struct store *s, struct store_item *items, unsigned count)
{
	assert_non_null(s);
	assert_true(count > 0 && put_count < COUNT_OF(puts_of));
	puts_of[put_count++] = count;
	for (unsigned i = 0; i < count; i++) {
		char last = items[i].id[ULID_LENGTH - 1];

		assert_int_equal(items[i].place, STORE_IMAGES);
		assert_int_equal(items[i].expires, 5);
		assert_int_equal(items[i].file_count, 2);
		assert_string_equal(items[i].file[0].name, "a.jpg");
		assert_string_equal(items[i].file[1].name, "image.json");
		for (unsigned j = 0; j < 2; j++) {
			assert_ptr_equal(items[i].file[j].data, items[i].id);
			assert_string_equal(items[i].file[j].sum, "sum");
			assert_int_equal(items[i].file[j].size, 9);
		}
		items[i].err = last == appeared   ? i % 2 ? -ENOTEMPTY : -EEXIST
		               : last == unstored ? -ENOSPC
		                                  : 0;
	}
}

static inline int fake_open(struct store_query *q, bool is_forever)
{
	assert_non_null(q);
	assert_true(is_forever);
	opens++;
	return open_status;
}

static inline void fake_close(struct store_query *q)
{
	assert_non_null(q);
	closes++;
}

static inline int fake_pictures(struct store_query *q)
{
	assert_non_null(q);
	pictures++;
	return 3;
}

static inline int fake_fail(const char *what, int err)
{
	reported = what;
	reported_err = err;
	return EXIT_FAILED;
}

static inline int fake_usage(const char *format, ...)
{
	reported = format;
	return QUERY_EXIT_USAGE;
}

static inline void fake_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all, .start_ns = 1 };
}

static inline void fake_show(struct store_progress *p, bool is_last)
{
	assert_false(was_last);
	assert_int_equal(p->start_ns, 1);
	was_last = is_last;
	seen = *p;
	shows++;
}

#define isatty fake_isatty
#define read(fd, data, size) fake_read(fd, data, size)
#define tar_reader_next fake_next
#define import_image_add fake_add
#define import_image_verify fake_verify
#define import_image_compare fake_compare
#define import_image_clear fake_clear
#define store_put fake_put
#define import_place_open fake_open
#define import_place_close fake_close
#define import_pictures fake_pictures
#define store_query_fail fake_fail
#define store_query_usage fake_usage
#define store_progress_start fake_start
#define store_progress_show fake_show
#include "store/store_import.c"
#undef read

static struct conf conf;
static struct store_query query;

static inline int setup(void **state)
{
	(void)state;
	open_streams();
	conf.limits.body_bytes = 1000;
	query = (struct store_query){ .conf = &conf, .limit = UINT64_MAX };
	damaged = same = different = appeared = unstored = '\0';
	comment = "";
	end = TAR_END;
	open_status = terminal = pictures = read_error = 0;
	read_size = 1;
	reads_most = 1;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

/* Imports an archive. Returns the exit status. */
static inline int import(const struct member *list, unsigned count)
{
	members = list;
	member_count = count;
	next = put_count = live = opens = closes = shows = reads = 0;
	reported = NULL;
	reported_err = 0;
	was_last = false;
	int status = store_import(&query);

	assert_int_equal(live, 0);
	assert_int_equal(opens, closes + (open_status != 0));
	return status;
}

static inline void check_counts(const char *before, unsigned stored, unsigned known,
                                unsigned differ, unsigned refused)
{
	char line[1024];
	int n = snprintf(line, sizeof line, "%s", before);

	snprintf(line + n, sizeof line - (size_t)n, LAST_LINE, stored, known, differ, refused);
	check_written("", line);
}

#endif

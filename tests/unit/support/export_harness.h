/*
 * export_harness.h - export_image.c with an image in the directory "a" of a test, and calls that
 * fail. A test says which directories the image has, one after the other.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_EXPORT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_EXPORT_HARNESS_H

#include "store_faults.h"

#include "store/checksum.h"
#include "store/store_find.h"
#include "store/stored_info.h"

/* The names of directories of one character, of which each call opens one; "-": there is none. */
static const char *directories;
static unsigned directory_calls;

static inline int fake_open_directory(struct store *s, const char *id)
{
	assert_non_null(s);
	assert_int_equal(strlen(id), ULID_LENGTH);
	char name[] = { directories[directory_calls++ % strlen(directories)], '\0' }, path[128];

	if (name[0] == '-')
		return -ENOENT;
	snprintf(path, sizeof path, "%s/%s", test_root, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	return fd;
}

static unsigned failing_sum, sums;

static inline int fake_sum(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	return ++sums == failing_sum ? -EIO : checksum_of_file(fd, sum, size);
}

/* A missing checksum has only its first byte. */
static inline int fake_info(struct stored_info *info, const char *data, size_t length)
{
	int err = stored_info_read(info, data, length);

	for (unsigned i = 0; i < info->file_count; i++)
		if (!info->file[i].sum[0])
			memset(info->file[i].sum + 1, 'x', CHECKSUM_LENGTH - 1);
	return err;
}

static uint64_t tag_expires;

static inline uint64_t fake_tag(int fd, char tag[STORE_TAG_MAX])
{
	assert_true(fd >= 0);
	tag[0] = '\0';
	return tag_expires;
}

static time_t modified;

static inline int timed_fstat(int fd, struct stat *st)
{
	int result = fault_fstat(fd, st);

	st->st_mtim.tv_sec = modified;
	return result;
}

static size_t pread_most;
static unsigned preads, failing_pread; /* with errno == pread_error */
static int pread_error;
static ssize_t pread_result;

static inline ssize_t fake_pread(int fd, void *data, size_t size, off_t at)
{
	assert_true(++preads < 100);
	if (preads == failing_pread) {
		errno = pread_error;
		return pread_result;
	}
	return pread(fd, data, size < pread_most ? size : pread_most, at);
}

static unsigned writes, failing_write;

static inline size_t fake_fwrite(const void *data, size_t size, size_t count, FILE *to)
{
	assert_int_equal(size, 1);
	return ++writes == failing_write ? count - 1 : fwrite(data, size, count, to);
}

#undef fstat
#define fstat timed_fstat
#define pread fake_pread
#define fwrite fake_fwrite
#define store_open_directory fake_open_directory
#define checksum_of_file fake_sum
#define stored_info_read fake_info
#define store_tag fake_tag
#include "store/export_image.c"
#undef fwrite

#define ID "01K0000000000000000000000A"
#define THUMB "thumbnail"
#define ZOOM "large"
#define ORIGINAL "camera"

static struct export_image image;
static struct store store;
static unsigned descriptors;

static inline void make_file(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/a/%s", test_root, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#define VARIANTS                                                                         \
	"{\"width\":640,\"height\":480,\"variants\":{\"thumb\":{\"bytes\":9},\"zoom\":{" \
	"\"bytes\":5}}"

static inline void make_old_document(void)
{
	make_file(STORED_IMAGE, VARIANTS "}\n");
}

static inline void make_image(void)
{
	char sum[4][CHECKSUM_LENGTH + 1], text[1024];

	make_file("thumb.jpg", THUMB);
	make_file("zoom.jpg", ZOOM);
	make_file(STORE_ORIGINAL, ORIGINAL);
	checksum_of(THUMB, strlen(THUMB), sum[0]);
	checksum_of(ZOOM, strlen(ZOOM), sum[1]);
	checksum_of(ORIGINAL, strlen(ORIGINAL), sum[2]);
	int n = snprintf(text, sizeof text,
	                 VARIANTS ",\"record\":{\"upload\":{\"bytes\":6},\"variants\":{\"thumb\":{"
	                          "\"xxh128\":\"%s\"},\"zoom\":{\"xxh128\":\"%s\"}},\"original\":{"
	                          "\"bytes\":6,\"xxh128\":\"%s\"}",
	                 sum[0], sum[1], sum[2]);

	checksum_of(text, (size_t)n, sum[3]);
	snprintf(text + n, sizeof text - (size_t)n, ",\"xxh128\":\"%s\"}}\n", sum[3]);
	make_file(STORED_IMAGE, text);
}

static inline int setup(void **state)
{
	(void)state;
	no_fault();
	failing_sum = failing_pread = failing_write = 0;
	tag_expires = 0;
	modified = 1;
	pread_most = SIZE_MAX;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-export-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	shell("mkdir a");
	make_image();
	memset(&image, 0xff, sizeof image);
	descriptors = open_descriptors();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	remove_test_root();
	return 0;
}

/* Opens the image, whose directories are these. */
static inline int open_image(const char *of)
{
	directories = of;
	directory_calls = sums = preads = writes = 0;
	return export_image_open(&image, &store, ID);
}

#endif

/*
 * export_image.c - opens, verifies and writes the files of an image. Main thread.
 *
 * A daemon may remove or replace the image at any time. Files that are open stay readable, so an
 * image is taken only if all of its files could be opened in one directory.
 */
#include "export_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "store.h"
#include "store_find.h"
#include "store_path.h"
#include "tar_header.h"

#define ATTEMPTS_MAX 100
#define COPY_SIZE (64u << 10)

/* Returns -EBADMSG. */
static int bad(struct export_image *e, const char *name, const char *kind)
{
	snprintf(e->why, sizeof e->why, "%s: %s", name, kind);
	return -EBADMSG;
}

/* Opens the file of that name. Returns 0 or -errno. */
static int add(struct export_image *e, int directory_fd, const char *name)
{
	assert(e->file_count < EXPORT_FILES_MAX);
	int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(e->file[e->file_count].name, sizeof e->file[0].name, "%s", name);
	e->file[e->file_count++].fd = fd;
	return 0;
}

/* Compares image.json, which is open, with its own checksum. */
static int check_document(struct export_image *e, int length)
{
	char own[CHECKSUM_LENGTH + 1];

	if (length < 0 || stored_info_read(&e->info, e->data, (size_t)length))
		return bad(e, STORED_IMAGE, "damaged");
	checksum_of(e->data, e->info.own_sum_at, own);
	return e->info.has_record && strcmp(own, e->info.own_sum) != 0
	               ? bad(e, STORED_IMAGE, "rotten")
	               : 0;
}

/* Opens all files that image.json names. Returns 0, -ENOENT if one is missing, or -errno. */
static int open_files(struct export_image *e, int directory_fd)
{
	char name[sizeof e->file[0].name];
	int err = add(e, directory_fd, STORED_IMAGE);

	snprintf(e->why, sizeof e->why, "%s: missing", STORED_IMAGE);
	if (!err)
		err = check_document(e, stored_image_read(e->file[0].fd, e->data));
	for (unsigned i = 0; i < e->info.file_count && !err; i++) {
		snprintf(name, sizeof name, "%s.jpg", e->info.file[i].name);
		err = add(e, directory_fd, name);
		if (err == -ENOENT)
			snprintf(e->why, sizeof e->why, "%s: missing", name);
	}
	if (err || e->info.has_record)
		return err;
	err = add(e, directory_fd, STORE_ORIGINAL); /* earlier versions do not name it */
	return err == -ENOENT ? 0 : err;
}

static int check_files(struct export_image *e)
{
	for (unsigned i = 0; i < e->file_count; i++) {
		const struct stored_file *expected =
			i > 0 && i <= e->info.file_count ? &e->info.file[i - 1] : NULL;
		int err = checksum_of_file(e->file[i].fd, e->file[i].sum, &e->file[i].size);

		if (err)
			return bad(e, e->file[i].name, "unreadable");
		if (expected && (e->file[i].size != expected->bytes ||
		                 (expected->sum[0] && strcmp(e->file[i].sum, expected->sum) != 0)))
			return bad(e, e->file[i].name,
			           e->file[i].size < expected->bytes ? "truncated" : "rotten");
	}
	return 0;
}

/* Returns whether the image has another directory by now, or none. Sets *is_there. */
static bool has_changed(struct store *s, const char *id, int directory_fd, bool *is_there)
{
	int fd = store_open_directory(s, id);
	struct stat was, is;
	bool is_same = fd >= 0 && fstat(fd, &is) == 0 && fstat(directory_fd, &was) == 0 &&
	               is.st_ino == was.st_ino;

	*is_there = fd >= 0;
	if (fd >= 0)
		close(fd);
	return !is_same;
}

int export_image_open(struct export_image *e, struct store *s, const char *id)
{
	bool is_there = true;
	int err = -EBADMSG;

	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		e->file_count = 0;
		memcpy(e->id, id, sizeof e->id);
		int fd = store_open_directory(s, id);

		if (fd < 0)
			return fd;
		err = open_files(e, fd);
		if (!err)
			err = check_files(e);
		bool was_moved = err && has_changed(s, id, fd, &is_there);

		close(fd);
		if (!err)
			return 0;
		export_image_close(e);
		if (!was_moved || !is_there)
			break;
	}
	return !is_there ? -ENOENT : err == -ENOENT ? -EBADMSG : err;
}

void export_image_close(struct export_image *e)
{
	for (unsigned i = 0; i < e->file_count; i++)
		close(e->file[i].fd);
	e->file_count = 0;
}

/* ---- writing ---- */

static int put(FILE *to, const void *data, size_t size)
{
	return fwrite(data, 1, size, to) == size ? 0 : -EIO;
}

static int write_header(FILE *to, const struct tar_header *h, unsigned mode, uint64_t mtime)
{
	uint8_t block[TAR_BLOCK];

	tar_header_write(block, h, mode, mtime);
	return put(to, block, sizeof block);
}

/* Writes the attribute that the file has in a store, so that tar(1) can restore it. */
static int write_tag(const struct export_image *e, unsigned i, uint64_t mtime, FILE *to)
{
	char record[TAR_BLOCK] = "", tag[STORE_TAG_MAX], value[2 * STORE_TAG_MAX];
	struct tar_header h = { .type = TAR_PAX };
	uint64_t expires = store_tag(e->file[i].fd, tag);

	snprintf(value, sizeof value, expires ? "%s.%010llu" : "%s", e->file[i].sum,
	         (unsigned long long)expires);
	h.size = tar_pax_write(record, sizeof record, TAR_TAG_KEY, value);
	snprintf(h.name, sizeof h.name, "%s.tag/%s", e->id, e->file[i].name);
	int err = write_header(to, &h, PRIVATE_FILE, mtime);

	return err ? err : put(to, record, sizeof record);
}

static int write_data(int fd, uint64_t size, FILE *to)
{
	static char buffer[COPY_SIZE];
	uint64_t at = 0;
	int err = 0;

	while (at < size && !err) {
		uint64_t left = size - at;
		ssize_t n =
			pread(fd, buffer, left < COPY_SIZE ? (size_t)left : COPY_SIZE, (off_t)at);

		if (n > 0) {
			err = put(to, buffer, (size_t)n);
			at += (uint64_t)n;
		} else if (n == 0 || errno != EINTR) {
			err = n == 0 ? -EIO : -errno;
		}
	}
	memset(buffer, 0, TAR_BLOCK);
	return err ? err : put(to, buffer, tar_padding(size));
}

static int write_file(const struct export_image *e, unsigned i, FILE *to)
{
	struct tar_header h = { .type = TAR_FILE, .size = e->file[i].size };
	char path[STORE_PATH_MAX];
	struct stat st;

	if (fstat(e->file[i].fd, &st))
		return -errno;
	uint64_t mtime = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
	bool is_private = strcmp(e->file[i].name, STORE_ORIGINAL) == 0;

	store_image_path(path, STORE_BY_TIME, e->id, e->file[i].name);
	snprintf(h.name, sizeof h.name, "%s", path);
	int err = write_tag(e, i, mtime, to);

	if (!err)
		err = write_header(to, &h, is_private ? PRIVATE_FILE : IMAGE_FILE, mtime);
	return err ? err : write_data(e->file[i].fd, e->file[i].size, to);
}

int export_image_write(const struct export_image *e, FILE *to)
{
	int err = 0;

	for (unsigned i = 0; i < e->file_count && !err; i++)
		err = write_file(e, i, to);
	return err;
}

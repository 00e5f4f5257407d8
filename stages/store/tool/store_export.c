/*
 * store_export.c - darkroomd store export: writes the selected images as a tar archive to standard
 * output.
 *
 * The members have the paths of a store, image.json first. A pax record before each has the file's
 * extended attribute, which is its checksum, so tar(1) with --xattrs restores a store. A daemon may
 * remove or replace an image at any time. Files that are open stay readable, so an image is taken
 * only if all of its files could be opened in one directory. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "store/directory.h"
#include "store/store_find.h"
#include "store/store_path.h"
#include "store/stored_image.h"
#include "store_query.h"
#include "tar.h"

#define COPY_SIZE (64u << 10)
#define RECORD_BLOCKS 20 /* tar(1) expects archives of multiples of 20 blocks */

struct export
{
	struct store_progress progress;
	uint64_t images, gone, failed;
	/* the present image */
	char id[ULID_LENGTH + 1];
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	struct {
		char name[STORED_NAME_MAX];
		char sum[CHECKSUM_LENGTH + 1];
		uint64_t size;
		int fd;
	} file[STORED_FILES_MAX];
	unsigned file_count;
	char why[CONF_NAME_MAX + 32]; /* of -EBADMSG: "thumb.jpg: rotten" */
};

/* ---- reading an image ---- */

/* Returns -EBADMSG. */
static int bad(struct export *e, const char *name, const char *kind)
{
	snprintf(e->why, sizeof e->why, "%s: %s", name, kind);
	return -EBADMSG;
}

/* Opens the file of that name. Returns 0 or -errno. */
static int add(struct export *e, int directory_fd, const char *name)
{
	assert(e->file_count < STORED_FILES_MAX);
	int fd = directory_open_file(directory_fd, name, O_RDONLY);

	if (fd < 0)
		return fd;
	snprintf(e->file[e->file_count].name, sizeof e->file[0].name, "%s", name);
	e->file[e->file_count++].fd = fd;
	return 0;
}

/* Reads image.json, which is open. */
static int check_document(struct export *e)
{
	int length = stored_image_read(e->file[0].fd, e->data);

	if (length < 0 || stored_info_read(&e->info, e->data, (size_t)length))
		return bad(e, STORED_IMAGE, "damaged");
	return stored_info_is_sound(&e->info, e->data, e->id) ? 0 : bad(e, STORED_IMAGE, "rotten");
}

/* Opens all files that image.json names. Returns 0, -ENOENT if one is missing, or -errno. */
static int open_files(struct export *e, int directory_fd)
{
	int err = add(e, directory_fd, STORED_IMAGE);

	bad(e, STORED_IMAGE, "missing");
	if (!err)
		err = check_document(e);
	for (unsigned i = 0; i < e->info.file_count && !err; i++) {
		err = add(e, directory_fd, e->info.file[i].name);
		if (err == -ENOENT)
			bad(e, e->info.file[i].name, "missing");
	}
	if (err || e->info.has_record)
		return err;
	err = add(e, directory_fd, STORE_ORIGINAL); /* earlier versions do not name it */
	return err == -ENOENT ? 0 : err;
}

static int check_files(struct export *e)
{
	for (unsigned i = 0; i < e->file_count; i++) {
		bool is_named = i > 0 && i <= e->info.file_count; /* by image.json */
		int err = checksum_of_file(e->file[i].fd, e->file[i].sum, &e->file[i].size);
		const char *fault = err        ? "unreadable"
		                    : is_named ? stored_file_fault(&e->info.file[i - 1],
		                                                   e->file[i].size, e->file[i].sum)
		                               : NULL;

		if (fault)
			return bad(e, e->file[i].name, fault);
	}
	return 0;
}

static void close_files(struct export *e)
{
	for (unsigned i = 0; i < e->file_count; i++)
		close(e->file[i].fd);
	e->file_count = 0;
}

/* Opens all files of the image and compares them with their checksums. They stay as they are,
 * whatever a daemon does meanwhile. Returns 0, with close_files() to follow, or -errno: -ENOENT if
 * there is no such image, -EBADMSG if a file is missing or damaged, and e->why says which. */
static int open_image(struct export *e, struct store *s, const char *id)
{
	bool is_there = true;
	int err = -EBADMSG;

	for (unsigned i = 0; i < QUERY_ATTEMPTS_MAX; i++) {
		e->file_count = 0;
		memcpy(e->id, id, sizeof e->id);
		int fd = store_open_directory(s, id);

		if (fd < 0)
			return fd;
		err = open_files(e, fd);
		if (!err)
			err = check_files(e);
		bool was_moved = err && store_has_moved(s, id, fd, &is_there);

		close(fd);
		if (!err)
			return 0;
		close_files(e);
		if (!was_moved || !is_there)
			break;
	}
	return !is_there ? -ENOENT : err == -ENOENT ? -EBADMSG : err;
}

/* ---- writing; what fails is known to standard output ---- */

static void put_header(const struct tar_header *h, unsigned mode, uint64_t mtime)
{
	uint8_t block[TAR_BLOCK];

	tar_header_write(block, h, mode, mtime);
	fwrite(block, 1, sizeof block, stdout);
}

/* Writes a pax header with one record. */
static void put_record(struct tar_header *h, uint64_t mtime, const char *key, const char *value)
{
	char record[TAR_BLOCK] = "";

	h->size = tar_pax_write(record, sizeof record, key, value);
	put_header(h, h->type == TAR_PAX ? PRIVATE_FILE : IMAGE_FILE, mtime);
	fwrite(record, 1, sizeof record, stdout);
}

/* Returns 0 or -errno of the file, whose size must not have changed. */
static int put_data(int fd, uint64_t size)
{
	static char buffer[COPY_SIZE];

	for (uint64_t at = 0; at < size && !ferror(stdout);) {
		size_t left = size - at < COPY_SIZE ? (size_t)(size - at) : COPY_SIZE;
		ssize_t n = directory_read_at(fd, buffer, left, at);

		if (n <= 0)
			return n ? (int)n : -EIO;
		at += fwrite(buffer, 1, (size_t)n, stdout);
	}
	memset(buffer, 0, TAR_BLOCK);
	fwrite(buffer, 1, tar_padding(size), stdout);
	return 0;
}

/* Writes a file behind the attribute that it has in a store, so that tar(1) can restore it. */
static int write_file(const struct export *e, unsigned i)
{
	int fd = e->file[i].fd;
	const char *name = e->file[i].name;
	struct tar_header h = { .type = TAR_FILE, .size = e->file[i].size },
			  pax = { .type = TAR_PAX };
	char tag[STORE_TAG_MAX], value[STORE_TAG_MAX];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	uint64_t mtime = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
	uint64_t expires = store_tag(fd, tag);

	store_tag_write(value, e->file[i].sum, expires);
	snprintf(pax.name, sizeof pax.name, "%s.tag/%s", e->id, name);
	store_image_path(h.name, STORE_BY_TIME, e->id, name);
	put_record(&pax, mtime, TAR_TAG_KEY, value);
	put_header(&h, strcmp(name, STORE_ORIGINAL) == 0 ? PRIVATE_FILE : IMAGE_FILE, mtime);
	return put_data(fd, h.size);
}

/* Begins the archive with the number of images, which is for the progress of the import. */
static void write_count(const struct export *e)
{
	struct tar_header h = { .name = "darkroom", .type = TAR_PAX_GLOBAL };
	char value[TAR_COMMENT_MAX];

	snprintf(value, sizeof value, "images=%" PRIu64, e->progress.all);
	put_record(&h, 0, "comment", value);
}

/* ---- the command ---- */

static int count_one(struct store_query *q, const char *id, void *arg)
{
	uint64_t *count = arg;

	(void)q;
	(void)id;
	++*count;
	return 0;
}

static int export_one(struct store_query *q, const char *id, void *arg)
{
	struct export *e = arg;
	int err = open_image(e, &q->store, id);

	e->progress.ended++;
	store_progress_show(&e->progress, false);
	if (err == -ENOENT && !q->word_count && !q->ids_path) {
		e->gone++; /* removed since it was listed */
		return 0;
	}
	if (err) {
		store_query_say("%s: left out: %s", id,
		                err == -EBADMSG  ? e->why
		                : err == -ENOENT ? "does not exist"
		                                 : strerror(-err));
		e->failed++;
		return 0;
	}
	bool is_wanted = !q->token || strcmp(q->token, e->info.token) == 0;

	for (unsigned i = 0; i < e->file_count && is_wanted && !err; i++)
		err = write_file(e, i);
	if (ferror(stdout) && !err)
		err = -EIO;
	e->images += is_wanted && !err;
	close_files(e);
	return err ? store_query_fail("standard output", err) : 0;
}

int store_export(struct store_query *q)
{
	static const char zeros[RECORD_BLOCKS * TAR_BLOCK]; /* behind the last member */
	static struct export e;
	uint64_t all = 0;
	int status = 0;

	e = (struct export){ .images = 0 };
	if (isatty(STDOUT_FILENO))
		return store_query_usage("export: expected a file or a pipe as standard output");
	if (!q->ids_path && !q->token) /* standard input can be read once */
		status = store_query_each(q, count_one, &all);
	store_progress_start(&e.progress, all);
	if (!status && all)
		write_count(&e);
	if (!status)
		status = store_query_each(q, export_one, &e);
	if (!status)
		fwrite(zeros, 1, sizeof zeros, stdout);
	if (!status && (fflush(stdout) || ferror(stdout)))
		status = store_query_fail("standard output", -EIO);
	store_progress_show(&e.progress, true);
	store_query_say("%" PRIu64 " image%s exported, %" PRIu64 " left out, %" PRIu64
	                " removed meanwhile",
	                e.images, plural(e.images), e.failed, e.gone);
	return status ? status : e.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

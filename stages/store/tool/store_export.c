/*
 * store_export.c - darkroomd store export: writes the selected images as a tar archive to standard
 * output.
 *
 * The members have the paths of a store, image.json first. A pax record before each has the file's
 * extended attribute, which is its checksum, so tar(1) with --xattrs restores a store. A daemon may
 * remove or replace an image at any time. Files that are open stay as they are, so an image is
 * taken only if all of its files could be opened in one directory. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "store/directory.h"
#include "store/store_find.h"
#include "store/store_path.h"
#include "store_query.h"
#include "tar.h"

#define COPY_SIZE (64u << 10)
#define RECORD_BLOCKS 20 /* tar(1) expects archives of multiples of 20 blocks */

struct export
{
	struct store_progress progress;
	uint64_t images, gone, failed;
	struct image_check image; /* the present one */
};

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
static int write_file(const struct image_check *c, unsigned i)
{
	int fd = c->file[i].fd;
	const char *name = c->file[i].name;
	struct tar_header h = { .type = TAR_FILE, .size = c->file[i].size },
			  pax = { .type = TAR_PAX };
	char tag[STORE_TAG_MAX], value[STORE_TAG_MAX];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	uint64_t mtime = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
	uint64_t expires = store_tag(fd, tag);

	store_tag_write(value, c->file[i].sum, expires);
	snprintf(pax.name, sizeof pax.name, "%s.tag/%s", c->id, name);
	store_image_path(h.name, STORE_BY_TIME, c->id, name);
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
	struct image_check *c = &e->image;
	int err = image_check(c, &q->store, id);

	e->progress.ended++;
	store_progress_show(&e->progress, false);
	if (err == -ENOENT && !q->word_count && !q->ids_path) {
		e->gone++; /* removed since it was listed */
		return 0;
	}
	bool is_bad = !err && c->problem_count > 0;
	bool is_wanted = !err && !is_bad && (!q->token || strcmp(q->token, c->info.token) == 0);

	if (err)
		store_query_say("%s: left out: %s", id,
		                err == -ENOENT ? "does not exist" : strerror(-err));
	else if (is_bad)
		store_query_say("%s: left out: %s: %s", id, c->problem[0].file, c->problem[0].kind);
	e->failed += err || is_bad;
	err = 0;
	for (unsigned i = 0; i < c->file_count && is_wanted && !err; i++)
		err = write_file(c, i);
	if (ferror(stdout) && !err)
		err = -EIO;
	e->images += is_wanted && !err;
	image_check_close(c);
	return err ? store_query_fail("standard output", err) : 0;
}

int store_export(struct store_query *q)
{
	static const char zeros[RECORD_BLOCKS * TAR_BLOCK]; /* behind the last member */
	static struct export e;
	uint64_t all = 0;
	int status = 0;

	memset(&e, 0, sizeof e);
	e.image.keeps_files = true;
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

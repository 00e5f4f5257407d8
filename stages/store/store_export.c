/*
 * store_export.c - darkroomd store export: writes the selected images as a tar archive to standard
 * output.
 *
 * The members have the paths of a store, image.json first. A pax record before each has the file's
 * extended attribute, which is its checksum, so tar(1) with --xattrs restores a store. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_image.h"
#include "store_commands.h"
#include "store_progress.h"
#include "store_query.h"
#include "tar_header.h"

#define RECORD_BLOCKS 20 /* tar(1) expects archives of multiples of 20 blocks */

struct export
{
	struct export_image image;
	struct store_progress progress;
	uint64_t images, gone, failed;
};

static int count_one(struct store_query *q, const char *id, void *arg)
{
	uint64_t *count = arg;

	(void)q;
	(void)id;
	++*count;
	return 0;
}

/* Begins the archive with the number of images, which is for the progress of the import. */
static int write_count(struct export *e)
{
	struct tar_header h = { .name = "darkroom", .type = TAR_PAX_GLOBAL };
	uint8_t block[2][TAR_BLOCK] = { { 0 } };
	char value[TAR_COMMENT_MAX];

	snprintf(value, sizeof value, "images=%" PRIu64, e->progress.all);
	h.size = tar_pax_write((char *)block[1], TAR_BLOCK, "comment", value);
	tar_header_write(block[0], &h, 0644, 0);
	return fwrite(block, 1, sizeof block, stdout) == sizeof block ? 0 : -EIO;
}

static int write_end(void)
{
	static const char zeros[RECORD_BLOCKS * TAR_BLOCK];

	return fwrite(zeros, 1, sizeof zeros, stdout) == sizeof zeros && fflush(stdout) == 0 ? 0
	                                                                                     : -EIO;
}

static int export_one(struct store_query *q, const char *id, void *arg)
{
	struct export *e = arg;
	int err = export_image_open(&e->image, &q->store, id);

	e->progress.ended++;
	store_progress_show(&e->progress, false);
	if (err == -ENOENT && !q->word_count && !q->ids_path) {
		e->gone++; /* removed since it was listed */
		return 0;
	}
	if (err) {
		fprintf(stderr, "darkroomd store: %s: left out: %s\n", id,
		        err == -EBADMSG  ? e->image.why
		        : err == -ENOENT ? "does not exist"
		                         : strerror(-err));
		e->failed++;
		return 0;
	}
	bool is_wanted = !q->token || strcmp(q->token, e->image.info.token) == 0;

	if (is_wanted)
		err = export_image_write(&e->image, stdout);
	e->images += is_wanted && !err;
	export_image_close(&e->image);
	return err ? store_query_fail("standard output", err) : 0;
}

int store_export(struct store_query *q)
{
	static struct export e;
	uint64_t all = 0;
	int status = 0;

	e = (struct export){ .images = 0 };
	if (isatty(STDOUT_FILENO))
		return store_query_usage("export: expected a file or a pipe as standard output");
	if (!q->ids_path && !q->token) /* standard input can be read once */
		status = store_query_each(q, count_one, &all);
	store_progress_start(&e.progress, all);
	if (!status && all && write_count(&e))
		status = store_query_fail("standard output", -EIO);
	if (!status)
		status = store_query_each(q, export_one, &e);
	if (!status && write_end())
		status = store_query_fail("standard output", -EIO);
	store_progress_show(&e.progress, true);
	fprintf(stderr,
	        "darkroomd store: %" PRIu64 " images exported, %" PRIu64 " left out, %" PRIu64
	        " removed meanwhile\n",
	        e.images, e.failed, e.gone);
	return status ? status : e.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

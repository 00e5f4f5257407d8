/*
 * store_import.c - darkroomd store import: stores the images of a tar archive, or those that a
 * directory of JPEGs gives (import_pictures.h).
 *
 * Images are written into <root>/.import, which the daemon does not know, and become visible by one
 * rename each. A daemon may serve the store. What a killed import has left in .import is removed by
 * the next one. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import_image.h"
#include "import_pictures.h"
#include "import_place.h"
#include "store_commands.h"
#include "store_progress.h"
#include "store_query.h"

#define BATCH_MAX 32            /* images that share their flushes */
#define BATCH_BYTES (64u << 20) /* of such a batch, before its last image */
#define DRAIN_MAX (1u << 20)    /* bytes behind the archive's end */
#define COUNT "images="         /* the comment of store_export.c */
#define SHOWN_NAME_MAX 80       /* characters of a wrong name */

struct import {
	struct tar_reader reader;
	struct import_image batch[BATCH_MAX]; /* the last one is being read */
	unsigned batch_count;                 /* without it */
	uint64_t batch_bytes;
	struct stored_info info;
	struct store_progress progress;
	uint64_t stored, known, differ, refused;
};

static long read_input(void *arg, void *data, size_t size)
{
	ssize_t n;

	(void)arg;
	do
		n = read(STDIN_FILENO, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- storing ---- */

static void refuse(struct import *m, const char *id, const char *why)
{
	fprintf(stderr, "darkroomd store: %s: not stored: %s\n", id, why);
	m->refused++;
}

static void set_item(struct store_item *item, struct store_file *file,
                     const struct import_image *image)
{
	for (unsigned i = 0; i < image->file_count; i++)
		file[i] = (struct store_file){ .name = image->file[i].name,
			                       .data = image->file[i].data,
			                       .size = image->file[i].size,
			                       .sum = image->file[i].sum };
	*item = (struct store_item){ .place = STORE_IMAGES,
		                     .id = image->id,
		                     .file = file,
		                     .file_count = image->file_count,
		                     .expires = image->expires };
}

/* Stores the batch. Returns 0 or the exit status. */
static int store_batch_of(struct import *m, struct store_query *q)
{
	struct store_item item[BATCH_MAX];
	struct store_file file[BATCH_MAX][EXPORT_FILES_MAX];
	int status = 0;

	for (unsigned i = 0; i < m->batch_count; i++)
		set_item(&item[i], file[i], &m->batch[i]);
	if (m->batch_count)
		store_put(&q->store, item, m->batch_count);
	for (unsigned i = 0; i < m->batch_count; i++) {
		if (!item[i].err)
			m->stored++;
		else if (item[i].err == -ENOTEMPTY || item[i].err == -EEXIST)
			refuse(m, m->batch[i].id, "it has appeared meanwhile");
		else
			status = store_query_fail(m->batch[i].id, item[i].err);
		import_image_clear(&m->batch[i]);
	}
	m->batch_count = 0;
	m->batch_bytes = 0;
	return status;
}

/* All files of the last image are read. Returns 0 or the exit status. */
static int end_image(struct import *m, struct store_query *q)
{
	struct import_image *image = &m->batch[m->batch_count];
	enum import_state state = IMPORT_ABSENT;

	if (!image->id[0])
		return 0;
	m->progress.ended++;
	import_image_verify(image, &m->info);
	if (image->why[0])
		refuse(m, image->id, image->why);
	else
		state = import_image_compare(image, &q->store);
	m->known += state == IMPORT_SAME;
	m->differ += state == IMPORT_DIFFERS;
	if (state == IMPORT_DIFFERS)
		fprintf(stderr,
		        "darkroomd store: %s: the store has it with other files; they stay\n",
		        image->id);
	if (image->why[0] || state != IMPORT_ABSENT || q->is_dry) {
		m->stored += !image->why[0] && state == IMPORT_ABSENT;
		import_image_clear(image);
		return 0;
	}
	m->batch_bytes += image->bytes;
	m->batch_count++;
	return m->batch_count == BATCH_MAX - 1 || m->batch_bytes >= BATCH_BYTES
	               ? store_batch_of(m, q)
	               : 0;
}

/* ---- reading ---- */

/* The name is not trusted, and may be shown on a terminal. */
static void refuse_name(struct import *m)
{
	char shown[SHOWN_NAME_MAX + 1];
	size_t i = 0;

	for (; i < SHOWN_NAME_MAX && m->reader.head.name[i]; i++)
		shown[i] = m->reader.head.name[i];
	shown[i] = '\0';
	for (i = 0; shown[i]; i++)
		if (shown[i] < ' ' || shown[i] > '~')
			shown[i] = '?';
	refuse(m, shown, "expected a file with a path such as 01KA/X2/ID/thumb.jpg");
}

/* Reads a member. Returns 0 or the exit status; sets *err if the archive cannot be read. */
static int read_member(struct import *m, struct store_query *q, int *err)
{
	char id[ULID_LENGTH + 1], name[CONF_NAME_MAX + 8];
	struct import_image *image = &m->batch[m->batch_count];
	int status = 0;

	if (m->reader.head.type == TAR_DIRECTORY)
		return 0;
	if (m->reader.head.type != TAR_FILE || !import_path_split(m->reader.head.name, id, name)) {
		refuse_name(m);
		return 0;
	}
	if (strcmp(image->id, id) != 0) {
		status = end_image(m, q);
		image = &m->batch[m->batch_count];
		memcpy(image->id, id, sizeof image->id);
	}
	if (!status)
		*err = import_image_add(image, name, &m->reader, 2 * q->conf->limits.body_bytes);
	return status;
}

static int fail_archive(int err)
{
	if (err != -EINVAL && err != -ENODATA)
		return store_query_fail("standard input", err);
	fprintf(stderr, "darkroomd store: %s\n",
	        err == -EINVAL ? "expected an archive of store export on standard input"
	                       : "the archive ends too early; what is complete is stored");
	return EXIT_FAILURE;
}

static int read_archive(struct import *m, struct store_query *q)
{
	int status = 0, err = 0;

	while (!status && !err) {
		err = tar_reader_next(&m->reader);
		if (strncmp(m->reader.global.comment, COUNT, sizeof COUNT - 1) == 0)
			m->progress.all =
				strtoull(m->reader.global.comment + sizeof COUNT - 1, NULL, 10);
		if (!err)
			status = read_member(m, q, &err);
		store_progress_show(&m->progress, false);
	}
	if (!status && err != TAR_END) {
		import_image_clear(&m->batch[m->batch_count]); /* it may lack files */
		status = fail_archive(err);
	} else if (!status) {
		status = end_image(m, q);
	}
	int last = store_batch_of(m, q);

	return status ? status : last;
}

/* Reads what pads the archive, so that the program that writes it does not fail. */
static void drain(void)
{
	char data[16 * TAR_BLOCK];

	for (size_t all = 0; all < DRAIN_MAX;) {
		long n = read_input(NULL, data, sizeof data);

		if (n <= 0)
			return;
		all += (size_t)n;
	}
}

static int import_archive(struct store_query *q)
{
	static struct import m;

	if (isatty(STDIN_FILENO))
		return store_query_usage("import: expected an archive on standard input, or a "
		                         "directory and --map FILE");
	m = (struct import){ .reader = { .read = read_input } };
	store_progress_start(&m.progress, 0);
	int status = import_place_open(q, true);

	if (status)
		return status;
	status = read_archive(&m, q);
	import_place_close(q);
	if (!status)
		drain();
	store_progress_show(&m.progress, true);
	fprintf(stderr,
	        "darkroomd store: %" PRIu64 " images stored, %" PRIu64
	        " were there already, %" PRIu64 " differ, %" PRIu64 " refused\n",
	        m.stored, m.known, m.differ, m.refused);
	return status ? status : m.differ || m.refused ? EXIT_FAILURE : EXIT_SUCCESS;
}

int store_import(struct store_query *q)
{
	if (q->token || q->ids_path || q->is_newest_first || q->after[0] || q->before[0] ||
	    q->limit != UINT64_MAX)
		return store_query_usage("import: all images are stored; export selects some");
	return q->word_count || q->map_path ? import_pictures(q) : import_archive(q);
}

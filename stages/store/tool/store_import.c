/*
 * store_import.c - darkroomd store import: stores the images of a tar archive.
 *
 * Images are written into <root>/.import, which the daemon does not know, and become visible by one
 * rename each. A daemon may serve the store. One import at a time uses the directory. What a killed
 * import has left in .import is removed by the next one. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"
#include "store/directory.h"
#include "store/store_find.h"
#include "store/store_path.h"
#include "store/stored_image.h"
#include "store_query.h"
#include "tar.h"

#define BATCH_MAX 32            /* images that share their flushes */
#define BATCH_BYTES (64u << 20) /* of such a batch, before its last image */
#define DRAIN_MAX (1u << 20)    /* bytes behind the archive's end */
#define COUNT "images="         /* the comment of store_export.c */

struct import_file {
	char name[STORED_NAME_MAX];
	char sum[CHECKSUM_LENGTH + 1]; /* of data */
	char tag[STORE_TAG_MAX];       /* that the archive gives; "": none */
	char *data;
	size_t size;
};

/* The files of one image of the archive, in memory until they are verified. */
struct import_image {
	char id[ULID_LENGTH + 1]; /* "": there is none */
	struct import_file file[STORED_FILES_MAX];
	unsigned file_count;
	uint64_t bytes, expires;
	char why[128]; /* it cannot be stored; "": nothing is wrong so far */
};

struct import {
	struct tar_reader reader;
	struct import_image batch[BATCH_MAX]; /* the last one is being read */
	unsigned batch_count;                 /* without it */
	uint64_t batch_bytes;
	struct stored_info info;
	struct store_progress progress;
	uint64_t stored, known, differ, refused;
};

/* ---- names ---- */

/* Splits the path of a member. Returns false unless it is exactly that of a file in a store:
 * <4 characters>/<2>/<id>/<name>, also behind "./". */
static bool split_path(const char *path, char id[ULID_LENGTH + 1], char name[STORED_NAME_MAX])
{
	char expected[STORE_PATH_MAX];

	if (strncmp(path, "./", 2) == 0)
		path += 2;
	const char *last = strrchr(path, '/');

	if (!last || last - path < ULID_LENGTH || !stored_file_is_named(last + 1) ||
	    !ulid_is_valid(last - ULID_LENGTH, ULID_LENGTH))
		return false;
	memcpy(id, last - ULID_LENGTH, ULID_LENGTH);
	id[ULID_LENGTH] = '\0';
	snprintf(name, STORED_NAME_MAX, "%s", last + 1);
	store_image_path(expected, STORE_BY_TIME, id, name);
	return strcmp(path, expected) == 0;
}

/* ---- reading ---- */

static void wrong(struct import_image *image, const char *name, const char *what)
{
	struct text why;

	if (image->why[0])
		return; /* the first one counts */
	text_init(&why, image->why, sizeof image->why);
	text_printf(&why, "%s: %s", name, what);
}

static struct import_file *find(struct import_image *image, const char *name)
{
	for (unsigned i = 0; i < image->file_count; i++)
		if (strcmp(image->file[i].name, name) == 0)
			return &image->file[i];
	return NULL;
}

/* Reads the present member, a file of this name, to the end of its data. An image of more than
 * bytes_max becomes wrong, and its data is left unread. Returns 0, or -errno of the archive. */
static int add_file(struct import_image *image, const char *name, struct tar_reader *r,
                    uint64_t bytes_max)
{
	if (find(image, name))
		wrong(image, name, "is there twice");
	else if (image->file_count == STORED_FILES_MAX)
		wrong(image, name, "too many files");
	else if (r->head.size > bytes_max - image->bytes)
		wrong(image, name, "too large: limits.body_bytes bounds it");
	if (image->why[0])
		return 0; /* the reader skips the data */
	struct import_file *file = &image->file[image->file_count++];

	*file = (struct import_file){ .data = NULL };
	snprintf(file->name, sizeof file->name, "%s", name);
	memcpy(file->tag, r->pax.tag, sizeof file->tag);
	image->bytes += r->head.size;
	file->data = malloc(r->head.size + 1); /* the kernel has memory for what is written */
	if (!file->data)
		return -ENOMEM;
	long n = tar_reader_data(r, file->data, r->head.size);

	if (n < 0)
		return (int)n;
	file->size = (size_t)n;
	checksum_of(file->data, file->size, file->sum);
	return 0;
}

/* ---- verifying ---- */

/* Reads image.json and compares it with its own checksum and the id. */
static bool check_document(struct import_image *image, struct stored_info *info)
{
	char text[STORED_IMAGE_MAX + 1];
	const struct import_file *file = find(image, STORED_IMAGE);

	if (!file || file->size > STORED_IMAGE_MAX || file->size == 0)
		return false;
	memcpy(text, file->data, file->size);
	text[file->size] = '\0';
	if (stored_info_read(info, text, file->size) ||
	    !stored_info_is_sound(info, text, image->id))
		return false;
	image->expires = stored_image_expires(text, file->size);
	return true;
}

/* Checks a file against the checksum beside it. Files of earlier versions have no other. */
static void check_tag(struct import_image *image, const struct import_file *file, bool needs_one)
{
	if (strlen(file->tag) < CHECKSUM_LENGTH) {
		if (needs_one)
			wrong(image, file->name, "has no checksum");
	} else if (memcmp(file->tag, file->sum, CHECKSUM_LENGTH) != 0) {
		wrong(image, file->name, "damaged");
	}
}

/* Checks that the files are those that image.json names, with their checksums. Sets image->why if
 * not, and image->expires. */
static void verify(struct import_image *image, struct stored_info *info)
{
	unsigned known = 1; /* image.json */

	if (image->why[0])
		return;
	if (!check_document(image, info)) {
		wrong(image, STORED_IMAGE, "missing or damaged");
		return;
	}
	for (unsigned i = 0; i < info->file_count; i++, known++) {
		const struct stored_file *expected = &info->file[i];
		const struct import_file *file = find(image, expected->name);

		if (!file)
			wrong(image, expected->name, "missing");
		else if (stored_file_fault(expected, file->size, file->sum))
			wrong(image, expected->name, "damaged");
	}
	if (!info->has_record)
		known += find(image, STORE_ORIGINAL) != NULL;
	for (unsigned i = 0; i < image->file_count; i++)
		check_tag(image, &image->file[i], !info->has_record);
	if (image->file_count != known)
		wrong(image, STORED_IMAGE, "names other files than there are");
}

/* ---- comparing ---- */

static bool is_stored(const struct import_file *file, struct store *s, const char *id)
{
	char sum[CHECKSUM_LENGTH + 1];
	uint64_t size;
	int fd = store_open_file(s, id, file->name, &size);
	bool is_same = fd >= 0 && size == file->size && checksum_of_file(fd, sum, &size) == 0 &&
	               strcmp(sum, file->sum) == 0;

	if (fd >= 0)
		close(fd);
	return is_same;
}

/* Compares the image with that of the store. Returns 0 if there is none, 1 if it has the same
 * files, or -1 if it has other files, or an upload with this id. */
static int compare(const struct import_image *image, struct store *s)
{
	int fd = store_open_directory(s, image->id);

	if (fd == -ENOENT)
		return store_is_spooled(s, image->id) ? -1 : 0;
	if (fd >= 0)
		close(fd);
	for (unsigned i = 0; i < image->file_count; i++)
		if (!is_stored(&image->file[i], s, image->id))
			return -1;
	return 1;
}

static void clear(struct import_image *image)
{
	for (unsigned i = 0; i < image->file_count; i++)
		free(image->file[i].data);
	*image = (struct import_image){ .file_count = 0 };
}

/* ---- the directory ---- */

/* Makes and locks the directory, and makes it the place where store_put() writes. Returns 0 or
 * -errno. */
static int make_place(struct store *s)
{
	unsigned cleared = 0;
	int fd = directory_open(s->root_fd, STORE_IMPORT_DIRECTORY, PRIVATE_DIRECTORY);

	if (fd < 0)
		return fd;
	s->incoming_fd = fd;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return -errno;
	return directory_clear(fd, &cleared);
}

/* Returns 0, or the exit status with the problem reported. */
static int open_place(struct store *s)
{
	int err = make_place(s);

	if (err == -EWOULDBLOCK) {
		store_query_say("another import uses the store");
		return EXIT_FAILURE;
	}
	if (err)
		return store_query_fail(STORE_IMPORT_DIRECTORY, err);
	usage_demand_recount(s);
	return 0;
}

/* ---- storing ---- */

static void refuse(struct import *m, const char *id, const char *why)
{
	store_query_say("%s: not stored: %s", id, why);
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
	struct store_file file[BATCH_MAX][STORED_FILES_MAX];
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
		clear(&m->batch[i]);
	}
	m->batch_count = 0;
	m->batch_bytes = 0;
	return status;
}

/* All files of the last image are read. Returns 0 or the exit status. */
static int end_image(struct import *m, struct store_query *q)
{
	struct import_image *image = &m->batch[m->batch_count];

	if (!image->id[0])
		return 0;
	m->progress.ended++;
	verify(image, &m->info);
	int same = image->why[0] ? 0 : compare(image, &q->store);

	m->known += same > 0;
	m->differ += same < 0;
	if (image->why[0])
		refuse(m, image->id, image->why);
	else if (same < 0)
		store_query_say("%s: the store has it with other files; they stay", image->id);
	if (image->why[0] || same || q->is_dry) {
		m->stored += !image->why[0] && !same;
		clear(image);
		return 0;
	}
	m->batch_bytes += image->bytes;
	m->batch_count++;
	return m->batch_count == BATCH_MAX - 1 || m->batch_bytes >= BATCH_BYTES
	               ? store_batch_of(m, q)
	               : 0;
}

/* ---- reading ---- */

/* Reads a member. Returns 0 or the exit status; sets *err if the archive cannot be read. */
static int read_member(struct import *m, struct store_query *q, int *err)
{
	char id[ULID_LENGTH + 1], name[STORED_NAME_MAX];
	struct import_image *image = &m->batch[m->batch_count];
	int status = 0;

	if (m->reader.head.type == TAR_DIRECTORY)
		return 0;
	if (m->reader.head.type != TAR_FILE || !split_path(m->reader.head.name, id, name)) {
		refuse(m, m->reader.head.name,
		       "expected a file with a path such as 01KA/X2/ID/thumb.jpg");
		return 0;
	}
	if (strcmp(image->id, id) != 0) {
		status = end_image(m, q);
		image = &m->batch[m->batch_count];
		memcpy(image->id, id, sizeof image->id);
	}
	if (!status)
		*err = add_file(image, name, &m->reader, 2 * q->conf.limits.body_bytes);
	return status;
}

static int fail_archive(int err)
{
	if (err != -EINVAL && err != -ENODATA)
		return store_query_fail("standard input", err);
	store_query_say(err == -EINVAL ? "expected an archive of store export on standard input"
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
		clear(&m->batch[m->batch_count]); /* it may lack files */
		status = fail_archive(err);
	} else if (!status) {
		status = end_image(m, q);
	}
	int last = store_batch_of(m, q);

	return status ? status : last;
}

int store_import(struct store_query *q)
{
	static struct import m;
	char data[16 * TAR_BLOCK];

	if (q->word_count || isatty(STDIN_FILENO))
		return store_query_usage(
			"import: expected no word, and an archive on standard input");
	m = (struct import){ .reader = { .in = stdin } };
	store_progress_start(&m.progress, 0);
	int status = open_place(&q->store);

	if (status)
		return status;
	status = read_archive(&m, q);
	(void)unlinkat(q->store.root_fd, STORE_IMPORT_DIRECTORY, AT_REMOVEDIR);
	usage_demand_recount(&q->store); /* a count in between has missed the rest */
	/* What pads the archive is read, so that the program that writes it does not fail. */
	for (size_t all = 0; !status && all < DRAIN_MAX; all += sizeof data)
		if (fread(data, 1, sizeof data, stdin) != sizeof data)
			break;
	store_progress_show(&m.progress, true);
	store_query_say("%" PRIu64 " image%s stored, %" PRIu64 " there already, %" PRIu64
	                " different, %" PRIu64 " refused",
	                m.stored, plural(m.stored), m.known, m.differ, m.refused);
	return status ? status : m.differ || m.refused ? EXIT_FAILURE : EXIT_SUCCESS;
}

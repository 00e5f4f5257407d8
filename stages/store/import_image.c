/* import_image.c - collects, verifies and compares the files of an image. Main thread. */
#include "import_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "store_find.h"
#include "store_path.h"

#define SUFFIX ".jpg"
#define READ_SIZE (1u << 20) /* memory grows with the data, not with the size that is announced */

/* ---- names ---- */

static bool is_file_name(const char *name)
{
	size_t length = strlen(name), suffix = sizeof SUFFIX - 1;

	if (strcmp(name, STORED_IMAGE) == 0)
		return true;
	return length > suffix && length - suffix < CONF_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length - suffix &&
	       strcmp(name + length - suffix, SUFFIX) == 0;
}

bool import_path_split(const char *path, char id[ULID_LENGTH + 1], char name[CONF_NAME_MAX + 8])
{
	char expected[STORE_PATH_MAX];

	if (strncmp(path, "./", 2) == 0)
		path += 2;
	const char *last = strrchr(path, '/');

	if (!last || last - path < ULID_LENGTH || !is_file_name(last + 1) ||
	    !ulid_is_valid(last - ULID_LENGTH, ULID_LENGTH))
		return false;
	memcpy(id, last - ULID_LENGTH, ULID_LENGTH);
	id[ULID_LENGTH] = '\0';
	snprintf(name, CONF_NAME_MAX + 8, "%s", last + 1);
	store_image_path(expected, STORE_BY_TIME, id, name);
	return strcmp(path, expected) == 0;
}

/* ---- reading ---- */

static void wrong(struct import_image *image, const char *name, const char *what)
{
	if (!image->why[0]) /* the first one counts */
		snprintf(image->why, sizeof image->why, "%s: %s", name, what);
}

static struct import_file *find(struct import_image *image, const char *name)
{
	for (unsigned i = 0; i < image->file_count; i++)
		if (strcmp(image->file[i].name, name) == 0)
			return &image->file[i];
	return NULL;
}

/* Reads the data of the present member. Returns 0 or -errno. */
static int read_data(struct import_file *file, struct tar_reader *r)
{
	size_t room = 0;
	long n = 1;

	while (n > 0 && r->left > 0) {
		if (file->size == room) {
			room = room ? 2 * room : READ_SIZE;
			if (room > r->left + file->size)
				room = (size_t)r->left + file->size;
			char *data = realloc(file->data, room);

			if (!data)
				return -ENOMEM;
			file->data = data;
		}
		n = tar_reader_data(r, file->data + file->size, room - file->size);
		if (n > 0)
			file->size += (size_t)n;
	}
	return n < 0 ? (int)n : 0;
}

int import_image_add(struct import_image *image, const char *name, struct tar_reader *r,
                     uint64_t bytes_max)
{
	if (find(image, name))
		wrong(image, name, "is there twice");
	else if (image->file_count == EXPORT_FILES_MAX)
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
	int err = read_data(file, r);

	if (!err)
		checksum_of(file->data ? file->data : "", file->size, file->sum);
	return err;
}

/* ---- verifying ---- */

/* Reads image.json and compares it with its own checksum and the id. */
static bool check_document(struct import_image *image, struct stored_info *info)
{
	char text[STORED_IMAGE_MAX + 1], id[ULID_LENGTH + 1], own[CHECKSUM_LENGTH + 1];
	const struct import_file *file = find(image, STORED_IMAGE);

	if (!file || file->size > STORED_IMAGE_MAX || file->size == 0)
		return false;
	memcpy(text, file->data, file->size);
	text[file->size] = '\0';
	if (stored_info_read(info, text, file->size))
		return false;
	checksum_of(text, info->own_sum_at, own);
	if (info->has_record && strcmp(own, info->own_sum) != 0)
		return false;
	struct tm tm = { .tm_mday = 1 };
	char date[ULID_DATE_MAX];
	const char *expires = json_reader_member(text, "expires");

	if (json_reader_ascii(expires, date, sizeof date)) {
		const char *end = strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm);
		time_t seconds = end && !*end ? timegm(&tm) : 0;

		image->expires = seconds > 0 ? (uint64_t)seconds : 0;
	}
	return json_reader_ascii(json_reader_member(text, "id"), id, sizeof id) &&
	       strcmp(id, image->id) == 0;
}

static void check_expected(struct import_image *image, const struct stored_file *expected)
{
	char name[sizeof image->file[0].name];

	snprintf(name, sizeof name, "%s" SUFFIX, expected->name);
	const struct import_file *file = find(image, name);

	if (!file)
		wrong(image, name, "missing");
	else if (file->size != expected->bytes ||
	         (expected->sum[0] && strcmp(expected->sum, file->sum) != 0))
		wrong(image, name, "damaged");
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

void import_image_verify(struct import_image *image, struct stored_info *info)
{
	unsigned known = 1; /* image.json */

	if (image->why[0])
		return;
	if (!check_document(image, info)) {
		wrong(image, STORED_IMAGE, "missing or damaged");
		return;
	}
	for (unsigned i = 0; i < info->file_count; i++, known++)
		check_expected(image, &info->file[i]);
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

enum import_state import_image_compare(const struct import_image *image, struct store *s)
{
	int fd = store_open_directory(s, image->id);

	if (fd == -ENOENT)
		return store_is_spooled(s, image->id) ? IMPORT_DIFFERS : IMPORT_ABSENT;
	if (fd >= 0)
		close(fd);
	for (unsigned i = 0; i < image->file_count; i++)
		if (!is_stored(&image->file[i], s, image->id))
			return IMPORT_DIFFERS;
	return IMPORT_SAME;
}

void import_image_clear(struct import_image *image)
{
	for (unsigned i = 0; i < image->file_count; i++)
		free(image->file[i].data);
	*image = (struct import_image){ .file_count = 0 };
}

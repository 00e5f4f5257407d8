/* s3_image.c - writes and reads heads. */
#include "s3_image.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "s3_sign.h"
#include "store/checksum.h"

#define FIRST_FORMAT "image 1 %08zu %010" PRIu64 " %s\n"
#define FIRST_LENGTH 61
#define ID_BEGIN "{\"id\":\""
#define LINE_MAX (STORED_NAME_MAX + 1 + 20 + 1 + 20 + 1 + CHECKSUM_LENGTH + 1)

static_assert(FIRST_LENGTH + STORED_FILES_MAX * LINE_MAX + 1 + STORED_IMAGE_MAX < S3_HEAD_MAX,
              "no head is longer");

void s3_image_key(char key[S3_IMAGE_KEY_MAX], const char *id)
{
	char hash[S3_HASH_MAX];

	s3_hash(&(struct iovec){ (void *)(uintptr_t)id, ULID_LENGTH }, 1, hash);
	snprintf(key, S3_IMAGE_KEY_MAX, S3_IMAGES "%.2s/%.*s", hash, ULID_LENGTH, id);
}

/* ---- writing ---- */

/* Returns a number by which the files stand in order. */
static size_t rank_of(const struct store_file *file)
{
	return strcmp(file->name, STORED_IMAGE) == 0     ? 0
	       : strcmp(file->name, STORE_ORIGINAL) == 0 ? SIZE_MAX
	                                                 : file->size;
}

static int compare_places(const void *a, const void *b)
{
	size_t x = rank_of(*(const struct store_file *const *)a),
	       y = rank_of(*(const struct store_file *const *)b);

	return (x > y) - (x < y);
}

/* Appends the map. `at`: where image.json will be. Returns the bytes of the map. */
static size_t put_map(struct text *to, const struct store_file *const *file, unsigned count,
                      uint64_t at)
{
	size_t before = to->length;

	for (unsigned i = 0; i < count; at += file[i++]->size)
		text_printf(to, "%s %" PRIu64 " %zu %s\n", file[i]->name, at, file[i]->size,
		            file[i]->sum);
	text_puts(to, "\n");
	return to->length - before;
}

int s3_image_write(struct text *head, struct iovec piece[STORED_FILES_MAX],
                   const struct store_item *item, uint64_t expires)
{
	const struct store_file *file[STORED_FILES_MAX];
	char map_data[S3_HEAD_MAX], sum[CHECKSUM_LENGTH + 1];
	size_t length = 0;
	struct text map;

	assert(item->file_count <= STORED_FILES_MAX);
	for (unsigned i = 0; i < item->file_count; i++)
		file[i] = &item->file[i];
	qsort(file, item->file_count, sizeof(void *), compare_places);
	/* The map has its own length in it: so it is written until that stays. */
	for (size_t before = 1; length != before;) {
		before = length;
		text_init(&map, map_data, sizeof map_data);
		length = put_map(&map, file, item->file_count, FIRST_LENGTH + before);
	}
	text_put(&map, file[0]->data, file[0]->size);
	checksum_of(map_data, map.length, sum);
	text_printf(head, FIRST_FORMAT, FIRST_LENGTH + map.length, expires, sum);
	text_put(head, map_data, map.length);
	if (map.overflowed || expires > UINT64_C(9999999999))
		return -EFBIG;
	piece[0] = (struct iovec){ head->data, head->length };
	for (unsigned i = 1; i < item->file_count; i++)
		piece[i] = (struct iovec){ (void *)(uintptr_t)file[i]->data, file[i]->size };
	return head->overflowed ? -ENOMEM : (int)item->file_count;
}

bool s3_id_is_too_old(const char *id)
{
	return time(NULL) - ulid_time(id) > S3_ID_AGE_MAX_S;
}

/* ---- reading ---- */

/* Reads a line of the map. Returns what follows, or NULL if it is not one. */
static const char *read_line(struct s3_section *s, const char *line)
{
	int length = 0;

	static_assert(STORED_NAME_MAX == 37, "as the format says");
	sscanf(line, "%36[a-z0-9._-] %20" SCNu64 " %20" SCNu64 " %32[0-9a-f]%n", s->name, &s->at,
	       &s->bytes, s->sum, &length);
	return length > 0 && line[length] == '\n' && strlen(s->sum) == CHECKSUM_LENGTH
	               ? line + length + 1
	               : NULL;
}

/* Reads the map, whose files must follow each other up to the end of the object. */
static bool read_map(struct s3_head *head, const char *line, const char *data, uint64_t total)
{
	uint64_t at = 0;

	for (head->count = 0; *line != '\n'; head->count++) {
		struct s3_section *s = &head->section[head->count];

		if (head->count == STORED_FILES_MAX || !(line = read_line(s, line)))
			return false;
		if ((at && s->at != at) || !s->bytes || s->at > total || s->bytes > total - s->at)
			return false;
		at = s->at + s->bytes;
	}
	const struct s3_section *json = &head->section[0];

	return head->count > 0 && at == total && strcmp(json->name, STORED_IMAGE) == 0 &&
	       json->at == (uint64_t)(line + 1 - data) && json->at + json->bytes == head->length;
}

/* Returns whether an image.json is that of the image: the id is its first member. A zero follows.
 */
static bool is_of(const char *json, const char *id)
{
	char own[sizeof ID_BEGIN + ULID_LENGTH + 1];
	int length = snprintf(own, sizeof own, ID_BEGIN "%.*s\"", ULID_LENGTH, id);

	return strncmp(json, own, (size_t)length) == 0;
}

int s3_head_read(struct s3_head *head, const char *id, const char *data, size_t length,
                 uint64_t total)
{
	char sum[CHECKSUM_LENGTH + 1] = "", own[CHECKSUM_LENGTH + 1];
	int first = 0;

	static_assert(sizeof S3_TOMBSTONE == sizeof S3_FAILED, "lists tell both by their size");
	if (total == sizeof S3_TOMBSTONE - 1 && length == total) {
		if (memcmp(data, S3_TOMBSTONE, length) == 0)
			return S3_IS_REMOVED;
		if (memcmp(data, S3_FAILED, length) == 0)
			return S3_IS_FAILED;
	}
	sscanf(data, "image 1 %8" SCNu64 " %10" SCNu64 " %32[0-9a-f]%n", &head->length,
	       &head->expires, sum, &first);
	if (first != FIRST_LENGTH - 1 || data[first] != '\n' || head->length > length ||
	    head->length > S3_HEAD_MAX || head->length <= FIRST_LENGTH)
		return -EBADMSG;
	checksum_of(data + FIRST_LENGTH, head->length - FIRST_LENGTH, own);
	return strcmp(sum, own) == 0 && read_map(head, data + FIRST_LENGTH, data, total) &&
	                       is_of(data + head->section[0].at, id)
	               ? 0
	               : -EBADMSG;
}

const struct s3_section *s3_head_find(const struct s3_head *head, const char *name)
{
	for (unsigned i = 0; i < head->count; i++)
		if (strcmp(head->section[i].name, name) == 0)
			return &head->section[i];
	return NULL;
}

/* stored_image.c - finds the parts of image.json, and the files beside it. Any thread. */
#include "stored_image.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"
#include "store.h"
#include "store_find.h"

size_t stored_image_public(const char *data, size_t length)
{
	/* A string cannot contain this: its quotation marks are escaped. */
	static const char begin[] = ",\"" STORED_RECORD "\":{";
	const char *record = memmem(data, length, begin, sizeof begin - 1);

	return record ? (size_t)(record - data) : length;
}

uint64_t stored_image_end(const char *id, uint64_t expires, uint64_t max_age_ms)
{
	uint64_t end = max_age_ms ? (uint64_t)ulid_time(id) + max_age_ms / 1000 : 0;

	return !end || (expires && expires < end) ? expires : end;
}

bool stored_image_has_ended(struct store *s, const char *id, uint64_t max_age_ms)
{
	char tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);
	uint64_t end = stored_image_end(id, fd < 0 ? 0 : store_tag(fd, tag), max_age_ms);

	if (fd >= 0)
		close(fd);
	return end && (uint64_t)time(NULL) >= end;
}

bool stored_image_has_original(struct store *s, const char *id)
{
	uint64_t size;
	int fd = store_open_file(s, id, STORE_ORIGINAL, &size);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int stored_image_read(int fd, char data[STORED_IMAGE_MAX + 1])
{
	size_t length = 0;
	ssize_t n;

	data[0] = '\0';
	do {
		n = pread(fd, data + length, STORED_IMAGE_MAX + 1 - length, (off_t)length);
		if (n < 0 && errno != EINTR)
			return -errno;
		length += n > 0 ? (size_t)n : 0;
	} while (n != 0 && length <= STORED_IMAGE_MAX);
	if (length > STORED_IMAGE_MAX)
		return -EFBIG;
	data[length] = '\0';
	return (int)length;
}

int stored_image_read_public(int fd, struct text *to)
{
	char data[STORED_IMAGE_MAX + 1];
	int length = stored_image_read(fd, data);

	if (length < 0)
		return length;
	size_t visible = stored_image_public(data, (size_t)length);

	text_put(to, data, visible);
	if (visible < (size_t)length)
		text_puts(to, "}\n");
	return 0;
}

#define SUFFIX ".jpg"

/* Returns the length of the variant's name if the file is that of one, or 0. */
static size_t variant_length(const char *file)
{
	size_t length = strlen(file), suffix = sizeof SUFFIX - 1;

	if (length <= suffix || length - suffix >= CONF_NAME_MAX ||
	    strcmp(file + length - suffix, SUFFIX) != 0 || strcmp(file, STORE_ORIGINAL) == 0)
		return 0;
	return length - suffix;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

int stored_image_variants(struct store *s, const char *id, struct text *names)
{
	char name[CONF_VARIANT_MAX][CONF_NAME_MAX];
	int fd = store_open_directory(s, id), n = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		int err = fd < 0 ? fd : -ENOMEM;

		if (fd >= 0)
			close(fd);
		return err;
	}
	while (n < CONF_VARIANT_MAX && (entry = readdir(dir))) {
		size_t length = variant_length(entry->d_name);

		if (length == 0)
			continue;
		memcpy(name[n], entry->d_name, length);
		name[n++][length] = '\0';
	}
	closedir(dir);
	qsort(name, (size_t)n, sizeof *name, compare);
	for (int i = 0; i < n; i++) {
		text_puts(names, i ? ", " : "");
		text_puts(names, name[i]);
	}
	return n;
}

/* Returns the list of steps that the image was made with, and its length; NULL: there is none. */
static const char *find_degraded(const char *data, size_t length, size_t *list_length)
{
	/* A string cannot contain this: its quotation marks are escaped. */
	static const char begin[] = ",\"" STORED_DEGRADED "\":[";
	const char *list = memmem(data, stored_image_public(data, length), begin, sizeof begin - 1);
	const char *end = list ? strchr(list + sizeof begin - 1, ']') : NULL;

	*list_length = end ? (size_t)(end - list) : 0;
	return end ? list : NULL;
}

bool stored_image_says_skipped(const char *data, size_t length, const char *variant)
{
	char step[CONF_NAME_MAX + sizeof "\"skip \""];
	size_t list_length;
	const char *list = find_degraded(data, length, &list_length);
	int n = snprintf(step, sizeof step, "\"skip %s\"", variant);

	return list && memmem(list, list_length, step, (size_t)n);
}

bool stored_image_has_skipped(struct store *s, const char *id, const char *variant)
{
	char data[STORED_IMAGE_MAX + 1];
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);
	int length = fd < 0 ? fd : stored_image_read(fd, data);

	if (fd >= 0)
		close(fd);
	return length >= 0 && stored_image_says_skipped(data, (size_t)length, variant);
}

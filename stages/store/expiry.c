/* expiry.c - files whose names are times and ids. Any thread; calls block. */
#include "expiry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "store.h"
#include "store_find.h"
#include "store_path.h"
#include "stored_image.h"

#define SECONDS 3600
#define HOUR_LENGTH 7
#define SECOND_LENGTH 10
#define EXPIRES_MAX UINT64_C(9999999999) /* has SECOND_LENGTH digits */
#define ATTEMPTS_MAX 3
#define HOURS_MAX 4096 /* that are looked at in one list; older ones come first */

static void hour_path(char path[STORE_PATH_MAX], uint64_t expires)
{
	snprintf(path, STORE_PATH_MAX, STORE_EXPIRY_DIRECTORY "/%0*" PRIu64, HOUR_LENGTH,
	         expires / SECONDS);
}

static void entry_path(char path[STORE_PATH_MAX], const char *id, uint64_t expires)
{
	char hour[STORE_PATH_MAX];

	hour_path(hour, expires);
	snprintf(path, STORE_PATH_MAX, "%.*s/%0*" PRIu64 ".%.*s", 32, hour, SECOND_LENGTH, expires,
	         ULID_LENGTH, id);
}

static int make_directory(const struct store *s, const char *path)
{
	return mkdirat(s->root_fd, path, PRIVATE_DIRECTORY) && errno != EEXIST ? -errno : 0;
}

int expiry_note(struct store *s, const char *id, uint64_t expires)
{
	char hour[STORE_PATH_MAX], path[STORE_PATH_MAX];
	int fd = -1, err = -ENOENT;

	if (expires > EXPIRES_MAX)
		return -ERANGE;
	hour_path(hour, expires);
	entry_path(path, id, expires);
	/* An hour of the past may be removed meanwhile, because it is empty. */
	for (unsigned i = 0; i < ATTEMPTS_MAX && err == -ENOENT; i++) {
		fd = openat(s->root_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, PRIVATE_FILE);
		err = fd < 0 ? -errno : 0;
		if (err == -ENOENT &&
		    (make_directory(s, STORE_EXPIRY_DIRECTORY) || make_directory(s, hour)))
			return -errno;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

void expiry_forget(struct store *s, const char *id, uint64_t expires)
{
	char path[STORE_PATH_MAX];

	entry_path(path, id, expires);
	(void)unlinkat(s->root_fd, path, 0); /* its time comes: it is removed then */
}

void expiry_forget_removed(struct store *s, const char *name)
{
	char path[STORE_PATH_MAX], tag[STORE_TAG_MAX];

	snprintf(path, sizeof path, "%s/" STORED_IMAGE, name);
	int fd = openat(s->trash_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return; /* of the spool, or a file */
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if (expires)
		expiry_forget(s, name, expires); /* the name begins with the id */
}

/* ---- the list ---- */

struct hours {
	uint64_t hour[HOURS_MAX];
	unsigned count;
};

static bool read_number(const char *name, size_t length, uint64_t *number)
{
	if (strspn(name, "0123456789") != length)
		return false;
	*number = strtoull(name, NULL, 10);
	return true;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Lists hours that have begun, the oldest first. Returns 0 or -errno. */
static int list_hours(const struct store *s, uint64_t now, struct hours *hours)
{
	DIR *dir = directory_list(s->root_fd, STORE_EXPIRY_DIRECTORY);
	const struct dirent *entry;
	uint64_t hour;

	hours->count = 0;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (hours->count < HOURS_MAX && (entry = readdir(dir)))
		if (read_number(entry->d_name, HOUR_LENGTH, &hour) &&
		    strlen(entry->d_name) == HOUR_LENGTH && hour <= now / SECONDS)
			hours->hour[hours->count++] = hour;
	closedir(dir);
	qsort(hours->hour, hours->count, sizeof hours->hour[0], compare);
	return 0;
}

static bool read_entry(const char *name, struct expiry_due *due)
{
	const char *id = name + SECOND_LENGTH + 1;

	if (strlen(name) != SECOND_LENGTH + 1 + ULID_LENGTH || name[SECOND_LENGTH] != '.' ||
	    !read_number(name, SECOND_LENGTH, &due->expires) || !ulid_is_valid(id, ULID_LENGTH))
		return false;
	memcpy(due->id, id, sizeof due->id);
	return true;
}

/* Lists the images of one hour. Returns 0 or -errno. */
static int list_hour(struct store *s, uint64_t hour, uint64_t now, struct expiry_due *due,
                     unsigned max, unsigned *count)
{
	char path[STORE_PATH_MAX];
	const struct dirent *entry;

	hour_path(path, hour * SECONDS);
	/* It stays unless it is empty. */
	if (hour < now / SECONDS && unlinkat(s->root_fd, path, AT_REMOVEDIR) == 0)
		return 0;
	DIR *dir = directory_list(s->root_fd, path);

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (*count < max && (entry = readdir(dir)))
		if (read_entry(entry->d_name, &due[*count]) && due[*count].expires <= now)
			++*count;
	closedir(dir);
	return 0;
}

int expiry_list(struct store *s, uint64_t now, struct expiry_due *due, unsigned max)
{
	struct hours *hours = malloc(sizeof *hours);
	unsigned count = 0;

	if (!hours)
		return -ENOMEM;
	int err = list_hours(s, now, hours);

	for (unsigned i = 0; i < hours->count && count < max && !err; i++)
		err = list_hour(s, hours->hour[i], now, due, max, &count);
	free(hours);
	return err ? err : (int)count;
}

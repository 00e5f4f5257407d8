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
#define SWEPT STORE_EXPIRY_DIRECTORY "/swept" /* an empty directory */

/* ---- names ---- */

void expiry_write_name(char name[EXPIRY_NAME_MAX], const char *id, uint64_t expires)
{
	snprintf(name, EXPIRY_NAME_MAX, "%0*" PRIu64 ".%.*s", SECOND_LENGTH,
	         expires % (EXPIRES_MAX + 1), ULID_LENGTH, id);
}

bool expiry_read_name(const char *name, struct expiry_due *due)
{
	const char *id = name + SECOND_LENGTH + 1;

	if (strspn(name, "0123456789") != SECOND_LENGTH || name[SECOND_LENGTH] != '.' ||
	    !ulid_is_valid(id, strlen(id)))
		return false;
	due->expires = strtoull(name, NULL, 10);
	memcpy(due->id, id, sizeof due->id);
	return true;
}

static void hour_path(char path[STORE_PATH_MAX], uint64_t expires)
{
	snprintf(path, STORE_PATH_MAX, STORE_EXPIRY_DIRECTORY "/%0*" PRIu64, HOUR_LENGTH,
	         expires / SECONDS);
}

static void entry_path(char path[STORE_PATH_MAX], const char *id, uint64_t expires)
{
	char hour[STORE_PATH_MAX], name[EXPIRY_NAME_MAX];

	hour_path(hour, expires);
	expiry_write_name(name, id, expires);
	snprintf(path, STORE_PATH_MAX, "%.*s/%s", 32, hour, name);
}

/* ---- notes ---- */

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
		fd = directory_open_file(s->root_fd, path, O_WRONLY | O_CREAT);
		err = fd < 0 ? fd : 0;
		int made = err == -ENOENT ? directory_make_all(s->root_fd, hour, PRIVATE_DIRECTORY)
		                          : 0;

		if (made)
			return made;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

void expiry_forget(struct store *s, const char *id, uint64_t expires)
{
	char path[STORE_PATH_MAX];

	entry_path(path, id, expires);
	(void)directory_unlink(s->root_fd, path, 0); /* its time comes: it is removed then */
}

void expiry_forget_removed(struct store *s, const char *name)
{
	char path[STORE_PATH_MAX], tag[STORE_TAG_MAX];

	snprintf(path, sizeof path, "%s/" STORED_IMAGE, name);
	int fd = directory_open_file(s->trash_fd, path, O_RDONLY);

	if (fd < 0)
		return; /* of the spool, or a file */
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if (expires)
		expiry_forget(s, name, expires); /* the name begins with the id */
}

/* ---- the list ---- */

/* Lists the images of one hour. Returns 0 or -errno. */
static int list_hour(struct store *s, uint64_t hour, uint64_t now, struct expiry_due *due,
                     unsigned max, unsigned *count)
{
	char path[STORE_PATH_MAX];
	const char *name;

	hour_path(path, hour * SECONDS);
	/* It stays unless it is empty. */
	if (hour < now / SECONDS && directory_unlink(s->root_fd, path, AT_REMOVEDIR) == 0)
		return 0;
	DIR *dir = directory_list(s->root_fd, path);

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (*count < max && (name = directory_next(dir)))
		if (expiry_read_name(name, &due[*count]) && due[*count].expires <= now)
			++*count;
	closedir(dir);
	return 0;
}

int expiry_list(struct store *s, uint64_t now, struct expiry_due *due, unsigned max)
{
	struct directory_names *hours = malloc(sizeof *hours);
	char last[HOUR_LENGTH + 14];
	unsigned count = 0;

	if (!hours)
		return -ENOMEM;
	snprintf(last, sizeof last, "%0*" PRIu64, HOUR_LENGTH, now / SECONDS);
	int err =
		directory_list_names(s->root_fd, STORE_EXPIRY_DIRECTORY, HOUR_LENGTH, last, hours);

	for (unsigned i = 0; i < hours->count && count < max && !err; i++)
		if (strspn(hours->name[i], "0123456789") == HOUR_LENGTH)
			err = list_hour(s, strtoull(hours->name[i], NULL, 10), now, due, max,
			                &count);
	free(hours);
	return err ? err : (int)count;
}

/* ---- when images were removed last ---- */

/* A name that comes and goes changes the time of the directory. utimensat(2) could do that to any
 * file, so the sandbox does not have it. */
int expiry_note_sweep(struct store *s)
{
	int err = directory_make_all(s->root_fd, SWEPT "/now", PRIVATE_DIRECTORY);

	return err ? err : directory_unlink(s->root_fd, SWEPT "/now", AT_REMOVEDIR);
}

int64_t expiry_last_sweep(struct store *s)
{
	struct stat st;

	return directory_stat(s->root_fd, SWEPT, &st) ? 0 : st.st_mtim.tv_sec;
}

/* spool.c - opens and moves spooled images, and counts attempts. Any thread; calls block. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "directory.h"
#include "store_find.h"

#define PATH_SIZE 64

/* A zero stands behind each name. Earlier versions wrote, and read, the first ones alone. */
size_t spool_note(char note[SPOOL_NOTE_MAX], const struct spool_names *names)
{
	int n = snprintf(note, SPOOL_NOTE_MAX, "0\n%s%c%s%c%" PRIu64 "%s%s", names->file, '\0',
	                 names->token, '\0', names->expires, names->focus[0] ? " " : "",
	                 names->focus);

	assert(n > 0 && (size_t)n + 1 + names->metadata.length < SPOOL_NOTE_MAX);
	/* Behind the zero of the number, or of the focal point, which earlier versions ignore. */
	memcpy(note + n + 1, names->metadata.data, names->metadata.length);
	return (size_t)n + 1 + names->metadata.length;
}

/* Returns what an error of opening a file of an image means. */
static int meaning_of(struct store *s, const char *id, int err)
{
	return err == -ENOTDIR || err == -ELOOP || (err == -ENOENT && store_is_spooled(s, id))
	               ? -EINVAL
	               : err;
}

/* Opens a file of a spooled image. Returns a descriptor, -ENOENT if the image is not spooled,
 * -EINVAL if the file is not as store_put() writes it, or -errno. */
static int open_in(struct store *s, const char *id, const char *name, int flags)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/%s", id, name);
	int fd = directory_open_file(s->spool_fd, path, flags);

	return fd < 0 ? meaning_of(s, id, fd) : fd;
}

/* Reads the note and appends a zero. Returns its length or -errno; -EINVAL if it is not as
 * spool_note() writes it. */
static int read_note(struct store *s, const char *id, char note[SPOOL_NOTE_MAX])
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/" SPOOL_NOTE, id);
	int n = directory_read_file(s->spool_fd, path, note, SPOOL_NOTE_MAX);

	if (n < 0)
		return meaning_of(s, id, n);
	return n < 2 || note[0] < '0' || note[0] > '9' || note[1] != '\n' ? -EINVAL : n;
}

int spool_set_attempts(struct store *s, const char *id, unsigned attempts)
{
	char digit = (char)('0' + (attempts < 9 ? attempts : 9));
	int fd = open_in(s, id, SPOOL_NOTE, O_WRONLY);

	if (fd < 0)
		return fd;
	/* Overwriting one byte needs no free space, so it also works on a full disk. */
	int err = pwrite(fd, &digit, 1, 0) == 1 ? 0 : -errno;

	if (!err && s->survives_power && fdatasync(fd))
		err = -errno;
	close(fd);
	return err;
}

int spool_size(struct store *s, const char *id, uint64_t *size)
{
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof path, "%s/" STORE_ORIGINAL, id);
	int err = directory_stat(s->spool_fd, path, &st);

	*size = err ? 0 : (uint64_t)st.st_size;
	return err;
}

int spool_attempts(struct store *s, const char *id)
{
	char note[SPOOL_NOTE_MAX];
	int length = read_note(s, id, note);

	return length == -ENOENT ? -1 : length < 0 ? 0 : note[0] - '0';
}

/* Copies a text that may be too long, or not be there. */
static void copy_name(char *to, size_t size, const char *from, size_t length)
{
	length = strnlen(from, length < size ? length : size - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* Reads what a note keeps; a zero must follow it. */
static void read_names(const char *note, size_t length, struct spool_names *names)
{
	const char *end = note + length, *file = note + 2;
	const char *token = file + strlen(file) + 1;

	copy_name(names->file, sizeof names->file, file, (size_t)(end - file));
	if (token > end)
		token = end;
	copy_name(names->token, sizeof names->token, token, (size_t)(end - token));
	const char *expires = token + strlen(names->token) + 1;

	names->expires = expires < end ? strtoull(expires, NULL, 10) : 0;
	const char *metadata = expires < end ? expires + strlen(expires) + 1 : end;
	const char *focus = expires < end ? strchr(expires, ' ') : NULL;

	snprintf(names->focus, sizeof names->focus, "%s", focus ? focus + 1 : "");
	/* It ends with a zero, and one more follows the note. */
	names->metadata.length = metadata < end && !end[-1] && end - metadata <= SPOOL_METADATA_MAX
	                                 ? (size_t)(end - metadata)
	                                 : 0;
	memcpy(names->metadata.data, metadata, names->metadata.length);
}

int spool_open(struct store *s, const char *id, uint64_t *size, struct spool_names *names)
{
	char note[SPOOL_NOTE_MAX];
	struct stat st;
	int length = read_note(s, id, note);

	if (length < 0)
		return length;
	read_names(note, (size_t)length, names);
	int fd = open_in(s, id, STORE_ORIGINAL, O_RDONLY);

	if (fd < 0)
		return fd;
	/* An error of fstat() says nothing about the file: it is not -EINVAL. */
	int err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) && st.st_size > 0 ? 0 : -EINVAL;

	if (err) {
		close(fd);
		return err;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

int spool_quarantine(struct store *s, const char *id, const char *why)
{
	char path[PATH_SIZE];

	/* First, so that it is there once the image has left the spool. */
	snprintf(path, sizeof path, "%s/" SPOOL_PROBLEM, id);
	int fd = directory_open_file(s->spool_fd, path, O_WRONLY | O_CREAT | O_TRUNC);

	if (fd >= 0) {
		(void)dprintf(fd, "%s\n", why);
		close(fd);
	}
	return renameat(s->spool_fd, id, s->quarantine_fd, id) ? -errno : 0;
}

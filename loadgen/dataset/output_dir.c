/*
 * output_dir.c - writes files by rename and labels the directory.
 *
 * Nothing is synced: after a power cut it is cheaper to make the dataset again.
 */
#include "output_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

#define LABEL "dataset.txt"
#define LINE_SIZE 256

static int complain(const char *path, const char *what)
{
	fprintf(stderr, "darkroom-dataset: %s: %s\n", path, what);
	return -1;
}

/* Returns 1 if the directory is empty, 0 if not, or -errno. Hidden files do not count: interrupted
 * runs leave them. */
static int is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int result = 1;

	if (!dir) {
		result = -errno;
		if (copy >= 0)
			close(copy);
		return result;
	}
	errno = 0;
	while (result == 1 && (entry = readdir(dir)))
		result = entry->d_name[0] == '.';
	if (result == 1 && errno)
		result = -errno;
	closedir(dir);
	return result;
}

/* Reads the first line of the label. Returns its length or -errno. */
static ssize_t read_label(int fd, char line[LINE_SIZE])
{
	int label = openat(fd, LABEL, O_RDONLY | O_CLOEXEC);
	ssize_t size = label < 0 ? -errno : read(label, line, LINE_SIZE - 1);

	if (label >= 0) {
		size = size < 0 ? -errno : size;
		close(label);
	}
	line[size < 0 ? 0 : size] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return size;
}

/* Claims a directory that is empty or holds the same dataset. */
static int claim(struct output_dir *d, const char *path, const char *line)
{
	char other[LINE_SIZE];
	struct iovec parts[] = { { .iov_base = other, .iov_len = 0 },
		                 { .iov_base = (char[]){ "\n" }, .iov_len = 1 } };
	ssize_t size = read_label(d->fd, other);
	int err;

	if (size >= 0 && strcmp(line, other) == 0)
		return 0;
	if (size >= 0) {
		fprintf(stderr,
		        "darkroom-dataset: %s holds another dataset:\n  found:  %s\n  wanted: %s\n"
		        "Choose another directory, or remove this one.\n",
		        path, other, line);
		return -1;
	}
	if (size != -ENOENT)
		return complain(path, strerror((int)-size));
	err = is_empty(d->fd);
	if (err < 0)
		return complain(path, strerror(-err));
	if (err == 0)
		return complain(
			path, "expected an empty directory or a dataset; choose another directory");
	snprintf(other, sizeof other, "%s", line);
	parts[0].iov_len = strlen(other);
	err = output_dir_write(d, LABEL, parts, (int)COUNT_OF(parts));
	return err ? complain(path, strerror(-err)) : 0;
}

int output_dir_open(struct output_dir *d, const char *path, const char *line)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return complain(path, strerror(errno));
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return complain(path, strerror(errno));
	if (flock(d->fd, LOCK_EX | LOCK_NB) < 0)
		complain(path, errno == EWOULDBLOCK ? "another darkroom-dataset is using it"
		                                    : strerror(errno));
	else if (claim(d, path, line) == 0)
		return 0;
	output_dir_close(d);
	return -1;
}

void output_dir_close(struct output_dir *d)
{
	close(d->fd);
	d->fd = -1;
}

bool output_dir_has(const struct output_dir *d, const char *name, uint32_t *size)
{
	struct stat st;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > UINT32_MAX)
		return false;
	*size = (uint32_t)st.st_size;
	return true;
}

/* Writes all parts, in several calls if necessary. Returns 0 or -errno. */
static int write_all(int fd, const struct iovec *parts, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		const char *data = parts[i].iov_base;
		size_t left = parts[i].iov_len;

		while (left > 0) {
			ssize_t n = write(fd, data, left);

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return -errno;
			data += n;
			left -= (size_t)n;
		}
	}
	return 0;
}

int output_dir_write(const struct output_dir *d, const char *name, const struct iovec *parts,
                     int count)
{
	char hidden[LINE_SIZE];
	int fd, err;

	snprintf(hidden, sizeof hidden, ".%s.part", name);
	fd = openat(d->fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = write_all(fd, parts, count);
	if (close(fd) < 0 && !err)
		err = -errno;
	if (!err && renameat(d->fd, hidden, d->fd, name) < 0)
		err = -errno;
	if (err)
		unlinkat(d->fd, hidden, 0);
	return err;
}

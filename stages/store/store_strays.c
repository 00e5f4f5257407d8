/* store_strays.c - walks over the directories above the images. Main thread. */
#include "store_strays.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_path.h"

static bool is_directory(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool has_length(const char *name, size_t length)
{
	return strlen(name) == length && strspn(name, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == length;
}

/* An entry that has gone since it was listed is an image that was removed. */
static uint64_t stray(int fd, const char *directory, const char *name)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return 0;
	printf("%s%s%s: stray\n", directory, *directory ? "/" : "", name);
	return 1;
}

/* Calls `check` with each entry of the directory, and returns the sum of its results. */
static uint64_t each_entry(int root_fd, const char *directory,
                           uint64_t (*check)(int root_fd, int fd, const char *directory,
                                             const char *name))
{
	int fd = openat(root_fd, *directory ? directory : ".",
	                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t strays = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			strays += check(root_fd, dirfd(dir), directory, entry->d_name);
	if (dir)
		closedir(dir);
	return strays;
}

/* An image must lie where its id says. */
static uint64_t check_shard(int root_fd, int fd, const char *directory, const char *name)
{
	char path[STORE_PATH_MAX];
	enum store_layout layout = strchr(directory, '/') ? STORE_BY_TIME : STORE_BY_TAIL;

	(void)root_fd;
	if (ulid_is_valid(name, strlen(name)) && is_directory(fd, name)) {
		store_shard_path(path, layout, name);
		if (strcmp(path, directory) == 0)
			return 0;
	}
	return stray(fd, directory, name);
}

static uint64_t check_span(int root_fd, int fd, const char *directory, const char *name)
{
	char path[STORE_PATH_MAX];

	if (!has_length(name, STORE_SHARD_LENGTH) || !is_directory(fd, name))
		return stray(fd, directory, name);
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return each_entry(root_fd, path, check_shard);
}

static uint64_t check_root(int root_fd, int fd, const char *directory, const char *name)
{
	struct stat st;

	if (name[0] == '.' || strcmp(name, "lost+found") == 0 ||
	    (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode)))
		return 0;
	if (has_length(name, STORE_SPAN_LENGTH) && is_directory(fd, name))
		return each_entry(root_fd, name, check_span);
	if (has_length(name, STORE_SHARD_LENGTH) && is_directory(fd, name))
		return each_entry(root_fd, name, check_shard);
	return stray(fd, directory, name);
}

uint64_t store_strays(int root_fd)
{
	return each_entry(root_fd, "", check_root);
}

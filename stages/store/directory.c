/* directory.c - opens, clears and removes directories that hold only files. Any thread; calls
 * block. */
#include "directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"

DIR *directory_list(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return dir;
}

int directory_remove(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;

	if (fd < 0)
		return unlinkat(at, name, 0) ? -errno : 0;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	return unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

int directory_clear(int at, unsigned *cleared)
{
	DIR *dir = directory_list(at, ".");
	struct dirent *entry;
	int result = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int err = directory_remove(at, entry->d_name);

		if (err && err != -ENOENT) {
			log_warning("store: cannot remove the leftover %s: %s", entry->d_name,
			            strerror(-err));
			result = -EAGAIN;
		} else {
			(*cleared)++;
		}
	}
	closedir(dir);
	return result;
}

int directory_open(int at, const char *name, mode_t mode)
{
	if (mkdirat(at, name, mode) && errno != EEXIST)
		return -errno;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

const char *directory_advice(int err)
{
	if (err == -EROFS || err == -EACCES)
		return "; under systemd the unit needs ReadWritePaths=, and the daemon's user the "
		       "right to write: MOVING THE STORE in darkroomd(8)";
	return err == -ENOENT ? "; the directory above it must exist" : "";
}

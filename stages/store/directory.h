/*
 * directory.h - files and directories below an open one, as the store uses them.
 *
 * A path has no "..", and none of its parts is a link. So a user who can write into a store cannot
 * lead the daemon out of it, nor a command that root runs. Each part is opened below the one before
 * it with O_NOFOLLOW. openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS does the same in one
 * call, but old kernels and many filters of system calls lack it. A part that is a link is
 * -ENOTDIR. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_DIRECTORY_H
#define DARKROOM_STORE_DIRECTORY_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens the directory at that path below `at`, and creates it with the mode, less the umask, if it
 * is missing; mode 0: does not create it. Returns a descriptor or -errno. */
int directory_open(int at, const char *path, mode_t mode);

/* Opens the regular file at that path below `at`; flags as for open(2). Never waits for a FIFO.
 * Returns a descriptor or -errno; -EINVAL: it is something else, such as a link. */
int directory_open_file(int at, const char *path, int flags);

/* Opens the directory at that path below `at` to read its entries. Returns NULL with errno set. */
DIR *directory_list(int at, const char *path);

/* Returns the name of the next entry but "." and "..", or NULL at the end. */
const char *directory_next(DIR *dir);

/* Returns the name of the next entry that is the id of an image, or NULL at the end. */
const char *directory_next_id(DIR *dir);

#define DIRECTORY_NAMES_MAX 4096

struct directory_names {
	char name[DIRECTORY_NAMES_MAX][8];
	unsigned count;
};

/* Lists the entries with names of `length` < 8 characters, up to the name `last`, sorted; NULL:
 * all. Those that begin with a dot are left out. A directory that is missing is empty. Returns 0 or
 * -errno. */
int directory_list_names(int at, const char *name, size_t length, const char *last,
                         struct directory_names *names);

/* Makes all directories of the path that are missing. Returns 0 or -errno. */
int directory_make_all(int at, const char *path, mode_t mode);

/* As fstatat(2), of a link itself. Returns 0 or -errno. */
int directory_stat(int at, const char *path, struct stat *st);

/* Returns 0 if the path names what fd has open, -ESTALE if it names something else, or -errno. The
 * number of an inode is not used again while it is open. */
int directory_check_same(int at, const char *path, int fd);

/* As unlinkat(2). Returns 0 or -errno. */
int directory_unlink(int at, const char *path, int flags);

/* As renameat2(2). Returns 0 or -errno. */
int directory_rename(int from_at, const char *from, int to_at, const char *to, unsigned flags);

/* Removes the directory or file `name` below `at`, with the files in it. Returns 0 or -errno. */
int directory_remove(int at, const char *name);

/* Returns whether it is the name of an image's entry in .incoming or .trash, or in a queue: its id,
 * or that with "." and more. */
bool directory_has_id(const char *name);

/* Removes the entries of the directory `at` that are of images, and adds their number to *cleared.
 * Others stay. Another thread may remove entries at the same time. Returns 0, -errno, or -EAGAIN if
 * an entry is left, which is logged. */
int directory_clear(int at, unsigned *cleared);

/* Writes all of the data. Returns 0 or -errno. */
int directory_write_all(int fd, const void *data, size_t size);

/* Reads up to size bytes at that place of the file. Returns their number, which is less at its end,
 * or -errno. */
ssize_t directory_read_at(int fd, void *data, size_t size, uint64_t at);

/* Writes or replaces the file at that path below `at` by one rename, with the mode 0600.
 * is_flushed: its content is on the disk before. Returns 0, or -errno and the former file stays. A
 * crash may leave the file `path`.new. */
int directory_write_file(int at, const char *path, const void *data, size_t size, bool is_flushed);

/* Reads the file at that path below `at`, and appends a zero: at most size - 1 bytes. Returns their
 * number or -errno. */
int directory_read_file(int at, const char *path, char *data, size_t size);

#endif

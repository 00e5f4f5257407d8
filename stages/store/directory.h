/*
 * directory.h - directories below an open one, as the store uses them. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_DIRECTORY_H
#define DARKROOM_STORE_DIRECTORY_H

#include <dirent.h>
#include <sys/types.h>

/* Opens the directory `name` below `at`, and creates it with the mode, less the umask, if it is
 * missing. Returns a descriptor or -errno. */
int directory_open(int at, const char *name, mode_t mode);

/* Opens the directory `name` below `at`, which is not a link, to read its entries. Returns NULL
 * with errno set. */
DIR *directory_list(int at, const char *name);

/* Removes the directory or file `name` below `at`, with the files in it. Returns 0 or -errno. */
int directory_remove(int at, const char *name);

/* Removes every entry of the directory `at`, and adds their number to *cleared. Another thread may
 * remove entries at the same time. Returns 0, -errno, or -EAGAIN if an entry is left, which is
 * logged. */
int directory_clear(int at, unsigned *cleared);

/* Returns what an operator may do about the store's directory that cannot be opened, as the end of
 * a message, or "". Any thread. */
const char *directory_advice(int err);

#endif

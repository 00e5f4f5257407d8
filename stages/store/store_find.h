/*
 * store_find.h - opens files of finished images for reading. Any thread.
 */
#ifndef DARKROOM_STORE_STORE_FIND_H
#define DARKROOM_STORE_STORE_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* A file that was looked for. */
struct store_found {
	int fd; /* an open descriptor, or -errno (-ENOENT) */
	uint64_t size;
	bool is_spooled; /* if there is no such file: as store_is_spooled() */
};

/* Opens a file of a finished image for reading; name as in store_file. If there is none, looks into
 * the spool, then once more for the file, which may have been stored meanwhile. */
void store_find(struct store *s, const char *id, const char *name, struct store_found *found);

/* As store_find(), for threads that must not wait. Returns false if the disk would have to be read.
 */
bool store_find_cached(struct store *s, const char *id, const char *name,
                       struct store_found *found);

/* Opens a file of a finished image for reading; name as in store_file. Returns a descriptor and
 * sets *size, or returns -errno (-ENOENT). */
int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size);

/* Returns whether the image's original is spooled; also true if the system cannot tell. The image
 * is then stored by now, or will be. */
bool store_is_spooled(struct store *s, const char *id);

#endif

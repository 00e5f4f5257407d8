/*
 * stray.h - entries of a store's directories that are not of the store. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_STRAY_H
#define DARKROOM_STORE_STRAY_H

#include "store_path.h"

#define STRAY_PATH_MAX (STORE_PATH_MAX + 256) /* bytes, with the zero */

enum stray_where {
	STRAY_AMONG_IMAGES, /* down to the directories of images; not behind a dot in the root */
	STRAY_AT_START      /* in the root, and by their names in its spans and behind a dot */
};

/* Calls `each` with the path of each stray entry in the directory, and in those below it.
 * directory: "", the root. */
void stray_find(int root_fd, const char *directory, enum stray_where where,
                void (*each)(const char *path, void *arg), void *arg);

#endif

/*
 * import_map.h - which file of a directory became which image: lines
 * {"path":"a/b.jpg","id":"01..."} in a file of the operator's.
 *
 * A line is added when the image is stored. Before that, path and id stand in a second file of the
 * same form, the name of the first with ".begun". So an import that is killed continues with the
 * same ids, and no file becomes two images. Main thread.
 */
#ifndef DARKROOM_STORE_IMPORT_MAP_H
#define DARKROOM_STORE_IMPORT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "checksum.h"
#include "ulid.h"

#define IMPORT_PATH_MAX 4096                  /* bytes of a path */
#define IMPORT_LINE_MAX (8 * IMPORT_PATH_MAX) /* with escapes of 6 bytes */

struct import_known {
	char sum[CHECKSUM_LENGTH + 1]; /* of the path as it stands in the line */
	char id[ULID_LENGTH + 1];
	bool is_stored; /* in the map; otherwise it has begun */
};

struct import_map {
	const char *path; /* borrowed */
	char *begun_path;
	int fd, begun_fd;
	struct import_known *known; /* sorted by sum; of each, those in the map first */
	size_t count, room;
};

/* Opens or makes both files and reads them, 61 bytes of memory for each line. Returns 0, or the
 * exit status with the problem reported. */
int import_map_open(struct import_map *m, const char *path);

/* Closes the files. The second one is removed if the import is over. Returns 0 or -errno. */
int import_map_close(struct import_map *m, bool is_over);

/* Returns what the files say about the path, or NULL. Lines that were added do not count. */
const struct import_known *import_map_find(const struct import_map *m, const char *path);

/* Adds a line to the second file, or to the map. Returns 0 or -errno. */
int import_map_begin(struct import_map *m, const char *path, const char *id);
int import_map_stored(struct import_map *m, const char *path, const char *id);

/* Flushes the second file. Returns 0 or -errno. */
int import_map_flush(struct import_map *m);

#endif

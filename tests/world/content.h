/* content.h - what images are made of: two files of random bytes, and an image.json. */
#ifndef DARKROOM_TESTS_WORLD_CONTENT_H
#define DARKROOM_TESTS_WORLD_CONTENT_H

#include <stddef.h>

#include "store/checksum.h"

#define CONTENT_FILES 3
#define CONTENT_BYTES(max) (2 * (max) + 768) /* of all files */

extern const char *const content_names[CONTENT_FILES];

struct content {
	char *data[CONTENT_FILES]; /* in memory of the caller */
	size_t size[CONTENT_FILES];
	char sum[CONTENT_FILES][CHECKSUM_LENGTH + 1];
};

/* Writes image.json of the other two files to data[2]: CONTENT_BYTES(0) of memory. */
void content_write_json(struct content *c, const char *id, const char *token);

/* Makes the files of a version of an image, in CONTENT_BYTES(max) of memory. The first file is that
 * of the version `first`. max: bytes of a file, at least 8. */
void content_make(struct content *c, char *memory, const char *id, unsigned first, unsigned version,
                  size_t max);

#endif

/*
 * export_image.h - one image as members of a tar archive. Main thread.
 */
#ifndef DARKROOM_STORE_EXPORT_IMAGE_H
#define DARKROOM_STORE_EXPORT_IMAGE_H

#include <stdio.h>

#include "stored_image.h"
#include "stored_info.h"

struct store;

#define EXPORT_FILES_MAX (CONF_VARIANT_MAX + 2) /* with the original and image.json */

struct export_image {
	char id[ULID_LENGTH + 1];
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	struct {
		char name[CONF_NAME_MAX + 8];
		char sum[CHECKSUM_LENGTH + 1];
		uint64_t size;
		int fd;
	} file[EXPORT_FILES_MAX];
	unsigned file_count;
	char why[CONF_NAME_MAX + 32]; /* of -EBADMSG: "thumb.jpg: rotten" */
};

/* Opens all files of the image and compares them with their checksums. They stay as they are,
 * whatever a daemon does meanwhile. Returns 0, with export_image_close() to follow, or -errno:
 *   -ENOENT    there is no such image
 *   -EBADMSG   a file is missing or damaged, and e->why says which */
int export_image_open(struct export_image *e, struct store *s, const char *id);

/* Writes the files. Returns 0 or -errno. */
int export_image_write(const struct export_image *e, FILE *to);

void export_image_close(struct export_image *e);

#endif

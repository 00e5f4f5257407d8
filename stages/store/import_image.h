/*
 * import_image.h - the files of one image of an archive, in memory until they are verified. Main
 * thread.
 */
#ifndef DARKROOM_STORE_IMPORT_IMAGE_H
#define DARKROOM_STORE_IMPORT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export_image.h"
#include "store.h"
#include "tar_reader.h"

struct import_file {
	char name[CONF_NAME_MAX + 8];
	char sum[CHECKSUM_LENGTH + 1]; /* of data */
	char tag[STORE_TAG_MAX];       /* that the archive gives; "": none */
	char *data;
	size_t size;
};

struct import_image {
	char id[ULID_LENGTH + 1]; /* "": there is none */
	struct import_file file[EXPORT_FILES_MAX];
	unsigned file_count;
	uint64_t bytes, expires;
	char why[128]; /* it cannot be stored; "": nothing is wrong so far */
};

/* Splits the path of a member. Returns false unless it is exactly that of a file in a store:
 * <4 characters>/<2>/<id>/<name>, also behind "./". */
bool import_path_split(const char *path, char id[ULID_LENGTH + 1], char name[CONF_NAME_MAX + 8]);

/* Reads the present member, a file of this name, to the end of its data. An image of more than
 * bytes_max becomes wrong, and its data is left unread. Returns 0, or -errno of the archive. */
int import_image_add(struct import_image *image, const char *name, struct tar_reader *r,
                     uint64_t bytes_max);

/* Checks that the files are those that image.json names, with their checksums. Sets image->why if
 * not, and image->expires. info and data are for its use. */
void import_image_verify(struct import_image *image, struct stored_info *info);

enum import_state {
	IMPORT_ABSENT = 1, /* the store does not have the image */
	IMPORT_SAME,       /* it has the same files */
	IMPORT_DIFFERS     /* it has other files, or an upload with this id */
};

/* Compares the image with that of the store. */
enum import_state import_image_compare(const struct import_image *image, struct store *s);

/* Releases the files, and leaves no image. */
void import_image_clear(struct import_image *image);

#endif

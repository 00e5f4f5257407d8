/*
 * metadata.h - EXIF orientation and ICC profile of a file.
 *
 * Reads the untrusted bytes of the file. Malformed metadata counts as absent. Pure functions. Any
 * thread.
 */
#ifndef DARKROOM_PIXEL_METADATA_H
#define DARKROOM_PIXEL_METADATA_H

#include <stddef.h>
#include <stdint.h>

/* Larger profiles are dropped. Profiles of real photographs have 500 bytes to 1 MB. */
#define ICC_BYTES_MAX (4U << 20)
#define ICC_CHUNK_MAX 255 /* chunk numbers have 8 bits (ICC.1:2010, annex B.4) */

struct metadata {
	unsigned orientation; /* 1..8 */
	size_t icc_bytes;     /* of the ICC profile; 0: no profile, or a malformed one */
	unsigned icc_chunk_count;
	struct { /* in order, slices of the file */
		const uint8_t *data;
		size_t size;
	} icc_chunk[ICC_CHUNK_MAX];
};

/* Fills *m from the markers before the first scan of a JPEG, or from the header of
 * another file.
 * The slices are valid as long as file[size]. The profile of a PNG is compressed and not read. */
void metadata_read(struct metadata *m, const uint8_t *file, size_t size);

/* Sets a profile that is known to be whole. Ignores one that is too small or too large. */
void metadata_set_icc(struct metadata *m, const uint8_t *icc, size_t size);

/* Returns the orientation in an APP1 payload ("Exif", two zero bytes, TIFF), or 0. */
unsigned exif_orientation(const uint8_t *app1, size_t size);

enum icc_space { ICC_RGB = 1, ICC_GRAY };

/*
 * Copies the profile to pool memory if its header names this colour space. Returns 0 and sets *icc
 * and *size (NULL and 0 without a matching profile), or returns -ENOMEM. The caller owns *icc.
 */
int metadata_copy_icc(const struct metadata *m, enum icc_space space, uint8_t **icc, size_t *size);

#endif

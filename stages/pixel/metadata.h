/*
 * metadata.h - what a JPEG's markers before the picture say about showing it: EXIF orientation and
 * ICC profile.
 *
 * Reads the file's bytes as they came from outside; whatever is malformed counts as absent. Pure
 * functions, any thread.
 */
#ifndef DARKROOM_PIXEL_METADATA_H
#define DARKROOM_PIXEL_METADATA_H

#include <stddef.h>
#include <stdint.h>

#define ICC_BYTES_MAX                                                                            \
	(4U << 20) /* larger profiles are dropped: real ones for photographs have 500 bytes .. 1 \
	              MB */
#define ICC_CHUNK_MAX 255 /* their numbers have 8 bits (ICC.1:2010, annex B.4) */

struct metadata {
	unsigned orientation; /* 1..8 */
	/* The profile's pieces in their order, slices of the file; icc_bytes 0: there is none, or
	 * it is malformed. */
	size_t icc_bytes;
	unsigned icc_chunk_count;
	struct {
		const uint8_t *data;
		size_t size;
	} icc_chunk[ICC_CHUNK_MAX];
};

/* Fills *m from the markers up to the first scan. The slices live as long as jpeg[size]. */
void metadata_read(struct metadata *m, const uint8_t *jpeg, size_t size);

/* The orientation in an APP1 segment's payload ("Exif", two zero bytes, TIFF), 0 if it has none. */
unsigned exif_orientation(const uint8_t *app1, size_t size);

enum icc_space { ICC_RGB = 1, ICC_GRAY };

/*
 * A copy of the whole profile in pool memory, if there is one and its header says that it is for
 * pictures of this colour space. 0 and *icc, *size (NULL, 0 if there is none), or -ENOMEM.
 */
int metadata_copy_icc(const struct metadata *m, enum icc_space space, uint8_t **icc, size_t *size);

#endif

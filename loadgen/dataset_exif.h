/* dataset_exif.h - the EXIF segment of a camera that does not exist. Pure; any thread. */
#ifndef DARKROOM_DATASET_EXIF_H
#define DARKROOM_DATASET_EXIF_H

#include <stddef.h>
#include <stdint.h>

#define EXIF_SEGMENT_MAX 65537 /* marker, length field and 65,533 bytes */
#define EXIF_NOTE_MIN 64       /* bytes of the maker's note */

struct exif {
	uint64_t id;           /* chooses the camera, the date and the exposure */
	unsigned orientation;  /* 1..8 */
	int32_t width, height; /* as stored */
	const uint8_t *thumbnail;
	size_t thumbnail_size; /* 0: none */
	size_t note_size;      /* of the maker's note, >= EXIF_NOTE_MIN */
};

/* Writes the APP1 segment, marker included. Returns its size, or 0 if it would be larger than EXIF_SEGMENT_MAX, the size of out. */
size_t exif_write(const struct exif *x, uint8_t out[EXIF_SEGMENT_MAX]);

#endif

/* exif_writer.h - writes the EXIF segment of an imaginary camera. Pure; any thread. */
#ifndef DARKROOM_LOADGEN_DATASET_EXIF_WRITER_H
#define DARKROOM_LOADGEN_DATASET_EXIF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#define EXIF_THUMBNAIL_MAX 32768
#define EXIF_NOTE_MIN 64 /* bytes of the maker's note */
#define EXIF_NOTE_MAX 16384
#define EXIF_SEGMENT_MAX (EXIF_THUMBNAIL_MAX + EXIF_NOTE_MAX + 1024)

struct exif {
	uint64_t id;           /* chooses the camera, the date and the exposure */
	unsigned orientation;  /* 1..8 */
	int32_t width, height; /* as stored */
	const uint8_t *thumbnail;
	size_t thumbnail_size; /* 0: none */
	size_t note_size;
};

/* Writes the APP1 segment including its marker. Returns its size. */
size_t exif_write(const struct exif *x, uint8_t out[EXIF_SEGMENT_MAX]);

#endif

/*
 * file_mix.h - the specification of each file of the dataset: size, form and name.
 *
 * A pure function of the seed and the file's number, so that any thread can make any file in any
 * order. The sizes follow Gordon 2010, table 4.1. Its KB are 1024 bytes: only then do 4,697 files
 * of 204.4 KB, each rounded up to disk blocks, make its 947 MB.
 */
#ifndef DARKROOM_LOADGEN_DATASET_FILE_MIX_H
#define DARKROOM_LOADGEN_DATASET_FILE_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg_writer.h"

#define FILE_MIX_FULL_COUNT 4697u /* good files of the full set */
/* In a smaller set, one file of the maximum size would weigh too much in the mean. */
#define FILE_MIX_MAXIMUM_FROM 700u
#define FILE_NAME_SIZE 40 /* with the zero byte */

enum file_kind {
	FILE_GOOD = 1,
	FILE_TRUNCATED, /* a JPEG cut off in the middle of its pixels */
	FILE_NOT_JPEG,
	FILE_EMPTY, /* no bytes */
	FILE_KIND_COUNT
};

struct file_mix {
	uint64_t seed;
	uint32_t count[FILE_KIND_COUNT]; /* files of each kind; count[0] is 0 */
};

struct file_spec {
	uint64_t id; /* unique; also the seed of the content */
	enum file_kind kind;
	uint32_t bytes; /* of a truncated file: before it is cut */
	uint32_t cut_bytes;
	struct jpeg_form form; /* width and height are set by file_mix_shape() */
	unsigned orientation;  /* EXIF's, 1..8 */
	bool is_camera;        /* has EXIF */
	bool has_camera_size;  /* a size that cameras make */
	bool has_common_size;  /* a size that sites scale to */
	bool is_portrait;      /* as stored */
	unsigned aspect;       /* index of a table in file_mix.c */
};

uint32_t file_mix_count(const struct file_mix *mix);

/* Returns the size of the file with rank i of `count`. The smallest file has rank 0. */
uint32_t file_mix_bytes(uint32_t i, uint32_t count);

/* Specifies file number index, < file_mix_count(). The good files come first, in order of size. */
void file_mix_spec(const struct file_mix *mix, uint32_t index, struct file_spec *file);

/* Chooses a width and a height with about `pixels` pixels, among those usual for such a picture. */
void file_mix_shape(struct file_spec *file, uint64_t pixels);

/* Writes 16 hexadecimal digits, then .jpg, .truncated.jpg, .notjpeg.jpg or .empty.jpg. */
void file_mix_name(const struct file_spec *file, char name[FILE_NAME_SIZE]);

#endif

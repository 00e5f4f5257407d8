/*
 * file_mix.h - what each file of the dataset is to be: size, form, name.
 *
 * A pure function of the seed and the file's number, so that any thread can make any file, in any
 * order. The sizes follow Gordon 2010, table 4.1, whose KB are 1024 bytes: only then do his 4,697
 * files of 204.4 KB, each rounded up to disk blocks, make his 947 MB.
 */
#ifndef DARKROOM_LOADGEN_DATASET_FILE_MIX_H
#define DARKROOM_LOADGEN_DATASET_FILE_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg_writer.h"

#define FILE_MIX_FULL_COUNT 4697u /* good files of the full set */
#define FILE_MIX_MAXIMUM_FROM \
	700u /* in a smaller set one file of the maximum would weigh too much in the mean */
#define FILE_NAME_SIZE 40 /* of a file's name, with the zero byte */

enum file_kind {
	FILE_GOOD = 1,
	FILE_TRUNCATED, /* a JPEG cut off in the middle of its pixels */
	FILE_NOT_JPEG,  /* something else */
	FILE_EMPTY,     /* no bytes */
	FILE_KIND_COUNT
};

struct file_mix {
	uint64_t seed;
	uint32_t count[FILE_KIND_COUNT]; /* files of each kind; of kind 0 there are none */
};

struct file_spec {
	uint64_t id; /* unlike any other's; also the seed of the content */
	enum file_kind kind;
	uint32_t bytes; /* of a truncated one: before it was cut */
	uint32_t cut_bytes;
	struct jpeg_form form; /* width and height are set by file_mix_shape */
	unsigned orientation;  /* EXIF's, 1..8 */
	bool is_camera;        /* has EXIF */
	bool has_camera_size;  /* one that cameras make */
	bool is_portrait;      /* as stored */
	bool has_common_size;  /* one that sites scale to */
	unsigned aspect;       /* of the table in dataset_plan.c */
};

uint32_t file_mix_count(const struct file_mix *plan);

/* The size of the file of rank i among count, by size. The smallest has rank 0. */
uint32_t file_mix_bytes(uint32_t i, uint32_t count);

/* File number index, < file_mix_count(). The good files come first, in order of size. */
void file_mix_spec(const struct file_mix *plan, uint32_t index, struct file_spec *file);

/* Chooses width and height of about so many pixels, among those that such a picture might have. */
void file_mix_shape(struct file_spec *file, uint64_t pixels);

/* 16 hexadecimal digits, then .jpg, .truncated.jpg, .notjpeg.jpg or .empty.jpg. */
void file_mix_name(const struct file_spec *file, char name[FILE_NAME_SIZE]);

#endif

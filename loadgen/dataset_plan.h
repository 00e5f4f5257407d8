/*
 * dataset_plan.h - what each file of the dataset is to be: size, form, name.
 *
 * A pure function of the seed and the file's number, so that any thread can make any file, in any order.
 * The sizes follow Gordon 2010, table 4.1; his KB are 1024 bytes (dataset_stats.c says why).
 */
#ifndef DARKROOM_DATASET_PLAN_H
#define DARKROOM_DATASET_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "dataset_jpeg.h"

#define PLAN_FULL_COUNT 4697u     /* files of the full set */
#define PLAN_NAME_SIZE 40         /* of a file's name, with the zero byte */
#define PLAN_LONG_SIDE_MAX 6000   /* pixels */

enum plan_kind {
	PLAN_GOOD = 1,
	PLAN_TRUNCATED, /* a JPEG cut off in the middle of its pixels */
	PLAN_NOTJPEG,   /* something else */
	PLAN_EMPTY,     /* no bytes */
	PLAN_KIND_COUNT
};

struct plan {
	uint64_t seed;
	uint32_t good_count;
	uint32_t broken_count; /* besides the good ones; numbers good_count and up */
};

struct plan_file {
	uint64_t id;         /* unlike any other's; also the seed of the content */
	enum plan_kind kind;
	uint32_t bytes;
	uint32_t whole_bytes; /* more than bytes if truncated */
	struct jpeg_form form; /* width and height are set by plan_shape */
	bool is_camera;      /* has EXIF and one of the sizes that cameras make */
	bool is_portrait;
	bool is_common_size; /* a size that sites scale to */
	unsigned aspect;     /* of the table in dataset_plan.c */
};

/* The size of the file of rank i among count, by size. The smallest has rank 0. */
uint32_t plan_bytes(uint32_t i, uint32_t count);

/* File number index, < good_count + broken_count. Good files are in order of size. */
void plan_file(const struct plan *plan, uint32_t index, struct plan_file *file);

/* Chooses width and height of about so many pixels, among those that such a picture might have. */
void plan_shape(struct plan_file *file, uint64_t pixels);

/* 16 hexadecimal digits, then .jpg, .truncated.jpg, .notjpeg.jpg or .empty.jpg. */
void plan_name(const struct plan_file *file, char name[PLAN_NAME_SIZE]);

const char *plan_kind_name(enum plan_kind kind); /* good, truncated, notjpeg, empty */

#endif

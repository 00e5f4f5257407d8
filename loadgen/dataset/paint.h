/* paint.h - paints a scene row by row. Any thread, with a painter of its own. */
#ifndef DARKROOM_LOADGEN_DATASET_PAINT_H
#define DARKROOM_LOADGEN_DATASET_PAINT_H

#include <stdint.h>

#include "scene.h"

/* Rows in progress. */
struct painter {
	int16_t row[2][SCENE_SIDE_MAX], over[2][SCENE_SIDE_MAX];
	int16_t coarse[SCENE_SIDE_MAX], fine[SCENE_SIDE_MAX];
	int16_t alpha[SCENE_SIDE_MAX], shade[SCENE_SIDE_MAX];
};

/* Paints one row of luma. */
void paint_luma(const struct scene *s, struct painter *p, int32_t y, int32_t detail, uint8_t *out);

/* Paints `count` samples of chroma, every stride-th pixel of the row. */
void paint_chroma(const struct scene *s, struct painter *p, int32_t y, int32_t count,
                  int32_t stride, int32_t detail, uint8_t *cb, uint8_t *cr);

#endif

/*
 * plan.h - from the INI's operations to a tree of steps.
 *
 * The root is the decoded source; every step makes a picture (scale, blur) or a file (encode) out
 * of its parent's picture. Variants with the same leading operations share those steps, and a
 * smaller variant is made from a larger one where the chain allows it. A pure function of the
 * configuration: sizes that depend on the image are computed when the step runs (image/geometry.h).
 */
#ifndef DARKROOM_IMAGE_PLAN_H
#define DARKROOM_IMAGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/encoding.h"
#include "pixel/picture.h"

struct conf;

#define PLAN_STEP_MAX 64
#define PLAN_ROOT (-1) /* parent of steps that work on the decoded source */

enum plan_fit {
	PLAN_INSIDE = 1, /* inside the box, in its own proportions */
	PLAN_COVER,      /* all of the box, what does not fit is cut off on both sides */
	PLAN_EXACT       /* the box's width and height, whatever becomes of its proportions */
};

struct plan_step {
	unsigned stage; /* STAGE_SCALE, STAGE_BLUR or STAGE_JPEG_ENCODE */
	int parent;     /* index of an earlier step, or PLAN_ROOT */
	unsigned child_count;
	enum chroma chroma; /* of the result; of a greyscale image it is CHROMA_NONE whatever this
	                       says */
	/* scale: to a box of width x height (of the oriented picture); 0 x 0 keeps the size. The
	 * first step below the root is always a scale: it applies orientation and colour
	 * conversion. */
	enum plan_fit fit;
	bool may_enlarge;
	uint32_t width, height;
	unsigned rotation; /* scale: clockwise, 0, 90, 180 or 270 degrees; only where width and
	                      height are 0 */
	double sigma;      /* blur: of luma, in pixels of the picture it works on */
	double amount; /* blur: 0, or it sharpens: so much of what blurring takes away is added */
	/* encode: index in conf->variant, and how */
	unsigned variant;
	struct encoding encoding;
};

struct plan {
	struct plan_step step[PLAN_STEP_MAX];
	unsigned step_count;
	unsigned root_child_count;
	unsigned variant_count;
};

/* 0, or -EINVAL with what is wrong and what was expected in error, and the index of the variant at
 * fault. */
int plan_build(struct plan *plan, const struct conf *conf, unsigned *variant_at_fault, char *error,
               size_t error_size);

#endif

/*
 * plan.h - from the INI's operations to a tree of steps.
 *
 * The root is the decoded source; every step makes a picture (scale, blur) or a file (encode) out of its
 * parent's picture. Variants with the same leading operations share those steps, and a smaller
 * variant is made from a larger one where the chain allows it. A pure function of the configuration:
 * sizes that depend on the image are computed when the step runs.
 */
#ifndef DARKROOM_PLAN_H
#define DARKROOM_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct conf;

#define PLAN_STEP_MAX 64
#define PLAN_ROOT (-1) /* parent of steps that work on the decoded source */

struct plan_step {
	unsigned stage;  /* STAGE_SCALE, STAGE_BLUR or STAGE_JPEG_ENCODE */
	int parent;      /* index of an earlier step, or PLAN_ROOT */
	unsigned child_count;
	/* scale: fits inside width x height (of the oriented picture), never enlarges; 0 x 0 keeps the size. The
	 * first step below the root is always a scale: it applies orientation and colour conversion. */
	uint32_t width, height;
	double sigma;     /* blur: of luma, in pixels of the picture it works on */
	unsigned variant; /* encode: index in conf->variant */
};

struct plan {
	struct plan_step step[PLAN_STEP_MAX];
	unsigned step_count;
	unsigned root_child_count;
	unsigned variant_count;
};

/* 0, or -EINVAL with what is wrong and what was expected in error, and the index of the variant at fault. */
int plan_build(struct plan *plan, const struct conf *conf, unsigned *variant_at_fault, char *error, size_t error_size);

#endif

/*
 * plan.h - the tree of steps that makes all variants of an image.
 *
 * The root is the decoded source. Every step makes a picture or a file of its parent's picture, by
 * its operation. Variants with the same leading operations share those steps, and a smaller
 * variant is derived from a larger one where the chain allows it. A plan is a pure function of the
 * configuration; geometry.h computes the sizes that depend on the image when the step runs. Each
 * level of overload.degrade has a plan of its own.
 */
#ifndef DARKROOM_PLAN_H
#define DARKROOM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf_files.h"
#include "operation.h"
#include "pixel/picture.h"

struct conf;

#define PLAN_STEP_MAX 64
#define PLAN_ROOT (-1) /* the decoded source, as the parent of a step */

struct plan_step {
	/* The first step below the root is always a scale: it applies orientation and colour
	 * conversion. */
	struct operation op;
	int parent;          /* index of an earlier step, or PLAN_ROOT */
	enum chroma chroma;  /* of the result; a greyscale image always has CHROMA_NONE */
	bool is_for_encoder; /* the result needs no pixels: see encoder_takes_knots() */
	/* encode: index of the file in conf_files_list(), and how */
	unsigned file;
	struct encoding encoding;
};

struct plan {
	struct plan_step step[PLAN_STEP_MAX];
	unsigned step_count;
	struct conf_files files; /* of the configuration */
	uint32_t skipped;        /* bit i: file i is not made */
	uint64_t unneeded;       /* one bit for each step that only files.idle needs */
	/* The step whose picture describes the image: of the smallest variant that shows all of it
	 * upright and in colour, or of the smallest one. PLAN_ROOT: no variant is made. */
	int placeholder;
};

/* Returns whether the file of that index is made. */
static inline bool plan_makes(const struct plan *plan, unsigned file)
{
	return !(plan->skipped >> file & 1);
}

/* Builds the plan of a level of overload.degrade; 0 has all variants. Returns 0, or -EINVAL with
 * what was found and expected in error, and the index of the variant at fault. Main thread. */
int plan_build(struct plan *plan, const struct conf *conf, unsigned level,
               unsigned *variant_at_fault, char *error, size_t error_size);

/* Returns the steps of which no file in `made` needs anything, one bit for each step. made: one bit
 * for each file. Any thread. */
uint64_t plan_unneeded(const struct plan *plan, uint32_t made);

#endif

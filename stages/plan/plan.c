/*
 * plan.c - makes one tree of steps of all variants' chains.
 *
 * Knows nothing of images. Main thread.
 */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "conf/conf.h"
#include "conf/conf_degrade.h"
#include "geometry.h"
#include "pixel/encoder.h"
#include "stage_ids.h"

/* A picture is derived from another variant's if that one is at least this many times larger: then
 * the result looks the same as if scaled once. */
#define DERIVE_FACTOR 2

static uint64_t encode_bytes(const struct operation_input *in)
{
	return encoder_bytes(&in->step->encoding, in->chroma, in->g->width, in->g->height,
	                     in->icc_bytes);
}

/* Makes a variant's file: the last step of each chain. */
const struct operation_class operation_encode = {
	.stage = STAGE_JPEG_ENCODE,
	.bytes = encode_bytes,
};

/* Luma does not depend on chroma, so a step with colours also serves a greyscale variant. */
static bool is_same(const struct plan_step *step, int parent, const struct operation *op,
                    enum chroma chroma)
{
	return step->parent == parent && (step->chroma == chroma || chroma == CHROMA_NONE) &&
	       operation_is_same(&step->op, op);
}

/* Adds a step. Returns its index, or -1 if the plan is full. */
static int plan_add(struct plan *plan, int parent, const struct operation *op, enum chroma chroma)
{
	assert(op->class && op->class->bytes); /* a step without a bound of its memory is a fault */
	if (plan->step_count == PLAN_STEP_MAX)
		return -1;
	plan->step[plan->step_count] = (struct plan_step){
		.op = *op,
		.parent = parent,
		.chroma = chroma,
	};
	return (int)plan->step_count++;
}

/* Returns the index of the step that does the same to the same parent, or of a new one, or -1. Of
 * several, the last has the least chroma and is taken. */
static int plan_find_or_add(struct plan *plan, int parent, const struct operation *op,
                            enum chroma chroma)
{
	for (unsigned i = plan->step_count; i > 0; i--)
		if (is_same(&plan->step[i - 1], parent, op, chroma))
			return (int)i - 1;
	return plan_add(plan, parent, op, chroma);
}

/* A box that keeps the size counts as larger than all others. */
static uint64_t box_side(uint32_t side)
{
	return side ? side : UINT32_MAX;
}

/* Of equal boxes, the one with more chroma counts as larger. */
static bool is_larger(const struct chain *c, const struct chain *d)
{
	const struct operation *a = &c->operation[0], *b = &d->operation[0];

	if (a->width != b->width)
		return box_side(a->width) > box_side(b->width);
	if (a->height != b->height)
		return box_side(a->height) > box_side(b->height);
	return c->chroma > d->chroma;
}

/*
 * Returns whether b can be made from a's picture for images of all proportions. A picture of the
 * whole image at its own size always serves. A smaller one must show as much, and must be larger
 * than b in both directions.
 */
static bool can_derive(const struct plan_step *step, const struct operation *b, enum chroma chroma)
{
	const struct operation *a = &step->op;

	if (step->chroma < chroma || a->may_enlarge)
		return false;
	if (box_side(a->width) < DERIVE_FACTOR * box_side(b->width) ||
	    box_side(a->height) < DERIVE_FACTOR * box_side(b->height))
		return false;
	return !a->width || (a->fit == b->fit &&
	                     (a->fit == PLAN_INSIDE ||
	                      (a->fit == PLAN_COVER &&
	                       (uint64_t)a->width * b->height == (uint64_t)a->height * b->width &&
	                       focus_is_same(&a->gravity, &b->gravity))));
}

/* Returns the step from which to derive a leading scale. The plan so far holds leading scales only,
 * the larger ones first, so the last that serves is the nearest. */
static int leading_parent(const struct plan *plan, const struct operation *op, enum chroma chroma)
{
	int parent = PLAN_ROOT;

	for (unsigned i = 0; i < plan->step_count; i++)
		if (can_derive(&plan->step[i], op, chroma))
			parent = (int)i;
	return parent;
}

/* Adds the leading scales of all chains. leading[i] becomes the step of chain i. */
static void plan_add_leading(struct plan *plan, unsigned variant_count, const struct chain *chain,
                             int *leading)
{
	uint32_t done = plan->skipped; /* the first files are the variants' JPEGs */

	for (;;) {
		const struct chain *largest = NULL;
		const struct operation *op;

		for (unsigned i = 0; i < variant_count; i++)
			if (!(done >> i & 1) && (!largest || is_larger(&chain[i], largest)))
				largest = &chain[i];
		if (!largest)
			return;
		done |= UINT32_C(1) << (largest - chain);
		op = &largest->operation[0];
		leading[largest - chain] = plan_find_or_add(
			plan, leading_parent(plan, op, largest->chroma), op, largest->chroma);
		assert(leading[largest - chain] >= 0);
	}
}

/* Adds a file of the step's picture. Returns 0, or -EINVAL if the plan is full. */
static int plan_add_file(struct plan *plan, int parent, const struct chain *chain, unsigned file,
                         const struct conf_variant *variant)
{
	const struct operation encode = { .class = &operation_encode };
	int step = plan_add(plan, parent, &encode, chain->chroma);

	if (step < 0)
		return -EINVAL;
	plan->step[step].file = file;
	plan->step[step].encoding = (struct encoding){
		.format = plan->files.file[file].format,
		.quality = (unsigned)variant->quality,
		.is_progressive = variant->progressive == CONF_YES,
		.is_optimized = variant->optimize == CONF_YES,
		.is_small = variant->effort == CONF_EFFORT_SMALL,
		.is_grey = chain->chroma == CHROMA_NONE,
	};
	return 0;
}

/* Adds the rest of a chain and its files. Returns 0, or -EINVAL if the plan is full. */
static int plan_add_chain(struct plan *plan, const struct chain *chain, int parent, unsigned index,
                          const struct conf_variant *variant)
{
	int err = 0;

	for (unsigned i = 1; i < chain->count && parent >= 0; i++)
		parent = plan_find_or_add(plan, parent, &chain->operation[i], chain->chroma);
	if (parent < 0)
		return -EINVAL;
	for (unsigned i = 0; i < plan->files.count && !err; i++)
		if (plan->files.file[i].variant == index)
			err = plan_add_file(plan, parent, chain, i, variant);
	return err;
}

static_assert(PLAN_STEP_MAX >= CONF_VARIANT_MAX + CONF_FILE_MAX,
              "a leading scale for each variant, and the files");

/* Adds the chains with more chroma first, so that others can share their steps. */
static int plan_add_chains(struct plan *plan, unsigned variant_count,
                           const struct conf_variant *variant, const struct chain *chain,
                           const int *leading, unsigned *at)
{
	for (int chroma = CHROMA_444; chroma >= CHROMA_NONE; chroma--)
		for (*at = 0; *at < variant_count; ++*at)
			if ((int)chain[*at].chroma == chroma && plan_makes(plan, *at) &&
			    plan_add_chain(plan, &chain[*at], leading[*at], *at, &variant[*at]))
				return -EINVAL;
	return 0;
}

/* Returns whether the chain's picture shows all of the image as it is. */
static bool shows_all(const struct chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++)
		if (chain->operation[i].fit == PLAN_COVER)
			return false;
	return chain->rotation == 0 && chain->chroma != CHROMA_NONE;
}

/* Returns the area of the smallest box of the chain. */
static uint64_t box_area(const struct chain *chain)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < chain->count; i++) {
		const struct operation *op = &chain->operation[i];
		uint64_t area = box_side(op->width) * box_side(op->height);

		if (op->class == &operation_scale && area < least)
			least = area;
	}
	return least;
}

static void choose_placeholder(struct plan *plan, const struct chain *chain)
{
	const struct chain *best = NULL;

	plan->placeholder = PLAN_ROOT;
	for (unsigned i = 0; i < plan->step_count; i++) {
		const struct plan_step *step = &plan->step[i];
		const struct chain *other = &chain[plan->files.file[step->file].variant];

		if (step->op.class != &operation_encode || step->encoding.format != FILE_JPEG)
			continue;
		if (best &&
		    (shows_all(best) != shows_all(other) ? shows_all(best)
		                                         : box_area(best) <= box_area(other)))
			continue;
		best = other;
		plan->placeholder = (int)i;
	}
}

/* A picture needs no pixels if only encoders read it that take knots, and none shows it. */
static void find_pictures_for_encoders(struct plan *plan)
{
	for (unsigned i = 0; i < plan->step_count; i++)
		plan->step[i].is_for_encoder = true;
	for (unsigned i = 0; i < plan->step_count; i++) {
		const struct plan_step *step = &plan->step[i];
		bool takes_knots = step->op.class == &operation_encode &&
		                   encoder_takes_knots(&step->encoding) &&
		                   plan->placeholder != (int)i;

		if (step->parent != PLAN_ROOT && !takes_knots)
			plan->step[step->parent].is_for_encoder = false;
	}
}

static void skip_variant(struct plan *plan, unsigned variant)
{
	for (unsigned i = 0; i < plan->files.count; i++)
		if (plan->files.file[i].variant == variant)
			plan->skipped |= UINT32_C(1) << i;
}

int plan_build(struct plan *plan, const struct conf *conf, unsigned level,
               unsigned *variant_at_fault, char *error, size_t error_size)
{
	struct conf_variant variant[CONF_VARIANT_MAX]; /* as the level makes it */
	struct chain chain[CONF_VARIANT_MAX] = { 0 };
	int leading[CONF_VARIANT_MAX] = { 0 };
	struct conf_degrade degrade;

	conf_degrade_parse(conf->overload.degrade, &degrade);
	*plan = (struct plan){ .step_count = 0 };
	conf_files_list(&plan->files, conf);
	for (unsigned i = 0; i < conf->variant_count; i++) {
		*variant_at_fault = i;
		if (!conf_degrade_variant(&degrade, level, &conf->variant[i], &variant[i]))
			skip_variant(plan, i);
		if (operations_parse(&chain[i], conf, &variant[i], error, error_size))
			return -EINVAL;
	}
	plan_add_leading(plan, conf->variant_count, chain, leading);
	if (plan_add_chains(plan, conf->variant_count, variant, chain, leading, variant_at_fault)) {
		snprintf(error, error_size,
		         "variant.%s: operations: all variants together have more than %d "
		         "different steps",
		         conf->variant[*variant_at_fault].name, PLAN_STEP_MAX);
		return -EINVAL;
	}
	choose_placeholder(plan, chain);
	plan->unneeded = plan_unneeded(plan, ~plan->files.idle);
	if (conf->experiment.pixel_own == CONF_YES)
		find_pictures_for_encoders(plan);
	return 0;
}

static_assert(PLAN_STEP_MAX <= 64, "a bit for each step");

uint64_t plan_unneeded(const struct plan *plan, uint32_t made)
{
	uint64_t needed = 0;

	/* Parents precede their children. */
	for (unsigned i = plan->step_count; i > 0; i--) {
		const struct plan_step *step = &plan->step[i - 1];
		uint64_t bit = UINT64_C(1) << (i - 1);

		if (step->op.class == &operation_encode && made >> step->file & 1)
			needed |= bit;
		if (needed & bit && step->parent >= 0)
			needed |= UINT64_C(1) << step->parent;
	}
	return plan->step_count ? ~needed & (UINT64_MAX >> (64 - plan->step_count)) : 0;
}

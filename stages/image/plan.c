/*
 * plan.c - parses the variants' operations and makes one tree of steps out of all of them.
 *
 * Knows the grammar of operations and nothing of images. Main thread, at start.
 *
 *	operations = [ operation *( "," operation ) ]
 *	operation  = "scale" WIDTH "x" HEIGHT ( "inside" | "cover" | "exact" ) | "blur" SIGMA |
 *	             "sharpen" AMOUNT [ SIGMA ] | "grayscale" | "rotate" ( "90" | "180" | "270" )
 *
 * Two operations may stand anywhere in a chain without changing what comes out: rotations, which
 *are made at its end, where the picture is smallest and what is before can be shared; and
 *grayscale, for luma never depends on chroma.
 */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "conf/conf.h"
#include "pixel/picture_job.h"
#include "stage_ids.h"

#define SIDE_MAX 65500
#define SIGMA_MIN .3
#define SIGMA_MAX 200.
#define SHARPEN_SIGMA 1.
#define SHARPEN_SIGMA_MAX 20.
#define SHARPEN_AMOUNT_MIN .05
#define OPERATION_MAX 32 /* of one variant */
/* A picture is made from another variant's rather than from the source if that one is at least so
 * much larger: then twice scaled cannot be told from once scaled. */
#define DERIVE_FACTOR 2

/* What makes a picture out of another: what of a step does not depend on its place in the tree. */
struct operation {
	unsigned stage;
	enum plan_fit fit;
	bool may_enlarge;
	uint32_t width, height;
	unsigned rotation;
	double sigma, amount;
};

/* Of one variant. The first operation is a scale, only the last one may rotate. */
struct chain {
	struct operation operation[OPERATION_MAX + 2];
	unsigned count;
	unsigned rotation;  /* of all together, in degrees */
	enum chroma chroma; /* of the result */
};

/* What is being parsed, and where its complaint goes. */
struct parser {
	const char *at;
	const struct conf *conf;
	const struct conf_variant *variant;
	char *error;
	size_t error_size;
};

/* ---- parsing ---- */

__attribute__((format(printf, 2, 3))) static int fail(struct parser *p, const char *format, ...)
{
	int n = snprintf(p->error, p->error_size, "variant.%s: operations: ", p->variant->name);
	va_list args;

	if (n > 0 && (size_t)n < p->error_size) {
		va_start(args, format);
		vsnprintf(p->error + n, p->error_size - (size_t)n, format, args);
		va_end(args);
	}
	return -EINVAL;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t");
}

/* The word at the parser's place: up to a blank, a comma or the end. */
static size_t word_length(const struct parser *p)
{
	return strcspn(p->at, " \t,");
}

/* Takes the word if it is the one expected. */
static bool try_word(struct parser *p, const char *word)
{
	size_t n = word_length(p);

	if (n != strlen(word) || memcmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	skip_blanks(p);
	return true;
}

/* Takes digits that make a number of 1..SIDE_MAX. */
static bool try_side(struct parser *p, uint32_t *side)
{
	uint32_t value = 0;
	const char *c;

	for (c = p->at; *c >= '0' && *c <= '9' && value <= SIDE_MAX; c++)
		value = value * 10 + (uint32_t)(*c - '0');
	if (c == p->at || value < 1 || value > SIDE_MAX)
		return false;
	*side = value;
	p->at = c;
	return true;
}

static bool try_fit(struct parser *p, enum plan_fit *fit)
{
	*fit = try_word(p, "inside")  ? PLAN_INSIDE
	       : try_word(p, "cover") ? PLAN_COVER
	       : try_word(p, "exact") ? PLAN_EXACT
	                              : 0;
	return *fit;
}

/* What cannot be uploaded cannot be made either. */
static int check_enlarged(struct parser *p, const struct operation *op)
{
	const struct conf *conf = p->conf;
	uint64_t pixels = (uint64_t)op->width * op->height;

	if (op->width > conf->limits.width)
		return fail(p,
		            "scale %ux%u with enlarge = yes exceeds limits.width = %" PRIu64
		            "; expected no more than that",
		            op->width, op->height, conf->limits.width);
	if (op->height > conf->limits.height)
		return fail(p,
		            "scale %ux%u with enlarge = yes exceeds limits.height = %" PRIu64
		            "; expected no more than that",
		            op->width, op->height, conf->limits.height);
	if (pixels > conf->limits.pixels)
		return fail(p,
		            "scale %ux%u with enlarge = yes exceeds limits.pixels = %" PRIu64
		            "; expected no more than that",
		            op->width, op->height, conf->limits.pixels);
	return 0;
}

static int parse_scale(struct parser *p, struct operation *op)
{
	const char *begin = p->at;
	int shown = (int)word_length(p);

	op->stage = STAGE_SCALE;
	if (!try_side(p, &op->width) || *p->at != 'x' || (p->at++, !try_side(p, &op->height)) ||
	    word_length(p) != 0)
		return fail(p, "'%.*s' is not a size for scale; expected WIDTHxHEIGHT, each 1..%d",
		            shown, begin, SIDE_MAX);
	skip_blanks(p);
	if (!try_fit(p, &op->fit))
		return fail(
			p,
			"scale %.*s is followed by '%.*s'; expected 'inside', 'cover' or 'exact'",
			shown, begin, (int)word_length(p), p->at);
	op->may_enlarge = p->variant->enlarge == CONF_YES;
	return op->may_enlarge ? check_enlarged(p, op) : 0;
}

static bool is_decimal(const char *text, size_t length)
{
	size_t digits = strspn(text, "0123456789"), at = digits;

	if (text[at] == '.') {
		size_t more = strspn(text + at + 1, "0123456789");

		digits += more;
		at += 1 + more;
	}
	return digits > 0 && at == length && length < 32;
}

/* As strtod would in the C locale. */
static double decimal_value(const char *text, size_t length)
{
	double value = 0, unit = 1;
	bool is_fraction = false;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '.') {
			is_fraction = true;
			continue;
		}
		value = value * 10 + (text[i] - '0');
		unit *= is_fraction ? 10 : 1;
	}
	return value / unit;
}

/* Takes a decimal number of min..max. */
static bool try_number(struct parser *p, double min, double max, double *value)
{
	size_t n = word_length(p);

	*value = is_decimal(p->at, n) ? decimal_value(p->at, n) : -1;
	if (!(*value >= min && *value <= max))
		return false;
	p->at += n;
	skip_blanks(p);
	return true;
}

static int parse_blur(struct parser *p, struct operation *op)
{
	op->stage = STAGE_BLUR;
	if (!try_number(p, SIGMA_MIN, SIGMA_MAX, &op->sigma))
		return fail(p,
		            "'%.*s' is not a sigma for blur; expected a number of pixels, %g..%g",
		            (int)word_length(p), p->at, SIGMA_MIN, SIGMA_MAX);
	return 0;
}

static int parse_sharpen(struct parser *p, struct operation *op)
{
	op->stage = STAGE_BLUR;
	op->sigma = SHARPEN_SIGMA;
	if (!try_number(p, SHARPEN_AMOUNT_MIN, SHARPEN_AMOUNT_MAX, &op->amount))
		return fail(p, "'%.*s' is not an amount for sharpen; expected a number, %g..%d",
		            (int)word_length(p), p->at, SHARPEN_AMOUNT_MIN, SHARPEN_AMOUNT_MAX);
	if (word_length(p) > 0 && !try_number(p, SIGMA_MIN, SHARPEN_SIGMA_MAX, &op->sigma))
		return fail(
			p,
			"'%.*s' is not a sigma for sharpen; expected a number of pixels, %g..%g, or none for %g",
			(int)word_length(p), p->at, SIGMA_MIN, SHARPEN_SIGMA_MAX, SHARPEN_SIGMA);
	return 0;
}

static int parse_rotate(struct parser *p, struct chain *chain)
{
	unsigned degrees = try_word(p, "90")    ? 90
	                   : try_word(p, "180") ? 180
	                   : try_word(p, "270") ? 270
	                                        : 0;

	if (!degrees)
		return fail(
			p,
			"'%.*s' is not an angle for rotate; expected 90, 180 or 270, degrees clockwise",
			(int)word_length(p), p->at);
	chain->rotation = (chain->rotation + degrees) % 360;
	return 0;
}

/* As if the rotations so far came after it. */
static int add_scale(struct parser *p, struct chain *chain, struct operation *op)
{
	int err = parse_scale(p, op);

	if (chain->rotation % 180) {
		uint32_t width = op->width;

		op->width = op->height;
		op->height = width;
	}
	chain->count++;
	return err;
}

static int parse_operation(struct parser *p, struct chain *chain)
{
	struct operation *op = &chain->operation[chain->count];

	*op = (struct operation){ 0 };
	if (try_word(p, "scale"))
		return add_scale(p, chain, op);
	if (try_word(p, "rotate"))
		return parse_rotate(p, chain);
	if (try_word(p, "grayscale")) {
		chain->chroma = CHROMA_NONE;
		return 0;
	}
	chain->count++;
	if (try_word(p, "blur"))
		return parse_blur(p, op);
	if (try_word(p, "sharpen"))
		return parse_sharpen(p, op);
	return fail(
		p, "'%.*s' is not an operation; expected scale, blur, sharpen, grayscale or rotate",
		(int)word_length(p), p->at);
}

static int parse_operations(struct parser *p, struct chain *chain)
{
	int err;

	skip_blanks(p);
	while (*p->at) {
		if (chain->count == OPERATION_MAX)
			return fail(p, "more than %d operations", OPERATION_MAX);
		err = parse_operation(p, chain);
		if (err)
			return err;
		if (!*p->at)
			break;
		if (*p->at != ',')
			return fail(p, "'%s' follows an operation; expected a comma", p->at);
		p->at++;
		skip_blanks(p);
		if (!*p->at)
			return fail(p, "an operation is missing after the last comma");
	}
	return 0;
}

/* Every chain begins with a scale, because that is the step that applies orientation and colour
 * conversion. */
static int parse_chain(struct parser *p, struct chain *chain)
{
	const struct operation keep = { .stage = STAGE_SCALE };
	int err;

	*chain = (struct chain){ .chroma = p->variant->chroma == CONF_CHROMA_444 ? CHROMA_444
		                                                                 : CHROMA_420 };
	err = parse_operations(p, chain);
	if (!chain->count || chain->operation[0].stage != STAGE_SCALE) {
		memmove(&chain->operation[1], &chain->operation[0], chain->count * sizeof(keep));
		chain->operation[0] = keep;
		chain->count++;
	}
	if (chain->rotation)
		chain->operation[chain->count++] =
			(struct operation){ .stage = STAGE_SCALE, .rotation = chain->rotation };
	return err;
}

/* ---- the tree ---- */

static bool is_equal(double a, double b)
{
	return !(a < b) && !(a > b);
}

/* Luma does not depend on chroma, so a picture with colours serves where none are wanted. */
static bool is_same(const struct plan_step *step, int parent, const struct operation *op,
                    enum chroma chroma)
{
	return step->parent == parent && step->stage == op->stage &&
	       (step->chroma == chroma || chroma == CHROMA_NONE) && step->fit == op->fit &&
	       step->may_enlarge == op->may_enlarge && step->width == op->width &&
	       step->height == op->height && step->rotation == op->rotation &&
	       is_equal(step->sigma, op->sigma) && is_equal(step->amount, op->amount);
}

/* A step's index, or -1: the plan is full. */
static int plan_add(struct plan *plan, int parent, const struct operation *op, enum chroma chroma)
{
	if (plan->step_count == PLAN_STEP_MAX)
		return -1;
	plan->step[plan->step_count] = (struct plan_step){
		.stage = op->stage,
		.parent = parent,
		.chroma = chroma,
		.fit = op->fit,
		.may_enlarge = op->may_enlarge,
		.width = op->width,
		.height = op->height,
		.rotation = op->rotation,
		.sigma = op->sigma,
		.amount = op->amount,
	};
	if (parent == PLAN_ROOT)
		plan->root_child_count++;
	else
		plan->step[parent].child_count++;
	return (int)plan->step_count++;
}

/* The step that does the same to the same parent, the last and so the one with the least chroma if
 * there are several; or a new one, or -1. */
static int plan_find_or_add(struct plan *plan, int parent, const struct operation *op,
                            enum chroma chroma)
{
	for (unsigned i = plan->step_count; i > 0; i--)
		if (is_same(&plan->step[i - 1], parent, op, chroma))
			return (int)i - 1;
	return plan_add(plan, parent, op, chroma);
}

/* Boxes that keep the size count as larger than all others. */
static uint64_t box_side(uint32_t side)
{
	return side ? side : UINT32_MAX;
}

/* Of equal ones that with more chroma counts as larger. */
static bool is_larger(const struct chain *c, const struct chain *d)
{
	const struct operation *a = &c->operation[0], *b = &d->operation[0];

	if (a->width != b->width)
		return box_side(a->width) > box_side(b->width);
	if (a->height != b->height)
		return box_side(a->height) > box_side(b->height);
	return c->chroma > d->chroma;
}

static bool has_same_proportions(const struct plan_step *a, const struct operation *b)
{
	return (uint64_t)a->width * b->height == (uint64_t)a->height * b->width;
}

/*
 * Can b be made from a's picture, whatever the image's proportions? From one of the whole image at
 * its own size always. From one that is smaller only if it shows as much, and is larger in both
 * directions.
 */
static bool can_derive(const struct plan_step *a, const struct operation *b, enum chroma chroma)
{
	if (a->chroma < chroma || a->may_enlarge)
		return false;
	if (box_side(a->width) < DERIVE_FACTOR * box_side(b->width) ||
	    box_side(a->height) < DERIVE_FACTOR * box_side(b->height))
		return false;
	return !a->width ||
	       (a->fit == b->fit &&
	        (a->fit == PLAN_INSIDE || (a->fit == PLAN_COVER && has_same_proportions(a, b))));
}

/* The steps of the plan so far are all leading scales, the larger ones first: the last that serves
 * is the nearest. */
static int leading_parent(const struct plan *plan, const struct operation *op, enum chroma chroma)
{
	int parent = PLAN_ROOT;

	for (unsigned i = 0; i < plan->step_count; i++)
		if (can_derive(&plan->step[i], op, chroma))
			parent = (int)i;
	return parent;
}

/* Adds the leading scales of all chains. leading[i] is that of chain i. */
static void plan_add_leading(struct plan *plan, const struct chain *chain, unsigned chain_count,
                             int *leading)
{
	bool is_done[CONF_VARIANT_MAX] = { false };

	for (unsigned n = 0; n < chain_count; n++) {
		const struct chain *largest = NULL;
		const struct operation *op;

		for (unsigned i = 0; i < chain_count; i++)
			if (!is_done[i] && (!largest || is_larger(&chain[i], largest)))
				largest = &chain[i];
		assert(largest);
		is_done[largest - chain] = true;
		op = &largest->operation[0];
		leading[largest - chain] = plan_find_or_add(
			plan, leading_parent(plan, op, largest->chroma), op, largest->chroma);
		assert(leading[largest - chain] >= 0);
	}
}

/* The rest of a chain, and its file. */
static int plan_add_chain(struct plan *plan, const struct chain *chain, int parent, unsigned index,
                          const struct conf_variant *variant)
{
	struct operation encode = { .stage = STAGE_JPEG_ENCODE };

	for (unsigned i = 1; i < chain->count && parent >= 0; i++)
		parent = plan_find_or_add(plan, parent, &chain->operation[i], chain->chroma);
	if (parent >= 0)
		parent = plan_add(plan, parent, &encode, chain->chroma);
	if (parent < 0)
		return -EINVAL;
	plan->step[parent].variant = index;
	plan->step[parent].encoding = (struct encoding){
		.quality = (unsigned)variant->quality,
		.is_progressive = variant->progressive == CONF_YES,
		.is_optimized = variant->optimize == CONF_YES,
		.is_grey = chain->chroma == CHROMA_NONE,
	};
	return 0;
}

static_assert(PLAN_STEP_MAX >= 2 * CONF_VARIANT_MAX, "a leading scale and a file for each variant");

/* Those with more chroma first, for others to find their steps. */
static int plan_add_chains(struct plan *plan, const struct conf *conf, const struct chain *chain,
                           const int *leading, unsigned *at)
{
	for (int chroma = CHROMA_444; chroma >= CHROMA_NONE; chroma--)
		for (*at = 0; *at < conf->variant_count; ++*at)
			if ((int)chain[*at].chroma == chroma &&
			    plan_add_chain(plan, &chain[*at], leading[*at], *at,
			                   &conf->variant[*at]))
				return -EINVAL;
	return 0;
}

int plan_build(struct plan *plan, const struct conf *conf, unsigned *variant_at_fault, char *error,
               size_t error_size)
{
	struct chain chain[CONF_VARIANT_MAX];
	int leading[CONF_VARIANT_MAX];
	struct parser p = { .conf = conf, .error = error, .error_size = error_size };

	*plan = (struct plan){ .variant_count = conf->variant_count };
	for (unsigned i = 0; i < conf->variant_count; i++) {
		*variant_at_fault = i;
		p.variant = &conf->variant[i];
		p.at = p.variant->operations;
		if (parse_chain(&p, &chain[i]))
			return -EINVAL;
	}
	plan_add_leading(plan, chain, conf->variant_count, leading);
	if (plan_add_chains(plan, conf, chain, leading, variant_at_fault)) {
		p.variant = &conf->variant[*variant_at_fault];
		return fail(&p, "all variants together have more than %d different steps",
		            PLAN_STEP_MAX);
	}
	return 0;
}

/*
 * plan.c - parses the variants' operations and makes one tree of steps out of all of them.
 *
 * Knows the grammar of operations and nothing of images. Main thread, at start.
 *
 *	operations = [ operation *( "," operation ) ]
 *	operation  = "scale" WIDTH "x" HEIGHT "inside" | "blur" SIGMA
 */
#include "plan.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/check.h"
#include "../src/conf.h"
#include "stages.h"

#define SIDE_MAX 65500
#define SIGMA_MIN .3
#define SIGMA_MAX 200.
#define OPERATION_MAX 32 /* of one variant */
/* A picture is made from another variant's rather than from the source if that one is at least so much larger: then
 * twice scaled cannot be told from once scaled. */
#define DERIVE_FACTOR 2

struct operation {
	unsigned stage;
	uint32_t width, height;
	double sigma;
};

struct chain {
	struct operation operation[OPERATION_MAX];
	unsigned count;
};

/* What is being parsed, and where its complaint goes. */
struct parser {
	const char *at;
	const char *variant;
	char *error;
	size_t error_size;
};

/* ---- parsing -------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int fail(struct parser *p, const char *format, ...)
{
	int n = snprintf(p->error, p->error_size, "variant.%s: operations: ", p->variant);
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

static int parse_scale(struct parser *p, struct operation *op)
{
	const char *begin = p->at;
	int shown = (int)word_length(p);

	op->stage = STAGE_SCALE;
	if (!try_side(p, &op->width) || *p->at != 'x' || (p->at++, !try_side(p, &op->height)) || word_length(p) != 0)
		return fail(p, "'%.*s' is not a size for scale; expected WIDTHxHEIGHT, each 1..%d", shown, begin, SIDE_MAX);
	skip_blanks(p);
	if (!try_word(p, "inside"))
		return fail(p, "scale %.*s is followed by '%.*s'; expected 'inside'", shown, begin, (int)word_length(p), p->at);
	return 0;
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

static int parse_blur(struct parser *p, struct operation *op)
{
	size_t n = word_length(p);

	op->stage = STAGE_BLUR;
	op->sigma = is_decimal(p->at, n) ? decimal_value(p->at, n) : 0;
	if (!(op->sigma >= SIGMA_MIN && op->sigma <= SIGMA_MAX))
		return fail(p, "'%.*s' is not a sigma for blur; expected a number of pixels, %g..%g", (int)n, p->at, SIGMA_MIN,
		            SIGMA_MAX);
	p->at += n;
	skip_blanks(p);
	return 0;
}

static int parse_operation(struct parser *p, struct operation *op)
{
	*op = (struct operation){0};
	if (try_word(p, "scale"))
		return parse_scale(p, op);
	if (try_word(p, "blur"))
		return parse_blur(p, op);
	return fail(p, "'%.*s' is not an operation; expected scale WIDTHxHEIGHT inside or blur SIGMA", (int)word_length(p),
	            p->at);
}

static int parse_operations(struct parser *p, struct chain *chain)
{
	int err;

	skip_blanks(p);
	while (*p->at) {
		if (chain->count == OPERATION_MAX)
			return fail(p, "more than %d operations", OPERATION_MAX);
		err = parse_operation(p, &chain->operation[chain->count]);
		if (err)
			return err;
		chain->count++;
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

/* Every chain begins with a scale, because that is the step that applies orientation and colour conversion. */
static int parse_chain(struct parser *p, struct chain *chain)
{
	int err;

	*chain = (struct chain){0};
	if (p->at[strspn(p->at, " \t")] && p->at[strspn(p->at, " \t")] != ',') {
		struct parser ahead = *p;

		skip_blanks(&ahead);
		if (try_word(&ahead, "blur"))
			chain->operation[chain->count++] = (struct operation){.stage = STAGE_SCALE};
	}
	err = parse_operations(p, chain);
	if (!err && !chain->count)
		chain->operation[chain->count++] = (struct operation){.stage = STAGE_SCALE};
	return err;
}

/* ---- the tree ------------------------------------------------------------------------------------- */

static bool is_same(const struct plan_step *step, int parent, const struct operation *op)
{
	return step->parent == parent && step->stage == op->stage && step->width == op->width &&
	       step->height == op->height && !(step->sigma < op->sigma) && !(step->sigma > op->sigma);
}

/* A step's index, or -1: the plan is full. */
static int plan_add(struct plan *plan, int parent, const struct operation *op)
{
	if (plan->step_count == PLAN_STEP_MAX)
		return -1;
	plan->step[plan->step_count] = (struct plan_step){
		.stage = op->stage, .parent = parent, .width = op->width, .height = op->height, .sigma = op->sigma,
	};
	if (parent == PLAN_ROOT)
		plan->root_child_count++;
	else
		plan->step[parent].child_count++;
	return (int)plan->step_count++;
}

/* The step that does the same to the same parent, or a new one, or -1. */
static int plan_find_or_add(struct plan *plan, int parent, const struct operation *op)
{
	for (unsigned i = 0; i < plan->step_count; i++)
		if (is_same(&plan->step[i], parent, op))
			return (int)i;
	return plan_add(plan, parent, op);
}

/* Boxes that keep the size count as larger than all others. */
static uint64_t box_side(uint32_t side)
{
	return side ? side : UINT32_MAX;
}

static bool is_larger(const struct operation *a, const struct operation *b)
{
	if (a->width != b->width)
		return box_side(a->width) > box_side(b->width);
	return box_side(a->height) > box_side(b->height);
}

/* Can b be made from a's picture? Only if a's box is larger in both directions: then whatever the image's proportions,
 * so is its picture. */
static bool can_derive(const struct plan_step *a, const struct operation *b)
{
	return box_side(a->width) >= DERIVE_FACTOR * box_side(b->width) &&
	       box_side(a->height) >= DERIVE_FACTOR * box_side(b->height);
}

/* The steps of the plan so far are all leading scales, the larger ones first: the last that serves is the nearest. */
static int leading_parent(const struct plan *plan, const struct operation *op)
{
	int parent = PLAN_ROOT;

	for (unsigned i = 0; i < plan->step_count; i++)
		if (can_derive(&plan->step[i], op))
			parent = (int)i;
	return parent;
}

/* Adds the leading scales of all chains. leading[i] is that of chain i. */
static void plan_add_leading(struct plan *plan, const struct chain *chain, unsigned chain_count, int *leading)
{
	bool is_done[CONF_VARIANT_MAX] = {false};

	for (unsigned n = 0; n < chain_count; n++) {
		const struct operation *op = NULL;
		unsigned largest = 0;

		for (unsigned i = 0; i < chain_count; i++)
			if (!is_done[i] && (!op || is_larger(&chain[i].operation[0], op))) {
				op = &chain[i].operation[0];
				largest = i;
			}
		is_done[largest] = true;
		leading[largest] = plan_find_or_add(plan, leading_parent(plan, op), op);
		assert(leading[largest] >= 0);
	}
}

/* The rest of a chain, and its file. */
static int plan_add_chain(struct plan *plan, const struct chain *chain, int parent, unsigned variant)
{
	struct operation encode = {.stage = STAGE_JPEG_ENCODE};

	for (unsigned i = 1; i < chain->count && parent >= 0; i++)
		parent = plan_find_or_add(plan, parent, &chain->operation[i]);
	if (parent >= 0)
		parent = plan_add(plan, parent, &encode);
	if (parent < 0)
		return -EINVAL;
	plan->step[parent].variant = variant;
	return 0;
}

static_assert(PLAN_STEP_MAX >= 2 * CONF_VARIANT_MAX, "a leading scale and a file for each variant");

int plan_build(struct plan *plan, const struct conf *conf, unsigned *variant_at_fault, char *error, size_t error_size)
{
	struct chain chain[CONF_VARIANT_MAX];
	int leading[CONF_VARIANT_MAX];

	*plan = (struct plan){.variant_count = conf->variant_count};
	for (unsigned i = 0; i < conf->variant_count; i++) {
		struct parser p = {conf->variant[i].operations, conf->variant[i].name, error, error_size};

		*variant_at_fault = i;
		if (parse_chain(&p, &chain[i]))
			return -EINVAL;
	}
	plan_add_leading(plan, chain, conf->variant_count, leading);
	for (unsigned i = 0; i < conf->variant_count; i++) {
		struct parser p = {"", conf->variant[i].name, error, error_size};

		*variant_at_fault = i;
		if (plan_add_chain(plan, &chain[i], leading[i], i))
			return fail(&p, "all variants together have more than %d different steps", PLAN_STEP_MAX);
	}
	return 0;
}

/*
 * operation_scale.c - "scale WxH inside|cover|exact" and "rotate DEGREES": pictures of another size
 * or direction.
 *
 * A later box is fitted to the whole image, not to the parent's picture, so a derived variant has
 * the same size as one made directly.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/check.h"
#include "conf/conf.h"
#include "geometry.h"
#include "operation.h"
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "plan.h"
#include "stage_ids.h"

/* ---- parsing ---- */

/* Consumes digits that make a number of 1..PICTURE_SIDE_MAX. */
static bool try_side(struct parser *p, uint32_t *side)
{
	uint32_t value = 0;
	const char *c;

	for (c = p->at; *c >= '0' && *c <= '9' && value <= PICTURE_SIDE_MAX; c++)
		value = value * 10 + (uint32_t)(*c - '0');
	if (c == p->at || value < 1 || value > PICTURE_SIDE_MAX)
		return false;
	*side = value;
	p->at = c;
	return true;
}

static bool try_fit(struct parser *p, enum plan_fit *fit)
{
	*fit = parser_try_word(p, "inside")  ? PLAN_INSIDE
	       : parser_try_word(p, "cover") ? PLAN_COVER
	       : parser_try_word(p, "exact") ? PLAN_EXACT
	                                     : 0;
	return *fit;
}

/* Consumes the point that a cover keeps, if there is one. */
static int parse_gravity(struct parser *p, struct focus *gravity)
{
	const char *begin = p->at;
	size_t n = parser_word_length(p);

	*gravity = parser_try_word(p, "top")      ? (struct focus){ .5, 0 }
	           : parser_try_word(p, "bottom") ? (struct focus){ .5, 1 }
	           : parser_try_word(p, "left")   ? (struct focus){ 0, .5 }
	           : parser_try_word(p, "right")  ? (struct focus){ 1, .5 }
	                                          : FOCUS_MIDDLE;
	if (parser_word_length(p) == 0 || p->at != begin)
		return 0;
	if (!focus_parse(gravity, p->at, n))
		return parser_fail(
			p,
			"'%.*s' is not a gravity for cover; expected top, bottom, left, right "
			"or %s",
			(int)n, p->at, FOCUS_FORM);
	p->at += n;
	parser_skip_blanks(p);
	return 0;
}

/* An enlarged picture must keep the limits of uploads. */
static int check_enlarged(struct parser *p, const struct operation *op)
{
	const struct {
		const char *key;
		uint64_t has, max;
	} limit[] = {
		{ "width", op->width, p->conf->limits.width },
		{ "height", op->height, p->conf->limits.height },
		{ "pixels", (uint64_t)op->width * op->height, p->conf->limits.pixels },
	};

	for (size_t i = 0; i < COUNT_OF(limit); i++)
		if (limit[i].has > limit[i].max)
			return parser_fail(p,
			                   "scale %ux%u with enlarge = yes exceeds limits.%s = "
			                   "%" PRIu64 "; expected no more than that",
			                   op->width, op->height, limit[i].key, limit[i].max);
	return 0;
}

static int parse_box(struct parser *p, struct operation *op)
{
	const char *begin = p->at;
	int shown = (int)parser_word_length(p);

	if (!try_side(p, &op->width) || *p->at != 'x' || (p->at++, !try_side(p, &op->height)) ||
	    parser_word_length(p) != 0)
		return parser_fail(
			p, "'%.*s' is not a size for scale; expected WIDTHxHEIGHT, each 1..%d",
			shown, begin, PICTURE_SIDE_MAX);
	parser_skip_blanks(p);
	if (!try_fit(p, &op->fit))
		return parser_fail(
			p,
			"scale %.*s is followed by '%.*s'; expected 'inside', 'cover' or 'exact'",
			shown, begin, (int)parser_word_length(p), p->at);
	if (op->fit == PLAN_COVER && parse_gravity(p, &op->gravity))
		return -EINVAL;
	op->may_enlarge = p->variant->enlarge == CONF_YES;
	return op->may_enlarge ? check_enlarged(p, op) : 0;
}

/* Parses a scale as if the rotations before it came after it. */
static int parse_scale(struct parser *p, struct chain *chain, struct operation *op)
{
	int err = parse_box(p, op);

	if (chain->rotation % 180) {
		uint32_t width = op->width;

		op->width = op->height;
		op->height = width;
	}
	if (op->fit == PLAN_COVER)
		op->gravity = focus_before_rotation(op->gravity, chain->rotation);
	return err;
}

static int parse_rotate(struct parser *p, struct chain *chain, struct operation *op)
{
	unsigned degrees = parser_try_word(p, "90")    ? 90
	                   : parser_try_word(p, "180") ? 180
	                   : parser_try_word(p, "270") ? 270
	                                               : 0;

	(void)op;
	if (!degrees)
		return parser_fail(
			p,
			"'%.*s' is not an angle for rotate; expected 90, 180 or 270, degrees "
			"clockwise",
			(int)parser_word_length(p), p->at);
	chain->rotation = (chain->rotation + degrees) % 360;
	return 0;
}

/* ---- size ---- */

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static void swap_int(int *a, int *b)
{
	int was = *a;

	*a = *b;
	*b = was;
}

static void fit_inside(struct geometry *g, const struct operation *op,
                       const struct geometry *parent)
{
	int w, h;

	if (op->may_enlarge) {
		size_inside(parent->whole_width, parent->whole_height, op->width, op->height,
		            &g->width, &g->height);
		return;
	}
	/* A box that does not make the parent's picture smaller keeps its size. */
	size_fit(parent->width, parent->height, op->width, op->height, &w, &h);
	if (w == parent->width && h == parent->height)
		return;
	size_fit(parent->whole_width, parent->whole_height, op->width, op->height, &w, &h);
	g->width = min_int(w, parent->width);
	g->height = min_int(h, parent->height);
}

/* Returns whether the parent is a cover of the same proportions. */
static bool is_cut_alike(const struct operation *op, const struct geometry *parent)
{
	return parent->cut_width &&
	       (uint64_t)parent->cut_width * op->height == (uint64_t)parent->cut_height * op->width;
}

/* Places the part that a cover shows. */
static void place(struct geometry *g, const struct operation *op)
{
	if (!g->has_focus)
		g->focus = op->gravity;
	focus_cover(&g->focus.x, g->shown_width, &g->place_x);
	focus_cover(&g->focus.y, g->shown_height, &g->place_y);
}

/* The size is the box, or the largest size of its proportions that the pixels allow. The picture
 * shows the largest part of the whole with these proportions. */
static void cover(struct geometry *g, const struct operation *op, const struct geometry *parent)
{
	bool is_alike = is_cut_alike(op, parent);
	double across, down;

	if (!is_alike) {
		g->uncut_width = parent->width;
		g->uncut_height = parent->height;
	}
	g->cut_width = op->width;
	g->cut_height = op->height;
	if (!op->may_enlarge) {
		size_fit(g->width, g->height, (uint32_t)g->uncut_width, (uint32_t)g->uncut_height,
		         &g->width, &g->height);
		g->width = min_int(g->width, parent->width);
		g->height = min_int(g->height, parent->height);
	}
	across = (double)g->width * parent->whole_height;
	down = (double)g->height * parent->whole_width;
	if (is_alike) /* cutting again would take from the height what rounding took from a thin
	                 picture's width */
		return;
	if (across < down)
		g->shown_width = across / down;
	else
		g->shown_height = down / across;
	place(g, op);
}

static void resize(struct geometry *g, const struct operation *op, const struct geometry *parent)
{
	if (!op->width)
		return;
	g->cut_width = g->cut_height = 0;
	if (op->fit == PLAN_INSIDE) {
		fit_inside(g, op, parent);
		return;
	}
	g->width = (int)op->width;
	g->height = (int)op->height;
	if (op->fit == PLAN_COVER) {
		cover(g, op, parent);
	} else if (!op->may_enlarge) {
		g->width = min_int(g->width, parent->width);
		g->height = min_int(g->height, parent->height);
	}
	g->whole_width = g->width;
	g->whole_height = g->height;
}

static void turn(struct geometry *g, const struct operation *op, const struct geometry *parent)
{
	(void)parent;
	if (op->rotation == 180)
		return;
	swap_int(&g->width, &g->height);
	swap_int(&g->whole_width, &g->whole_height);
	g->cut_width = g->cut_height = 0;
}

/* ---- the step ---- */

static struct scaling scaling_of(const struct plan_step *step, const struct geometry *g,
                                 unsigned orientation)
{
	return (struct scaling){
		.exif = step->parent == PLAN_ROOT ? orientation
		                                  : orient_of_rotation(step->op.rotation),
		.width = g->width,
		.height = g->height,
		.shown_width = g->shown_width,
		.shown_height = g->shown_height,
		.chroma = step->chroma,
		.place_x = g->place_x,
		.place_y = g->place_y,
	};
}

static struct picture_job *begin(struct picture *src, const struct plan_step *step,
                                 const struct geometry *g, unsigned orientation)
{
	const struct scaling to = scaling_of(step, g, orientation);

	return picture_scale_begin(src, &to);
}

static uint64_t bytes(const struct operation_input *in)
{
	const struct scaling to = scaling_of(in->step, in->g, in->orientation);

	return picture_scale_bytes(in->shape, in->plane_count, in->color_space, &to);
}

const struct operation_class operation_scale = {
	.word = "scale",
	.help = "  scale WIDTHxHEIGHT inside  as large as fits inside, proportions kept\n"
		"  scale WIDTHxHEIGHT cover   exactly this size, cropped alike on both sides;\n"
		"                             top, bottom, left, right or X%:Y% behind it\n"
		"                             names the part to keep, as does the field focus\n"
		"                             of an upload, which comes first\n"
		"  scale WIDTHxHEIGHT exact   exactly this size, proportions not kept",
	.parse = parse_scale,
	.stage = STAGE_SCALE,
	.resize = resize,
	.begin = begin,
	.bytes = bytes,
};

/* Rotations are applied at the end of a chain, where the picture is smallest and the steps before
 * can be shared. */
const struct operation_class operation_rotate = {
	.word = "rotate",
	.help = "  rotate 90, 180 or 270      degrees clockwise",
	.parse = parse_rotate,
};

const struct operation_class operation_turn = {
	.stage = STAGE_SCALE,
	.resize = turn,
	.begin = begin,
	.bytes = bytes,
};

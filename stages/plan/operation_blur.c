/*
 * operation_blur.c - "blur SIGMA" and "sharpen AMOUNT [SIGMA]": what a Gaussian takes away, or more
 * of it.
 */
#include "geometry.h"
#include "operation.h"
#include "pixel/picture_job.h"
#include "plan.h"
#include "stage_ids.h"

#define SIGMA_MIN .3
#define SIGMA_MAX 200.
#define SHARPEN_SIGMA 1.
#define SHARPEN_SIGMA_MAX 20.
#define SHARPEN_AMOUNT_MIN .05

static int parse_blur(struct parser *p, struct chain *chain, struct operation *op)
{
	(void)chain;
	if (!parser_try_number(p, SIGMA_MIN, SIGMA_MAX, &op->sigma))
		return parser_fail(
			p, "'%.*s' is not a sigma for blur; expected a number of pixels, %g..%g",
			(int)parser_word_length(p), p->at, SIGMA_MIN, SIGMA_MAX);
	return 0;
}

static int parse_sharpen(struct parser *p, struct chain *chain, struct operation *op)
{
	(void)chain;
	op->sigma = SHARPEN_SIGMA;
	if (!parser_try_number(p, SHARPEN_AMOUNT_MIN, SHARPEN_AMOUNT_MAX, &op->amount))
		return parser_fail(
			p, "'%.*s' is not an amount for sharpen; expected a number, %g..%d",
			(int)parser_word_length(p), p->at, SHARPEN_AMOUNT_MIN, SHARPEN_AMOUNT_MAX);
	if (parser_word_length(p) > 0 &&
	    !parser_try_number(p, SIGMA_MIN, SHARPEN_SIGMA_MAX, &op->sigma))
		return parser_fail(
			p,
			"'%.*s' is not a sigma for sharpen; expected a number of pixels, %g..%g, "
			"or none for %g",
			(int)parser_word_length(p), p->at, SIGMA_MIN, SHARPEN_SIGMA_MAX,
			SHARPEN_SIGMA);
	return 0;
}

static struct picture_job *begin_blur(struct picture *src, const struct plan_step *step,
                                      const struct geometry *g, unsigned orientation)
{
	(void)g;
	(void)orientation;
	return picture_blur_begin(src, step->chroma, step->op.sigma, step->is_for_encoder);
}

static struct picture_job *begin_sharpen(struct picture *src, const struct plan_step *step,
                                         const struct geometry *g, unsigned orientation)
{
	(void)g;
	(void)orientation;
	return picture_sharpen_begin(src, step->chroma, step->op.sigma, step->op.amount);
}

static uint64_t bytes(const struct operation_input *in)
{
	return picture_blur_bytes(in->chroma, in->g->width, in->g->height, in->step->op.sigma);
}

const struct operation_class operation_blur = {
	.word = "blur",
	.help = "  blur SIGMA                 Gaussian, 0.3 to 200 pixels of the scaled picture;\n"
		"                             outside, the pixels of the border go on",
	.parse = parse_blur,
	.stage = STAGE_BLUR,
	.begin = begin_blur,
	.bytes = bytes,
};

const struct operation_class operation_sharpen = {
	.word = "sharpen",
	.help = "  sharpen AMOUNT [SIGMA]     unsharp mask, brightness only: adds 0.05 to 10\n"
		"                             times what a blur by 0.3 to 20 pixels (default\n"
		"                             1) removes",
	.parse = parse_sharpen,
	.stage = STAGE_BLUR,
	.begin = begin_sharpen,
	.bytes = bytes,
};

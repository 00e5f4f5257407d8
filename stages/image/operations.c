/*
 * operations.c - parses a variant's operations.
 *
 * Knows the grammar and nothing of images. Main thread.
 *
 *	operations = [ operation *( "," operation ) ]
 *	operation  = "scale" WIDTH "x" HEIGHT ( "inside" | "cover" [ gravity ] | "exact" ) |
 *	             "blur" SIGMA |
 *	             "sharpen" AMOUNT [ SIGMA ] | "grayscale" | "rotate" ( "90" | "180" | "270" )
 *	gravity    = "top" | "bottom" | "left" | "right" | X "%:" Y "%"
 *
 * Two operations have the same result anywhere in a chain. Rotations are applied at its end, where
 * the picture is smallest and the steps before can be shared. Grayscale applies to the whole chain,
 * because luma never depends on chroma.
 */
#include "operations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "pixel/picture_blur.h"
#include "stage_ids.h"

#define SIDE_MAX 65500
#define SIGMA_MIN .3
#define SIGMA_MAX 200.
#define SHARPEN_SIGMA 1.
#define SHARPEN_SIGMA_MAX 20.
#define SHARPEN_AMOUNT_MIN .05

/* The text that is being parsed, and where its error goes. */
struct parser {
	const char *at;
	const struct conf *conf;
	const struct conf_variant *variant;
	char *error;
	size_t error_size;
};

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

/* Returns the length of the word at the parser's place, which ends at a blank or a comma. */
static size_t word_length(const struct parser *p)
{
	return strcspn(p->at, " \t,");
}

/* Consumes the word if it is the expected one. */
static bool try_word(struct parser *p, const char *word)
{
	size_t n = word_length(p);

	if (n != strlen(word) || memcmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	skip_blanks(p);
	return true;
}

/* Consumes digits that make a number of 1..SIDE_MAX. */
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

/* Consumes the point that a cover keeps, if there is one. */
static int parse_gravity(struct parser *p, struct focus *gravity)
{
	const char *begin = p->at;
	size_t n = word_length(p);

	*gravity = try_word(p, "top")      ? (struct focus){ .5, 0 }
	           : try_word(p, "bottom") ? (struct focus){ .5, 1 }
	           : try_word(p, "left")   ? (struct focus){ 0, .5 }
	           : try_word(p, "right")  ? (struct focus){ 1, .5 }
	                                   : FOCUS_MIDDLE;
	if (word_length(p) == 0 || p->at != begin)
		return 0;
	if (!focus_parse(gravity, p->at, n))
		return fail(p,
		            "'%.*s' is not a gravity for cover; expected top, bottom, left, right "
		            "or %s",
		            (int)n, p->at, FOCUS_FORM);
	p->at += n;
	skip_blanks(p);
	return 0;
}

/* An enlarged picture must keep the limits of uploads. */
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
	if (op->fit == PLAN_COVER && parse_gravity(p, &op->gravity))
		return -EINVAL;
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

/* Returns the value as strtod(3) does in the C locale. */
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

/* Consumes a decimal number of min..max. */
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
			"'%.*s' is not a sigma for sharpen; expected a number of pixels, %g..%g, "
			"or none for %g",
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
		return fail(p,
		            "'%.*s' is not an angle for rotate; expected 90, 180 or 270, degrees "
		            "clockwise",
		            (int)word_length(p), p->at);
	chain->rotation = (chain->rotation + degrees) % 360;
	return 0;
}

/* Adds a scale as if the rotations before it came after it. */
static int add_scale(struct parser *p, struct chain *chain, struct operation *op)
{
	int err = parse_scale(p, op);

	if (chain->rotation % 180) {
		uint32_t width = op->width;

		op->width = op->height;
		op->height = width;
	}
	if (op->fit == PLAN_COVER)
		op->gravity = focus_before_rotation(op->gravity, chain->rotation);
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

int operations_parse(struct chain *chain, const struct conf *conf,
                     const struct conf_variant *variant, char *error, size_t error_size)
{
	const struct operation keep = { .stage = STAGE_SCALE };
	struct parser p = { .at = variant->operations,
		            .conf = conf,
		            .variant = variant,
		            .error = error,
		            .error_size = error_size };

	*chain = (struct chain){ .chroma = variant->chroma == CONF_CHROMA_444 ? CHROMA_444
		                                                              : CHROMA_420 };
	int err = parse_operations(&p, chain);

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

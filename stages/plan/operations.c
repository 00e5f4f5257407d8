/*
 * operations.c - the table of operations, and the grammar of a variant's operations.
 *
 *	operations = [ operation *( "," operation ) ]
 *	operation  = WORD parameters
 *
 * Each class knows its parameters. Two operations have the same result anywhere in a chain: rotate
 * is applied at its end, and grayscale to all of it.
 */
#include "operation.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_number.h"
#include "conf/stage_table.h"
#include "geometry.h"
#include "plan.h"

#define NUMBER_LENGTH_MAX 32

/* The operations, in the order of --keys. */
#define EACH_OPERATION(X) \
	X(scale)          \
	X(blur)           \
	X(sharpen)        \
	X(grayscale)      \
	X(rotate)

#define DECLARE(name) extern const struct operation_class operation_##name;
EACH_OPERATION(DECLARE)

#define ROW(name) &operation_##name,
static const struct operation_class *const table[] = { EACH_OPERATION(ROW) };

const char *operation_table_help(unsigned index)
{
	return index < COUNT_OF(table) ? table[index]->help : NULL;
}

/* ---- words and numbers ---- */

int parser_fail(struct parser *p, const char *format, ...)
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

void parser_skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t");
}

size_t parser_word_length(const struct parser *p)
{
	return strcspn(p->at, " \t,");
}

bool parser_try_word(struct parser *p, const char *word)
{
	size_t n = parser_word_length(p);

	if (n != strlen(word) || memcmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	parser_skip_blanks(p);
	return true;
}

bool parser_try_number(struct parser *p, double min, double max, double *value)
{
	size_t n = parser_word_length(p);
	const char *end = p->at + n;

	if (n >= NUMBER_LENGTH_MAX || decimal_read(p->at, end, value) != end ||
	    !(*value >= min && *value <= max))
		return false;
	p->at = end;
	parser_skip_blanks(p);
	return true;
}

/* ---- the grammar ---- */

static int fail_unknown(struct parser *p)
{
	struct text words = TEXT_LOCAL(256);

	for (size_t i = 0; i < COUNT_OF(table); i++)
		text_printf(&words, "%s%s",
		            i == 0                    ? ""
		            : i + 1 < COUNT_OF(table) ? ", "
		                                      : " or ",
		            table[i]->word);
	return parser_fail(p, "'%.*s' is not an operation; expected %s", (int)parser_word_length(p),
	                   p->at, words.data);
}

static int parse_operation(struct parser *p, struct chain *chain)
{
	for (size_t i = 0; i < COUNT_OF(table); i++) {
		struct operation op = { .class = table[i] };

		if (!parser_try_word(p, op.class->word))
			continue;
		int err = op.class->parse ? op.class->parse(p, chain, &op) : 0;

		if (!err && op.class->begin)
			chain->operation[chain->count++] = op;
		return err;
	}
	return fail_unknown(p);
}

static int parse_operations(struct parser *p, struct chain *chain)
{
	int err;

	parser_skip_blanks(p);
	while (*p->at) {
		if (chain->count == OPERATION_MAX)
			return parser_fail(p, "more than %d operations", OPERATION_MAX);
		err = parse_operation(p, chain);
		if (err)
			return err;
		if (!*p->at)
			break;
		if (*p->at != ',')
			return parser_fail(p, "'%s' follows an operation; expected a comma", p->at);
		p->at++;
		parser_skip_blanks(p);
		if (!*p->at)
			return parser_fail(p, "an operation is missing after the last comma");
	}
	return 0;
}

int operations_parse(struct chain *chain, const struct conf *conf,
                     const struct conf_variant *variant, char *error, size_t error_size)
{
	const struct operation keep = { .class = &operation_scale };
	struct parser p = { .at = variant->operations,
		            .conf = conf,
		            .variant = variant,
		            .error = error,
		            .error_size = error_size };

	*chain = (struct chain){ .chroma = variant->chroma == CONF_CHROMA_444 ? CHROMA_444
		                                                              : CHROMA_420 };
	int err = parse_operations(&p, chain);

	if (!chain->count || chain->operation[0].class != &operation_scale) {
		memmove(&chain->operation[1], &chain->operation[0], chain->count * sizeof(keep));
		chain->operation[0] = keep;
		chain->count++;
	}
	if (chain->rotation)
		chain->operation[chain->count++] =
			(struct operation){ .class = &operation_turn, .rotation = chain->rotation };
	return err;
}

/* ---- steps ---- */

static bool is_equal(double a, double b)
{
	return !(a < b) && !(a > b);
}

bool operation_is_same(const struct operation *a, const struct operation *b)
{
	return a->class == b->class && a->width == b->width && a->height == b->height &&
	       a->fit == b->fit && focus_is_same(&a->gravity, &b->gravity) &&
	       a->may_enlarge == b->may_enlarge && a->rotation == b->rotation &&
	       is_equal(a->sigma, b->sigma) && is_equal(a->amount, b->amount);
}

struct picture_job *operation_begin(const struct plan *plan, unsigned index, struct picture *src,
                                    const struct operation_image *image)
{
	const struct plan_step *step = &plan->step[index];
	struct geometry g[PLAN_STEP_MAX];

	geometry_of_steps(g, plan, image->width, image->height, image->focus);
	/* The job keeps a copy of what it needs of g. */
	/* cppcheck-suppress returnDanglingLifetime */
	return step->op.class->begin(src, step, &g[index], image->orientation);
}

/*
 * operation_grayscale.c - "grayscale": a variant without colours.
 *
 * Applies to the whole chain wherever the word stands, because luma never depends on chroma.
 */
#include "operation.h"

static int parse(struct parser *p, struct chain *chain, struct operation *op)
{
	(void)p;
	(void)op;
	chain->chroma = CHROMA_NONE;
	return 0;
}

const struct operation_class operation_grayscale = {
	.word = "grayscale",
	.help = "  grayscale                  without colours",
	.parse = parse,
};

/*
 * operations.h - a variant's operations as a chain: the parsed form from which plan.c builds the
 * tree.
 */
#ifndef DARKROOM_IMAGE_OPERATIONS_H
#define DARKROOM_IMAGE_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/picture.h"
#include "plan.h"

struct conf;
struct conf_variant;

#define OPERATION_MAX 32 /* of one variant */

/* Makes a picture of another one; independent of its place in the tree. */
struct operation {
	unsigned stage;
	enum plan_fit fit;
	struct focus gravity; /* of a cover */
	bool may_enlarge;
	uint32_t width, height;
	unsigned rotation;
	double sigma, amount;
};

/* The operations of one variant. The first is always a scale, because that step applies orientation
 * and colour conversion; only the last may rotate. */
struct chain {
	struct operation operation[OPERATION_MAX + 2];
	unsigned count;
	unsigned rotation;  /* of all operations together, in degrees */
	enum chroma chroma; /* of the result */
};

/* Parses the variant's operations. Returns 0, or -EINVAL with "variant.NAME: operations: ..." in
 * error. Main thread. */
int operations_parse(struct chain *chain, const struct conf *conf,
                     const struct conf_variant *variant, char *error, size_t error_size);

#endif

/*
 * operation.h - what an operation on pictures is: its word in the configuration, and the step that
 * it adds to a plan.
 *
 * Each operation is a file operation_NAME.c with a struct operation_class, and a row in
 * operations.c. Parsing is for the main thread; the rest is pure, any thread.
 */
#ifndef DARKROOM_PLAN_OPERATION_H
#define DARKROOM_PLAN_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "geometry.h"
#include "pixel/picture.h"

struct conf;
struct conf_variant;
struct operation_class;
struct operation_input;
struct picture_job;
struct plan;
struct plan_step;

#define OPERATION_MAX 32 /* of one variant */

enum plan_fit {
	PLAN_INSIDE = 1, /* inside the box, in the picture's own proportions */
	PLAN_COVER,      /* fills the box; the excess is cut off, around the gravity */
	PLAN_EXACT       /* the box's width and height; proportions may change */
};

/* An operation with its parameters. Steps with equal operations are shared. */
struct operation {
	const struct operation_class *class;
	/* scale: to a box of width x height (of the oriented picture); 0 x 0 keeps the size */
	uint32_t width, height;
	enum plan_fit fit;
	struct focus gravity; /* cover: what it keeps in the middle, if the image has no focus */
	bool may_enlarge;
	unsigned rotation; /* turn: clockwise, 90, 180 or 270 degrees */
	double sigma;      /* blur, sharpen: in pixels of the picture that the step works on */
	double amount;     /* sharpen: how many times what blurring takes away is added; also for
	                      the number of any other operation */
};

/* The operations of one variant. The first is always a scale, because that step applies orientation
 * and colour conversion; only the last may turn. */
struct chain {
	struct operation operation[OPERATION_MAX + 2];
	unsigned count;
	unsigned rotation;  /* of all operations together, in degrees */
	enum chroma chroma; /* of the result */
};

/* The text that is being parsed, and where its error goes. */
struct parser {
	const char *at;
	const struct conf *conf;
	const struct conf_variant *variant;
	char *error;
	size_t error_size;
};

struct operation_class {
	const char *word; /* in the configuration; NULL: no variant names it */
	const char
		*help; /* for --keys: lines of at most 78 bytes, each "  WORD PARAMETERS  text" */

	/* Parses what follows the word into *op. May change the rest of the chain, which does not
	 * have *op yet. Returns 0 or parser_fail(). NULL: nothing follows the word. */
	int (*parse)(struct parser *p, struct chain *chain, struct operation *op);

	/* ---- the step; without begin(), the operation only changes the chain ---- */

	unsigned stage; /* that makes the picture: STAGE_SCALE, or STAGE_BLUR if its size stays */

	/* Sets the members of *g, a copy of the parent's, in which the result differs. NULL: the
	 * result has the parent's size and shows the same. */
	void (*resize)(struct geometry *g, const struct operation *op,
	               const struct geometry *parent);

	/* Returns a job that makes the step's picture from src, which is borrowed until the job is
	 * freed; NULL without memory. g: of the result. */
	struct picture_job *(*begin)(struct picture *src, const struct plan_step *step,
	                             const struct geometry *g, unsigned orientation);

	/* Returns an upper bound of the pool memory of the step, its result included. */
	uint64_t (*bytes)(const struct operation_input *in);
};

/* What the header of an image tells about the input and the result of a step. */
struct operation_input {
	const struct plan_step *step;
	const struct plane_shape *shape; /* of the input, plane_count of them */
	unsigned plane_count;
	int color_space;
	unsigned orientation;     /* EXIF, of the image */
	const struct geometry *g; /* of the result */
	enum chroma chroma;       /* of the result */
	size_t icc_bytes;
};

extern const struct operation_class operation_scale, /* also the first step of every chain */
	operation_turn,                              /* applies all rotations of a chain */
	operation_encode;                            /* makes the file */

/* Parses the variant's operations. Returns 0, or -EINVAL with "variant.NAME: operations: ..." in
 * error. Main thread. */
int operations_parse(struct chain *chain, const struct conf *conf,
                     const struct conf_variant *variant, char *error, size_t error_size);

bool operation_is_same(const struct operation *a, const struct operation *b);

/* An image after orientation, and its own focus; NULL: it has none. */
struct operation_image {
	int width, height;
	unsigned orientation; /* EXIF, 1..8 */
	const struct focus *focus;
};

/* Begins step `index` of the plan, which is not an encode. See begin in struct operation_class. */
struct picture_job *operation_begin(const struct plan *plan, unsigned index, struct picture *src,
                                    const struct operation_image *image);

/* ---- for parse ---- */

/* Writes "variant.NAME: operations: ..." and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int parser_fail(struct parser *p, const char *format, ...);

/* Returns the length of the word at the parser's place, which ends at a blank or a comma. */
size_t parser_word_length(const struct parser *p);

void parser_skip_blanks(struct parser *p);

/* Consume the word if it is the expected one, or a decimal number of min..max. */
bool parser_try_word(struct parser *p, const char *word);
bool parser_try_number(struct parser *p, double min, double max, double *value);

#endif

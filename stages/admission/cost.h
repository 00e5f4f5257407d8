/*
 * cost.h - how much CPU time an image is expected to need, from what its file tells before it is
 * decoded.
 *
 * The time is a sum: a constant, and terms in proportion to the bytes of the file, to its pixels,
 * to its pixels once more if it is progressive, and to the pixels of which its variants are made.
 * The weights are learned from the measured time of each image, by recursive least squares with
 * exponential forgetting (Haykin, Adaptive Filter Theory, 1996, 13.3), of the relative error: so
 * small images count as much as large ones. A prior serves until then, and bounds the answer:
 * crafted files cannot teach absurd weights. The caller locks.
 */
#ifndef DARKROOM_ADMISSION_COST_H
#define DARKROOM_ADMISSION_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_TERMS 5

/* What a file tells. */
struct cost_facts {
	uint64_t bytes;
	unsigned width, height; /* in the file; 0: not known */
	bool is_progressive;
	double pixels; /* of a JPEG that takes as long to decode */
	double made;   /* pixels of the picture from which the variants are made */
};

struct cost {
	double weight[COST_TERMS]; /* ms */
	double spread[COST_TERMS]
		     [COST_TERMS]; /* inverse of the weighted correlation of the terms */
};

void cost_init(struct cost *c);

/* Returns what is typical for a file of which only the length is known. */
struct cost_facts cost_facts_of_length(uint64_t bytes);

/* Reads the header of a file; without a size in it, the facts are those of its length. Only the
 * caller knows `made`. */
struct cost_facts cost_facts_of_file(const uint8_t *data, size_t size);

/* Returns the expected CPU time in ns. */
uint64_t cost_ns(const struct cost *c, const struct cost_facts *f);

/* An image with these facts took that CPU time. */
void cost_learn(struct cost *c, const struct cost_facts *f, uint64_t ns);

#endif

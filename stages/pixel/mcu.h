/*
 * mcu.h - from samples to the symbols of a baseline JPEG: level shift, forward DCT, quantisation,
 * zigzag order and runs of zeros, for a row of MCUs; and the inverse DCT.
 *
 * Coefficients and samples are those of libjpeg's JDCT_ISLOW, bit by bit. A note is one symbol: the
 * lower 10 bits are the symbol and its table, the upper 16 bits are the bits that follow the symbol
 * in the file. All kernels make the same notes. Any thread.
 */
#ifndef DARKROOM_PIXEL_MCU_H
#define DARKROOM_PIXEL_MCU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "huffman_table.h"
#include "picture.h"

#define MCU_COEFFICIENTS 64 /* of a block */
#define MCU_BLOCK 8         /* samples in both directions */
/* Tables of notes: DC and AC of luma, then of chroma. */
#define MCU_TABLES 4
#define MCU_CHROMA (2 * HUFFMAN_SYMBOLS)
#define MCU_NOTES (MCU_TABLES * HUFFMAN_SYMBOLS)
#define MCU_COLUMNS 16   /* that a kernel may transform at once */
#define MCU_NOTE_SLACK 4 /* notes that a kernel may write behind the last one */

/* The natural position of each place in zigzag order. */
extern const uint8_t mcu_zigzag[MCU_COEFFICIENTS];

/* Division by 8 times the elements of a quantisation table, by two multiplications. */
struct mcu_divisors {
	_Alignas(16) uint16_t reciprocal[MCU_COEFFICIENTS];
	_Alignas(16) uint16_t correction[MCU_COEFFICIENTS];
	_Alignas(16) uint16_t scale[MCU_COEFFICIENTS];
};

/* Makes the divisors of quantum[MCU_COEFFICIENTS], in natural order, from 1 to 255. */
void mcu_divisors_make(struct mcu_divisors *d, const uint8_t *quantum);

/* A blurred plane as the knots of a cubic B-spline: one for each `step` samples in both directions.
 * A block is A * knots * transposed A, where A has the DCT of the 8 samples of each knot's curve.
 */
struct mcu_spline {
	int step;      /* 2, 4 or 8 */
	int knots;     /* that 8 samples depend on */
	int per_block; /* from those to the knots of the next 8 samples */
	int high;      /* bound of coefficients beyond the first 4 x 4, with sigma = step */
	/* A in 1/16384: four for each frequency, of the first knots. The others are their mirror
	 * images. A knot in the middle is its own image and has half its weight. */
	int16_t weight[MCU_BLOCK * 4];
};

/* Returns the spline of a step, or NULL with step 0. */
const struct mcu_spline *mcu_spline_of(int step);

/* Returns the knots of a plane in one direction. Knot i is at sample (step - 1) / 2 + (i - 2) *
 * step.
 */
int mcu_knots(const struct mcu_spline *spline, int samples);

/* A row of blocks of a plane. */
struct mcu_blocks {
	const uint8_t *line[MCU_BLOCK]; /* with samples for whole blocks */
	/* Or with a spline, of each column of knots, MCU_BLOCK frequencies. */
	const struct mcu_spline *spline;
	int16_t *columns;
	bool is_low; /* only the first 4 x 4 coefficients are made; the others are 0 */
};

/* A row of MCUs. The planes are only read. */
struct mcu_row {
	enum chroma chroma;
	const struct mcu_divisors *luma_divisors, *chroma_divisors;
	struct mcu_blocks luma[2], cb, cr; /* with 4:2:0 two rows of luma */
	int wide;                          /* blocks of luma beside each other */
	bool is_cut;                       /* 4:2:0: the lower row of blocks is below the picture */
	int last_dc[3]; /* of each component; 0 before the first row. Changed by notes. */
};

struct mcu_kernel {
	const char *name;
	/* Writes the notes of the MCUs from `from` to before `to`, in turn, at most
	 * MCU_COEFFICIENTS for each block, and returns their end. */
	uint32_t *(*note)(struct mcu_row *m, int from, int to, uint32_t *note);
	/* Sets columns[] of to->spline->knots lines of `width` knots. Reads and writes up to a
	 * multiple of MCU_COLUMNS. */
	void (*transform)(const struct mcu_blocks *to, const uint8_t *knots, ptrdiff_t stride,
	                  int width);
	/* Make 1, 2, 4 or 8 lines of samples of the blocks a and b, which become neighbours.
	 * Coefficients and quantum are in natural order. */
	void (*inverse[4])(const int16_t *a, const int16_t *b, const int16_t *quantum, uint8_t *out,
	                   ptrdiff_t stride);
};

/* Returns the kernels that this processor can run, fastest first, plain C last, then NULL. */
const struct mcu_kernel *mcu_kernel_at(unsigned index);

#endif

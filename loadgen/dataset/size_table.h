/* size_table.h - file-size statistics, beside those of Gordon 2010, table 4.1. Pure. */
#ifndef DARKROOM_LOADGEN_DATASET_SIZE_TABLE_H
#define DARKROOM_LOADGEN_DATASET_SIZE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SIZE_TABLE_COUNT_MIN 90 /* files: in a smaller set even the planned sizes are off by 1 % \
	                         */

struct size_table {
	uint32_t count;
	uint64_t total;
	double minimum, median, mean, p90, maximum; /* bytes */
};

/* Sorts the sizes, of which there is at least one. */
struct size_table size_table_make(uint32_t *sizes, uint32_t count);

/* Prints the table. Returns false if one that can be judged in a set so large is off by more than 2
 * %. */
bool size_table_print(const struct size_table *s, FILE *out);

#endif

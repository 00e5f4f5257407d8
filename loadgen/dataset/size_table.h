/* size_table.h - statistics of file sizes next to those of Gordon 2010, table 4.1. Pure. */
#ifndef DARKROOM_LOADGEN_DATASET_SIZE_TABLE_H
#define DARKROOM_LOADGEN_DATASET_SIZE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* In a set of fewer files even the planned sizes are off by 1 %. */
#define SIZE_TABLE_COUNT_MIN 90

struct size_table {
	uint32_t count;
	uint64_t total;
	double minimum, median, mean, p90, maximum; /* bytes */
};

/* Sorts the sizes, of which there is at least one. */
struct size_table size_table_make(uint32_t *sizes, uint32_t count);

/* Prints the table. Returns false if a statistic is off by more than 2 %; some are not judged in a
 * small set. */
bool size_table_print(const struct size_table *s, FILE *out);

#endif

/* generate.h - makes the missing files of a dataset on several threads and judges the whole. */
#ifndef DARKROOM_LOADGEN_DATASET_GENERATE_H
#define DARKROOM_LOADGEN_DATASET_GENERATE_H

#include "file_mix.h"

#define GENERATE_JOBS_MAX 256

struct generate_conf {
	struct file_mix mix; /* at least one good file */
	const char *path;
	unsigned jobs; /* 1..GENERATE_JOBS_MAX */
};

/*
 * Prints the statistics on standard output, and the progress on standard error if that is a
 * terminal. Returns 0 if the dataset is complete and like the paper's, otherwise -1 after reporting
 * what is wrong.
 */
int generate(const struct generate_conf *conf);

/* Stops a run after the files in progress. Any thread, or a signal handler. */
void generate_stop(void);

#endif

/*
 * generate.h - makes what a dataset still lacks, on several threads, and judges the whole.
 */
#ifndef DARKROOM_LOADGEN_DATASET_GENERATE_H
#define DARKROOM_LOADGEN_DATASET_GENERATE_H

#include "file_mix.h"

#define GENERATE_JOBS_MAX 256

struct generate_conf {
	struct file_mix plan; /* at least one good file */
	const char *path;
	unsigned jobs; /* 1..GENERATE_JOBS_MAX */
};

/*
 * Prints the statistics on standard output, progress on standard error if that is a terminal.
 * Returns 0 if the dataset is complete and like the paper's; else -1, after saying what is wrong.
 */
int generate(const struct generate_conf *conf);

/* Lets a run end after the files in the making. Any thread, or a signal handler. */
void generate_stop(void);

#endif

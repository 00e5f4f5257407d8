/*
 * generate.h - makes what a dataset still lacks, on several threads, and judges the whole.
 */
#ifndef DARKROOM_LOADGEN_DATASET_GENERATE_H
#define DARKROOM_LOADGEN_DATASET_GENERATE_H

#include "file_mix.h"

#define RUN_JOBS_MAX 256

struct dataset_run_conf {
	struct plan plan; /* at least one good file */
	const char *path;
	unsigned jobs; /* 1..RUN_JOBS_MAX */
};

/*
 * Prints the statistics on standard output, progress on standard error if that is a terminal.
 * Returns 0 if the dataset is complete and like the paper's; else -1, after saying what is wrong.
 */
int dataset_run(const struct dataset_run_conf *conf);

/* Lets a run end after the files in the making. Any thread, or a signal handler. */
void dataset_run_stop(void);

#endif

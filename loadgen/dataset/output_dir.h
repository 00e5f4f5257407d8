/*
 * output_dir.h - the directory that holds a dataset.
 *
 * Files appear in it whole or not at all; its dataset.txt says which dataset it is. One process at
 * a time; writing and looking on any thread.
 */
#ifndef DARKROOM_LOADGEN_DATASET_OUTPUT_DIR_H
#define DARKROOM_LOADGEN_DATASET_OUTPUT_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct output_dir {
	int fd;
};

/*
 * Opens the directory for the dataset that the line describes, making it if need be. Returns 0, or
 * -1 after saying on standard error why not: something else is in it, or somebody else is at work.
 */
int output_dir_open(struct output_dir *d, const char *path, const char *line);
void output_dir_close(struct output_dir *d);

/* Is the file there? Then *size gets its size. */
bool output_dir_has(const struct output_dir *d, const char *name, uint32_t *size);

/* Returns 0 or -errno. */
int output_dir_write(const struct output_dir *d, const char *name, const struct iovec *parts,
                     int count);

#endif

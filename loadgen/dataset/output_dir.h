/*
 * output_dir.h - the directory that holds a dataset.
 *
 * A file appears in it complete or not at all. Its dataset.txt says which dataset it holds. One
 * process at a time may use it, with any number of threads.
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
 * Opens the directory for the dataset that `line` describes, and makes it if necessary. Returns 0,
 * or -1 after reporting why not: it holds something else, or another process uses it.
 */
int output_dir_open(struct output_dir *d, const char *path, const char *line);
void output_dir_close(struct output_dir *d);

/* Returns true and the size in *size if the file exists. */
bool output_dir_has(const struct output_dir *d, const char *name, uint32_t *size);

/* Writes a file. Returns 0 or -errno. */
int output_dir_write(const struct output_dir *d, const char *name, const struct iovec *parts,
                     int count);

#endif

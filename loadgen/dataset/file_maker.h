/*
 * file_maker.h - one file of the dataset, in memory.
 *
 * One maker per thread. What it makes depends on the plan and the textures alone.
 */
#ifndef DARKROOM_LOADGEN_DATASET_FILE_MAKER_H
#define DARKROOM_LOADGEN_DATASET_FILE_MAKER_H

#include <sys/uio.h>

#include "file_mix.h"
#include "texture.h"

#define FILE_PARTS 3

struct file_maker;

/* NULL for no memory. The textures stay the caller's. */
struct file_maker *file_maker_new(const struct texture_set *textures);
void file_maker_free(struct file_maker *m);

/*
 * Makes the file, whose shape is chosen here; its bytes are the concatenation of the parts, which
 * are the maker's until its next use. A good file's size comes within about 1 % of the planned one.
 * Returns 0, -ENOMEM or -EIO.
 */
int file_maker_make(struct file_maker *m, struct file_spec *file, struct iovec parts[FILE_PARTS]);

#endif

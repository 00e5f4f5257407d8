/*
 * file_maker.h - makes one file of the dataset in memory.
 *
 * Each thread has a maker of its own. The result depends on the specification and the textures
 * alone.
 */
#ifndef DARKROOM_LOADGEN_DATASET_FILE_MAKER_H
#define DARKROOM_LOADGEN_DATASET_FILE_MAKER_H

#include <sys/uio.h>

#include "file_mix.h"
#include "texture.h"

#define FILE_PARTS 3

struct file_maker;

/* Returns NULL if there is no memory. The textures stay the caller's. */
struct file_maker *file_maker_new(const struct texture_set *textures);
void file_maker_free(struct file_maker *m);

/*
 * Chooses the shape of the file and makes it. Its bytes are the concatenation of the parts, which
 * stay the maker's until its next use. The size of a good file is within about 1 % of the specified
 * one. Returns 0, -ENOMEM or -EIO.
 */
int file_maker_make(struct file_maker *m, struct file_spec *file, struct iovec parts[FILE_PARTS]);

#endif

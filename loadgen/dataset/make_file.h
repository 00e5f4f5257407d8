/*
 * make_file.h - one file of the dataset, in memory.
 *
 * One maker per thread. What it makes depends on the plan and the textures alone.
 */
#ifndef DARKROOM_LOADGEN_DATASET_MAKE_FILE_H
#define DARKROOM_LOADGEN_DATASET_MAKE_FILE_H

#include <sys/uio.h>

#include "file_mix.h"
#include "texture.h"

#define MAKER_PARTS 3

struct maker;

/* NULL for no memory. The textures stay the caller's. */
struct maker *maker_new(const struct texture_set *textures);
void maker_free(struct maker *m);

/*
 * Makes the file, whose shape is chosen here; its bytes are the concatenation of the parts, which
 * are the maker's until its next use. A good file's size comes within about 1 % of the planned one.
 * Returns 0, -ENOMEM or -EIO.
 */
int maker_make(struct maker *m, struct plan_file *file, struct iovec parts[MAKER_PARTS]);

#endif

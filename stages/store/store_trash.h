/*
 * store_trash.h - removal in two steps: one rename makes an image invisible, then its files go. For
 * the files of this folder. Any thread; calls may block.
 */
#ifndef DARKROOM_STORE_STORE_TRASH_H
#define DARKROOM_STORE_STORE_TRASH_H

#include "base/clock.h"
#include "store.h"
#include "store_path.h"

#define STORE_TIDY_NS NS_PER_S /* between attempts to clear the trash */

/* Flushes the file system if the store survives a loss of power. Returns 0 or -errno. */
int store_flush(struct store *s);

/* Writes a name for the trash that no other item has. */
void store_trash_name(struct store *s, const char *id, char name[STORE_PATH_MAX]);

/* Makes the image invisible by one rename. Its name in the trash is written to `to`. Returns 0,
 * -ENOENT or -errno. */
int store_move_to_trash(struct store *s, enum store_place place, const char *id,
                        char to[STORE_PATH_MAX]);

/* Removes an item of the trash. If that fails, the next store_tidy() tries again. */
void store_clear_trash(struct store *s, const char *name);

/* Clears the trash when that is due. One thread at a time. */
void store_tidy(struct store *s);

#endif

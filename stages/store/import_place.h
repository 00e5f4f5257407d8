/*
 * import_place.h - <root>/.import, where an import writes images before they become visible. One
 * process at a time uses it. Main thread.
 */
#ifndef DARKROOM_STORE_IMPORT_PLACE_H
#define DARKROOM_STORE_IMPORT_PLACE_H

#include <stdbool.h>

struct store_query;

#define IMPORT_DIRECTORY ".import"

/* Makes and locks the directory, removes what a killed import has left in it, and makes it the
 * place where store_put() writes. A process of root becomes the owner of the root, whom the images
 * must belong to: for ever, or (is_forever false) between import_place_enter() and _leave().
 * Returns 0, or the exit status with the problem reported. */
int import_place_open(struct store_query *q, bool is_forever);

/* Removes the directory. */
void import_place_close(struct store_query *q);

/* Become the owner of the root, and root again. They abort if that fails. */
void import_place_enter(const struct store_query *q);
void import_place_leave(void);

#endif

/*
 * store_replace.h - the exchange of a stored image's directory for another one. For store_put.c.
 *
 * renameat2(2) with RENAME_EXCHANGE gives each directory the other's name in one step, so a name
 * always refers to a whole image. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_STORE_REPLACE_H
#define DARKROOM_STORE_STORE_REPLACE_H

#include "store.h"

/* Links those files of item->old_fd into the directory that are not among the item's. Returns 0,
 * -ESTALE if they are being removed, or -errno. */
int store_link_others(int directory_fd, const struct store_item *item);

/* Exchanges .incoming/ID and the image. Returns 0, -ENOENT if there is no such image, -ESTALE if
 * its directory is not old_fd any more (-1: any), or -errno. */
int store_exchange(struct store *s, const char *id, int old_fd);

/* Exchanges them back, after a flush has failed. The files of both stay until one succeeds. */
void store_withdraw_exchange(struct store *s, const char *id);

#endif

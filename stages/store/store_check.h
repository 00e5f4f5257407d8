/*
 * store_check.h - a store whose directories are deleted while the daemon serves, and made again.
 *
 * The daemon holds its directories open, so it would go on in the deleted ones.
 */
#ifndef DARKROOM_STORE_STORE_CHECK_H
#define DARKROOM_STORE_STORE_CHECK_H

#include <stdbool.h>

#include "store.h"

/* Returns whether the store can be used. If server.root was deleted and exists again, opens it in
 * place: the descriptors of *s keep their numbers, so other threads need not know. The daemon does
 * not make the root itself, which may be a disk that is not mounted. Logs when the store is lost
 * and when it is back. Any thread; some short system calls. */
bool store_check(struct store *s);

/* Returns whether the last store_check() found a new root that the sandbox does not cover: a
 * sandbox can only become narrower. Any thread. */
bool store_must_restart(const struct store *s);

/* Returns why the last store_check() failed, for clients. Static. Any thread. */
const char *store_lost_reason(const struct store *s);

/* The same after a call has failed with ENOENT: returns whether the store was opened again since
 * `openings` was read from *s, so that the call must be repeated. */
bool store_check_missing(struct store *s, unsigned openings);

#endif

/*
 * store_strays.h - what lies beside the images of a store, and does not belong there. Main thread.
 */
#ifndef DARKROOM_STORE_STORE_STRAYS_H
#define DARKROOM_STORE_STORE_STRAYS_H

#include <stdint.h>

/* Prints the path of each entry that is neither an image nor a directory for images. Returns their
 * number. Names that begin with a dot, sockets and lost+found of the root are left out. */
uint64_t store_strays(int root_fd);

#endif

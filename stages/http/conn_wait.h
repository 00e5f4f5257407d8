/*
 * conn_wait.h - ends waits for admission, memory, images and the disk. The I/O thread.
 */
#ifndef DARKROOM_HTTP_CONN_WAIT_H
#define DARKROOM_HTTP_CONN_WAIT_H

#include <stdbool.h>

struct conn;

/* Takes back an event that has waited too long, and sets the problem. Returns false if it has been
 * sent already. */
bool conn_cancel_wait(struct conn *c);

#endif

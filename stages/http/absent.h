/*
 * absent.h - GET of a variant that a stored image lacks: it is made (store.make_missing), or the
 * answer names the variants that the image has. The I/O thread.
 */
#ifndef DARKROOM_HTTP_ABSENT_H
#define DARKROOM_HTTP_ABSENT_H

#include "conn.h"

/* Has disk_write look which variants the image has, if there is one. */
enum conn_step absent_variant(struct visit *v, struct conn *c);

/* It has looked: responds 404, or asks for the variant and waits. */
enum conn_step absent_explained(struct visit *v, struct conn *c);

/* The wait has ended. */
enum conn_step absent_made(struct visit *v, struct conn *c);

/* Ends the wait, and sets the problem. Returns false if it has ended already. */
bool absent_cancel(struct conn *c);

#endif

/*
 * handlers.h - what each resource does, except for uploads (handle_upload.h). Steps of the table in
 * conn.c; the I/O thread.
 */
#ifndef DARKROOM_HTTP_HANDLERS_H
#define DARKROOM_HTTP_HANDLERS_H

#include "conn.h"

/* The request is complete: does what it asks for. */
enum conn_step handle_request(struct visit *v, struct conn *c);

/* The image for which the request waited has ended. */
enum conn_step handle_image_ended(struct visit *v, struct conn *c);

/* DELETE, after its conditions are checked: sends the removal to disk_write; handle_removed()
 * responds. */
enum conn_step handle_remove(struct visit *v, struct conn *c);
enum conn_step handle_removed(struct visit *v, struct conn *c);

#endif

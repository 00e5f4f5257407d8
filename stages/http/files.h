/*
 * files.h - GET of stored images and of their variants: entity tags, ranges, and images that are
 * not stored yet. The I/O thread.
 */
#ifndef DARKROOM_HTTP_FILES_H
#define DARKROOM_HTTP_FILES_H

#include "conn.h"

/* Responds with the image's metadata or the variant's file. A variant of an image in flight is
 * waited for. */
enum conn_step files_get(struct visit *v, struct conn *c);

/* The image for which files_get() waited has ended: responds with its file, or without it. */
enum conn_step files_get_ended(struct conn *c);

/* Waits until the image is stored or has failed, then continues in CONN_IMAGE_ENDED; at once if it
 * is not in flight. */
enum conn_step files_wait(struct visit *v, struct conn *c);

/* Evaluates the conditions of a DELETE (RFC 9110 13). Returns true if the image may be removed, or
 * does not exist; otherwise responds, and *step is the next step. */
bool files_may_remove(struct conn *c, enum conn_step *step);

/* Responds 404. */
enum conn_step files_not_found(struct conn *c);

#endif

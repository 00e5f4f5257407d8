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
enum conn_step files_get_ended(struct visit *v, struct conn *c);

/* The file was looked for. */
enum conn_step files_found(struct visit *v, struct conn *c);

/* Waits until the image is stored or has failed, then continues in CONN_IMAGE_ENDED; at once if it
 * is not in flight. */
enum conn_step files_wait(struct visit *v, struct conn *c);

/* Takes back the connection's job in the line for the disk, and sets the problem. Returns false if
 * the job was sent. */
bool files_cancel(struct conn *c);

/* Evaluates the conditions of a DELETE (RFC 9110 13). Continues in CONN_REMOVE_NOW if the image may
 * be removed, or does not exist; otherwise responds. */
enum conn_step files_check_removal(struct visit *v, struct conn *c);

/* The store cannot tell whether the image exists. Responds 500, or 503. */
enum conn_step files_failed(struct conn *c, int err);

/* Responds 404. */
enum conn_step files_not_found(struct conn *c);

#endif

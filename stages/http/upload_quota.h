/*
 * upload_quota.h - what the token of an upload may still use (store/usage.h). The owner of the
 * connection's event.
 */
#ifndef DARKROOM_HTTP_UPLOAD_QUOTA_H
#define DARKROOM_HTTP_UPLOAD_QUOTA_H

#include <stdbool.h>

struct conn;
struct upload;

/* Returns whether the token has room for one more image, before the body is read. Otherwise sets
 * the problem. */
bool quota_has_room(struct conn *c);

/* Takes what the upload needs until its images end. Otherwise sets the problem. */
bool quota_take(struct conn *c, struct upload *u);

/* Gives all of it back: the upload was not started. */
void quota_drop(struct upload *u);

#endif

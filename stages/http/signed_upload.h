/*
 * signed_upload.h - uploads with a signed permission in the target instead of a token
 * (daemon/permission.h): /images?token=NAME&expires=UNIX&images=N&bytes=N&signature=HEX.
 *
 * Until it ends, a permission may be used again. Its images and bytes bound all requests together,
 * also if the address is stolen. What was used is in memory: a restart forgets it.
 */
#ifndef DARKROOM_HTTP_SIGNED_UPLOAD_H
#define DARKROOM_HTTP_SIGNED_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct tokens;
struct upload;

#define SIGNED_UPLOAD_KEY_SIZE 16
#define SIGNED_UPLOADS_MAX 4096 /* permissions in use at once */

/* The permission of a request. */
struct signed_upload {
	uint64_t images, bytes, expires;     /* images 0: there is none */
	uint64_t images_taken, bytes_taken;  /* by this request */
	uint8_t key[SIGNED_UPLOAD_KEY_SIZE]; /* the beginning of the signature */
};

/* Returns whether the request has a permission, valid or not. */
bool signed_upload_is_given(const struct conn *c);

/* Returns whether the permission is valid. Otherwise sets the problem, 401 or 403. */
bool signed_upload_allows(struct tokens *tokens, struct conn *c);

/* Takes the upload's images and bytes off the permission, if there is one. Otherwise sets the
 * problem. */
bool signed_upload_take(struct conn *c, const struct upload *u);

/* Gives them back: the upload was not started. */
void signed_upload_drop(struct conn *c);

#endif

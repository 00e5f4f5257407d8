/*
 * permission.h - a signed permission to upload: an application that has a token gives it to a page,
 * so that the page needs no token.
 *
 * The signature is HMAC-SHA-256 (RFC 2104; that of nettle) of the lines "POST", "/images", the
 * token's name, expires, images and bytes, each with a line feed. Its key is the token's SHA-256
 * hash, which the daemon knows. So the file of tokens is a secret if a token may sign. Any thread.
 */
#ifndef DARKROOM_DAEMON_PERMISSION_H
#define DARKROOM_DAEMON_PERMISSION_H

#include <stdint.h>

#include "tokens.h"

#define PERMISSION_SIGNATURE_SIZE 32
#define PERMISSION_SECONDS_MAX 86400 /* that it may be valid for */

struct permission {
	char name[TOKEN_NAME_MAX];
	uint64_t expires;       /* seconds since 1970 */
	uint64_t images, bytes; /* of all requests together; bytes of the files */
};

void permission_sign(const struct permission *p, const uint8_t hash[TOKEN_HASH_SIZE],
                     uint8_t signature[PERMISSION_SIGNATURE_SIZE]);

/* darkroomd token sign NAME SECONDS IMAGES BYTES: reads the token from standard input, and prints
 * the path with the permission. Returns the exit status. Main thread. */
int permission_command(char *const *words, size_t count);

#endif

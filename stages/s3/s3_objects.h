/*
 * s3_objects.h - the keys of an image's objects, and lists of them. Private to s3_store.c and
 * s3_objects.c.
 */
#ifndef DARKROOM_S3_OBJECTS_H
#define DARKROOM_S3_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "s3_client.h"
#include "s3_secret.h"
#include "s3_store.h"

#define S3_SECOND_LENGTH 10 /* digits of a time */
#define S3_SECONDS UINT64_C(10000000000)

struct s3_store {
	struct s3_client *client;
	char secret_path[CONF_TEXT_MAX];
	struct s3_secret secret;
	bool has_secret_failed; /* and logged */
};

void s3_image_key(char key[S3_KEY_MAX], const char *id);
void s3_file_key(char key[S3_KEY_MAX], const char *id, const char *name);
void s3_expiry_key(char key[S3_KEY_MAX], const char *id, uint64_t expires);

#endif

/*
 * s3_secret.h - the keys of an account, from a file of the operator's. Any thread.
 *
 * The file has lines NAME = VALUE with the names aws_access_key_id, aws_secret_access_key and
 * perhaps aws_session_token, as that of the AWS command line. Other lines, which begin with [ or #,
 * are left out.
 */
#ifndef DARKROOM_S3_SECRET_H
#define DARKROOM_S3_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define S3_SECRET_FILE_MAX 8192 /* bytes */

struct s3_secret {
	char id[129];
	char secret[129];
	char session[2049]; /* "": none */
};

/* Reads the file's text. Returns 0, or -EINVAL: both keys must be there, once, of printable
 * characters. */
int s3_secret_parse(const char *text, size_t length, struct s3_secret *s);

/* Opens and reads the file, by base/opener.h. Returns 0 or -errno; -EINVAL as above. Main thread.
 */
int s3_secret_read(const char *path, struct s3_secret *s);

#endif

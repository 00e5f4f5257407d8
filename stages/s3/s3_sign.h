/*
 * s3_sign.h - the keys of an account, and Signature Version 4 of requests to an S3 store
 * (docs.aws.amazon.com, "Authenticating Requests (AWS Signature Version 4)"), with nettle.
 *
 * libcurl has a signer of its own, but that of 7.88 signs some paths and queries wrongly, and later
 * versions have other rules. Here one function escapes, and its output is both signed and sent.
 * Any thread.
 */
#ifndef DARKROOM_S3_SIGN_H
#define DARKROOM_S3_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include <sys/uio.h>

#include "base/text.h"

#define S3_DATE_MAX 17                 /* "20130524T000000Z", with its zero */
#define S3_AUTHORIZATION_MAX 512       /* bytes of the header's value, with the zero */
#define S3_UNSIGNED "UNSIGNED-PAYLOAD" /* the body's hash, of a body that is not signed */
#define S3_HASH_MAX 65                 /* bytes of a SHA-256 in hexadecimal, with the zero */

/* The keys of an account. */
struct s3_keys {
	char id[129];
	char secret[129];
	char session[2049]; /* token of temporary keys; "": none */
};

#define S3_KEYS_FILE_MAX 8192 /* bytes */

/* Reads the text of a file of keys, which a zero follows, and changes it. It has lines NAME = VALUE
 * with the names aws_access_key_id, aws_secret_access_key and perhaps aws_session_token, as that of
 * the AWS command line. Other lines begin with [ or #. Returns 0, or -EINVAL: both keys must be
 * there, once, of printable characters. */
int s3_keys_parse(char *text, size_t length, struct s3_keys *keys);

/* Opens and reads the file, by base/opener.h. Returns 0 or -errno; -EINVAL as above. Main thread.
 */
int s3_keys_read(const char *path, struct s3_keys *keys);

/* What is signed. Texts are borrowed. */
struct s3_request {
	const char *region;
	const char *method;  /* "GET" */
	const char *target;  /* escaped: "/PATH?QUERY"; the query's names in order, each with "=" */
	const char *headers; /* lines "name:value\n", sorted by name, host among them */
	const char *body_hash; /* SHA-256 in hexadecimal, or S3_UNSIGNED */
};

#define S3_HEADERS_MAX 4096 /* bytes of all lines */

/* Appends text with all bytes escaped but letters, digits and -._~, and slashes if they stay. */
void s3_escape(struct text *to, const char *text, bool keeps_slashes);

/* Writes the SHA-256 of content in pieces. */
void s3_hash(const struct iovec *piece, unsigned count, char hex[S3_HASH_MAX]);

/* Writes a time as x-amz-date has it. */
void s3_date(time_t when, char date[S3_DATE_MAX]);

/* Writes the value of the header Authorization. date: that of x-amz-date, which must be among the
 * headers. Returns false if it would be too long. */
bool s3_sign(const struct s3_keys *keys, const struct s3_request *r, const char *date,
             char authorization[S3_AUTHORIZATION_MAX]);

#endif

/*
 * s3_sign.h - Signature Version 4 of requests to an S3 store (docs.aws.amazon.com, "Authenticating
 * Requests (AWS Signature Version 4)"), with nettle.
 *
 * libcurl has a signer of its own, but that of 7.88 signs some paths and queries wrongly, and later
 * versions have other rules. Here one function escapes, and its output is both signed and sent.
 * Pure functions: any thread.
 */
#ifndef DARKROOM_S3_SIGN_H
#define DARKROOM_S3_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/text.h"

#define S3_DATE_MAX 17                 /* "20130524T000000Z", with its zero */
#define S3_AUTHORIZATION_MAX 512       /* bytes of the header's value, with the zero */
#define S3_UNSIGNED "UNSIGNED-PAYLOAD" /* the body's hash, of a body that is not signed */
#define S3_PRESIGN_SECONDS_MAX 604800  /* the service accepts no longer time */

/* Texts are borrowed. */
struct s3_keys {
	const char *id, *secret;
	const char *session; /* token of temporary keys; "": none */
	const char *region;
};

struct s3_header {
	const char *name; /* lower case */
	const char *value;
};

/* What is signed. */
struct s3_request {
	const char *method; /* "GET" */
	const char *path;   /* escaped, from its first slash */
	const char *query;  /* escaped, sorted by name, each with "="; "": none */
	const char *host;   /* as the Host field, with a port that is not the scheme's own */
	const struct s3_header *header; /* sorted by name, host among them */
	unsigned header_count;
	const char *body_hash; /* SHA-256 in hexadecimal, or S3_UNSIGNED */
};

/* Appends text with all bytes escaped but letters, digits and -._~, and slashes if they stay. */
void s3_escape(struct text *to, const char *text, bool keeps_slashes);

/* Writes a time as x-amz-date has it. */
void s3_date(time_t when, char date[S3_DATE_MAX]);

/* Writes the value of the header Authorization. date: that of x-amz-date, which must be among the
 * headers. Returns false if it would be too long. */
bool s3_sign(const struct s3_keys *keys, const struct s3_request *r, const char *date,
             char authorization[S3_AUTHORIZATION_MAX]);

/* Appends the query of a URL that anyone can GET for `seconds` after the date. Only method, path
 * and host of the request count. */
void s3_presign(const struct s3_keys *keys, const struct s3_request *r, const char *date,
                unsigned seconds, struct text *query);

#endif

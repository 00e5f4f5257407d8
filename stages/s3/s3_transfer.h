/*
 * s3_transfer.h - one request at a time on one of libcurl's handles. The client's thread.
 */
#ifndef DARKROOM_S3_TRANSFER_H
#define DARKROOM_S3_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf_endpoint.h"
#include "s3_client.h"
#include "s3_curl.h"
#include "s3_sign.h"

#define S3_URL_MAX 1024

/* Where requests go; fixed. */
struct s3_target {
	struct conf_endpoint endpoint;
	char base[CONF_TEXT_MAX + 32]; /* "http://[::1]:9000" */
	char host[CONF_TEXT_MAX + 16]; /* the Host field */
	char bucket[CONF_TEXT_MAX], prefix[CONF_TEXT_MAX], region[CONF_NAME_MAX];
	char ca_file[CONF_TEXT_MAX];
	uint64_t timeout_ms;
	struct curl_slist *resolve; /* the endpoint's addresses */
	int directory_fd;
};

struct s3_transfer {
	CURL *easy;
	const struct s3_target *target;
	struct s3_op *op; /* NULL: free */
	struct curl_slist *headers;
	long status;             /* of the answer whose header is being read */
	char tag[STORE_TAG_MAX]; /* of the answer */
	char etag[S3_ETAG_MAX];
	uint64_t first, last, total; /* of its Content-Range; total 0: it has none that is right */
	struct checksum *sum;        /* of the content up to what has come */
	int err;                     /* of this side: no memory, or no room for the file */
	struct s3_transfer *next;
};

/* Makes a handle. Returns 0 or -ENOMEM. */
int s3_transfer_init(struct s3_transfer *t, const struct s3_target *target);
void s3_transfer_fini(struct s3_transfer *t);

/* Prepares the request of an operation, signed now. Returns 0 or -errno. */
int s3_transfer_begin(struct s3_transfer *t, struct s3_op *op, const struct s3_secret *secret);

enum s3_verdict {
	S3_VERDICT_DONE = 1, /* op->err is 0, the object's state, or of this side */
	S3_VERDICT_RETRY,    /* the store lives, and its answer is not the one that is wanted */
	S3_VERDICT_GONE      /* it does not answer, or says that it cannot */
};

/* Judges the answer, with the operation's results filled in, and counts what was wrong. The handle
 * is free then. */
enum s3_verdict s3_transfer_end(struct s3_transfer *t, CURLcode result,
                                struct s3_counters *counters);

/* Releases what an attempt has received, before another one. */
void s3_op_reset(struct s3_op *op);

/* Returns the method of an operation. */
const char *s3_method(const struct s3_op *op);

/* Writes the escaped path of a key, with its bucket. */
void s3_target_path(const struct s3_target *t, const char *key, struct text *path);

#endif

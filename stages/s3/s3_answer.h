/*
 * s3_answer.h - the answer of the store to the request of a transfer. Private to this folder. The
 * client's thread.
 */
#ifndef DARKROOM_S3_ANSWER_H
#define DARKROOM_S3_ANSWER_H

#include <stddef.h>

#include "s3_client.h"
#include "s3_transfer.h"

#define S3_TAG_HEADER "x-amz-meta-darkroom-tag"
#define S3_ERROR_BODY_MAX 4096

/* For CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION; arg: the transfer. */
size_t s3_answer_on_header(char *line, size_t one, size_t size, void *arg);
size_t s3_answer_on_body(char *data, size_t one, size_t size, void *arg);

/* Judges an answer without an error of the connection: sets op->err and the results. */
enum s3_verdict s3_answer_judge(struct s3_transfer *t, struct s3_counters *counters);

/* Logs that an attempt has failed. detail: "" without one. */
void s3_answer_log(const struct s3_op *op, const char *what, const char *detail);

#endif

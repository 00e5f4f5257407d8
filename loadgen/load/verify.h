/*
 * verify.h - checks after an upload that the announced variants exist, decode and have their size.
 *
 * Says which request comes next and judges its answer; the caller sends. Belongs to one thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_VERIFY_H
#define DARKROOM_LOADGEN_LOAD_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "response_reader.h"
#include "url.h"

#define VERIFY_VARIANTS_MAX 64

struct verify_variant {
	char path[URL_SIZE];
	uint64_t width, height; /* pixels */
	uint64_t bytes;         /* 0: not announced */
};

enum verify_action {
	VERIFY_FETCH = 1, /* send verify_request() */
	VERIFY_WAIT,      /* wait, then send it */
	VERIFY_END,
};

struct verify {
	const struct url *url;
	struct text body; /* captures the answers */
	char request[URL_SIZE + 512];
	char image_path[URL_SIZE];       /* of an image still being processed; otherwise empty */
	struct verify_variant *variants; /* VERIFY_VARIANTS_MAX */
	unsigned count, at;
	uint64_t right, wrong; /* variants of this upload */
	char problem[256];     /* the last one */
};

/* Returns NULL if there is no memory. The URL stays the caller's. */
struct verify *verify_new(const struct url *url);
void verify_free(struct verify *v);

/* Call before the upload. Empties the body, which captures the answer. */
void verify_reset(struct verify *v);

/* The upload was answered with 201 or 202. */
enum verify_action verify_begin(struct verify *v, int status);

/* Returns the next request as a string that lives until the next call. Empties the body. */
const char *verify_request(struct verify *v);

enum verify_action verify_answer(struct verify *v, const struct response_reader *response);

/* The exchange failed or took too long. The remaining variants count as wrong. */
void verify_give_up(struct verify *v, const char *why);

#endif

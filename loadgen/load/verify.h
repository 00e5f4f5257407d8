/*
 * verify.h - after an upload: are the variants that the answer announces there, decodable and of
 * the right size?
 *
 * Says which request comes next and judges its answer; sending is the worker's. Belongs to one
 * thread.
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
	uint64_t width, height;
	uint64_t bytes; /* 0: not announced */
};

enum verify_action {
	VERIFY_FETCH = 1, /* send verify_request() */
	VERIFY_WAIT,      /* the same, after a moment */
	VERIFY_END,
};

struct verify {
	const struct url *url;
	struct text body; /* captures the answers */
	char request[URL_SIZE + 512];
	char image_path[URL_SIZE];       /* of an image in the making; empty: none */
	struct verify_variant *variants; /* VERIFY_VARIANTS_MAX */
	unsigned count, at;
	uint64_t right, wrong; /* variants, of this upload */
	char problem[256];     /* the last one */
};

/* Returns NULL if there is no memory. */
struct verify *verify_new(const struct url *url);
void verify_free(struct verify *v);

/* Before the upload: empties the body that will capture its answer. */
void verify_reset(struct verify *v);

/* The upload has been answered with 201 or 202. */
enum verify_action verify_begin(struct verify *v, int status);

/* The next request, zero-terminated; it lives until the next call. Empties the body for its answer.
 */
const char *verify_request(struct verify *v);

enum verify_action verify_answer(struct verify *v, const struct response_reader *response);

/* The exchange failed, or it took too long: what is left counts as wrong. */
void verify_give_up(struct verify *v, const char *why);

#endif

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

#define LOAD_VARIANTS_MAX 64

struct load_variant {
	char path[LOAD_URL_MAX];
	uint64_t width, height;
	uint64_t bytes; /* 0: not announced */
};

enum load_verify_step {
	LOAD_VERIFY_FETCH = 1, /* send load_verify_request() */
	LOAD_VERIFY_WAIT,      /* the same, after a moment */
	LOAD_VERIFY_END,
};

struct load_verify {
	const struct load_url *url;
	struct text body; /* captures the answers */
	char request[LOAD_URL_MAX + 512];
	char image_path[LOAD_URL_MAX]; /* of an image in the making; empty: none */
	struct load_variant *variants; /* LOAD_VARIANTS_MAX */
	unsigned count, at;
	uint64_t right, wrong; /* variants, of this upload */
	char problem[256];     /* the last one */
};

/* Returns NULL if there is no memory. */
struct load_verify *load_verify_new(const struct load_url *url);
void load_verify_free(struct load_verify *v);

/* Before the upload: empties the body that will capture its answer. */
void load_verify_reset(struct load_verify *v);

/* The upload has been answered with 201 or 202. */
enum load_verify_step load_verify_begin(struct load_verify *v, int status);

/* The next request, zero-terminated; it lives until the next call. Empties the body for its answer.
 */
const char *load_verify_request(struct load_verify *v);

enum load_verify_step load_verify_answer(struct load_verify *v,
                                         const struct load_response *response);

/* The exchange failed, or it took too long: what is left counts as wrong. */
void load_verify_give_up(struct load_verify *v, const char *why);

#endif

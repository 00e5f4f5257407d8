/* s3_stream.c - one operation for each part. */
#include "s3_stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <xxhash.h>

#include "base/check.h"
#include "base/pool.h"
#include "s3_objects.h"
#include "store/checksum.h"

struct s3_stream {
	struct s3_client *client;
	struct s3_op op; /* of the part that was read last */
	uint64_t end;    /* of what is read */
	bool has_large;  /* parts */
	struct store_found *found;
	void (*done)(void *arg);
	void *arg;
};

static atomic_uint large_parts; /* streams that have them */

void s3_stream_free(void *of_stream)
{
	struct s3_stream *stream = of_stream;

	if (!stream)
		return;
	/* Relaxed: it is only a number. */
	if (stream->has_large)
		atomic_fetch_sub_explicit(&large_parts, 1, memory_order_relaxed);
	XXH3_freeState(stream->op.sum);
	pool_put(stream);
}

/* Returns the bytes of the next part. */
static uint64_t part_max(struct s3_stream *stream)
{
	if (!stream->has_large) {
		stream->has_large = atomic_fetch_add_explicit(
					    &large_parts, 1, memory_order_relaxed) < S3_LARGE_PARTS;
		if (!stream->has_large)
			atomic_fetch_sub_explicit(&large_parts, 1, memory_order_relaxed);
	}
	return stream->has_large ? S3_LARGE_PART_MAX : S3_PART_MAX;
}

/* Reads op.part_max bytes from op.at on. */
static void read_part(struct s3_stream *stream, struct store_found *found, void (*done)(void *arg),
                      void *arg)
{
	stream->found = found;
	stream->done = done;
	stream->arg = arg;
	s3_client_submit(stream->client, &stream->op);
}

static void part_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;

	stream->found->fd = op->err ? op->err : op->fd;
	stream->found->held = op->length;
	text_fini(&op->body);
	stream->done(stream->arg);
}

void s3_stream_next(struct store_found *found, void (*done)(void *arg), void *arg)
{
	struct s3_stream *stream = found->stream;
	struct s3_op *op = &stream->op;
	uint64_t max = part_max(stream);

	op->at += op->length;
	assert(op->at < stream->end);
	op->part_max = stream->end - op->at < max ? stream->end - op->at : max;
	op->done = part_done;
	read_part(stream, found, done, arg);
}

void s3_stream_seek(struct s3_stream *stream, uint64_t at, uint64_t end)
{
	XXH3_freeState(stream->op.sum);
	stream->op.sum = NULL;
	stream->op.at = at;
	stream->op.length = 0;
	stream->end = end;
}

/* ---- the first part ---- */

static void find_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;
	struct store_found *found = stream->found;
	void (*done)(void *arg) = stream->done;
	void *arg = stream->arg;

	/* Of an image that waits for the store, the store need not be asked. */
	int err = op->err == S3_AWAY && found->is_spooled ? -ENOENT : op->err;

	*found = (struct store_found){ .fd = err ? err : op->fd,
		                       .size = op->total,
		                       .held = op->length,
		                       .modified = op->modified,
		                       .is_spooled = found->is_spooled };
	text_fini(&op->body);
	if (!op->err) {
		found->expires = store_tag_expires(op->tag);
		memcpy(found->tag, op->tag, CHECKSUM_LENGTH);
	}
	if (!op->err && op->length < op->total) {
		stream->end = op->total;
		found->stream = stream;
	} else {
		s3_stream_free(stream);
	}
	done(arg);
}

void s3_stream_find(struct s3_client *c, const char *id, const char *name,
                    struct store_found *found, void (*done)(void *arg), void *arg)
{
	struct s3_stream *stream = pool_get(sizeof *stream);
	XXH3_state_t *sum = XXH3_createState();

	if (!stream || !sum) {
		XXH3_freeState(sum);
		pool_put(stream);
		found->fd = -ENOMEM;
		done(arg);
		return;
	}
	XXH3_128bits_reset(sum);
	*stream = (struct s3_stream){ .client = c,
		                      .op = { .verb = S3_GET,
		                              .to_file = true,
		                              .part_max = S3_PART_MAX,
		                              .sum = sum,
		                              .done = find_done,
		                              .arg = stream } };
	s3_file_key(stream->op.key, id, name);
	read_part(stream, found, done, arg);
}

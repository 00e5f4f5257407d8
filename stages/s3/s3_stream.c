/* s3_stream.c - one operation for each part. */
#include "s3_stream.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "s3_objects.h"
#include "store/checksum.h"

struct s3_stream {
	struct s3_store *store;
	struct s3_op op; /* of the part that was read last */
	uint64_t end;    /* of what is read */
	bool has_large;  /* parts */
	struct store_found *found;
	void (*done)(void *arg);
	void *arg;
};

void s3_stream_free(struct s3_stream *stream)
{
	if (!stream)
		return;
	/* Relaxed: it is only a number. */
	if (stream->has_large)
		atomic_fetch_sub_explicit(&stream->store->large_parts, 1, memory_order_relaxed);
	checksum_free(stream->op.sum);
	pool_put(stream);
}

/* Returns the bytes of the next part. */
static uint64_t part_max(struct s3_stream *stream)
{
	atomic_uint *count = &stream->store->large_parts;

	if (!stream->has_large) {
		stream->has_large =
			atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < S3_LARGE_PARTS;
		if (!stream->has_large)
			atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
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
	s3_client_submit(stream->store->client, &stream->op);
}

static void part_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;

	stream->found->fd = op->err ? op->err : op->fd;
	stream->found->held = op->length;
	text_fini(&op->body);
	stream->done(stream->arg);
}

void s3_stream_next(struct s3_stream *stream, struct store_found *found, void (*done)(void *arg),
                    void *arg)
{
	struct s3_op *op = &stream->op, next = { .verb = S3_GET, .to_file = true };
	uint64_t at = op->at + op->length, max = part_max(stream);

	assert(at < stream->end);
	next.at = at;
	next.part_max = stream->end - at < max ? stream->end - at : max;
	next.sum = op->sum;
	next.done = part_done;
	next.arg = stream;
	memcpy(next.key, op->key, sizeof next.key);
	memcpy(next.tag, op->tag, sizeof next.tag);
	*op = next;
	read_part(stream, found, done, arg);
}

void s3_stream_seek(struct s3_stream *stream, uint64_t at, uint64_t end)
{
	checksum_free(stream->op.sum);
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

	*found = (struct store_found){ .fd = op->err ? op->err : op->fd,
		                       .size = op->total,
		                       .held = op->length,
		                       .modified = op->modified,
		                       .is_spooled = found->is_spooled };
	text_fini(&op->body);
	if (!op->err) {
		found->expires = s3_tag_expires(op->tag);
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

void s3_stream_find(struct s3_store *s, const char *id, const char *name, struct store_found *found,
                    void (*done)(void *arg), void *arg)
{
	struct s3_stream *stream = pool_get(sizeof *stream);
	struct checksum *sum = checksum_new();

	if (!stream || !sum) {
		checksum_free(sum);
		pool_put(stream);
		found->fd = -ENOMEM;
		done(arg);
		return;
	}
	*stream = (struct s3_stream){ .store = s,
		                      .op = { .verb = S3_GET,
		                              .to_file = true,
		                              .part_max = S3_PART_MAX,
		                              .sum = sum,
		                              .done = find_done,
		                              .arg = stream } };
	s3_file_key(stream->op.key, id, name);
	read_part(stream, found, done, arg);
}

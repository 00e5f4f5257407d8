/* s3_stream.c - one operation for the head of an image, and one for each part of a file. */
#include "s3_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/check.h"
#include "base/pool.h"
#include "s3_objects.h"
#include "store/checksum.h"
#include "store/directory.h"

#define HEADS_MAX 2           /* that are read for one GET, because the object has changed */
#define HAS_CHANGED (-ESTALE) /* the object is not that of the head */

struct known_head {
	char id[ULID_LENGTH + 1];
	char etag[S3_ETAG_MAX]; /* of the object */
	time_t modified;
	struct s3_head head;
};

struct s3_stream {
	struct s3_client *client;
	struct s3_heads *heads;
	struct s3_op op; /* of the part that was read last */
	char name[STORED_NAME_MAX];
	struct known_head known;
	unsigned heads_read;
	const struct s3_section *section; /* of the file, in `known`; NULL: there is none */
	uint64_t at, end;  /* of what is still to be read, from the object's beginning */
	XXH3_state_t *sum; /* of the content up to `at`; NULL: a range is read */
	bool has_large;    /* parts */
	struct store_found *found;
	void (*done)(void *arg);
	void *arg;
};

/* ---- heads that are known ---- */

/* A table with one place for an id. Pages of it are in memory when they are used. */
struct s3_heads {
	pthread_mutex_t lock;
	uint64_t count;
	struct known_head place[];
};

int s3_heads_new(struct s3_heads **out, uint64_t bytes)
{
	uint64_t count = bytes / sizeof(struct known_head) + 1;
	struct s3_heads *heads = calloc(1, sizeof *heads + count * sizeof heads->place[0]);

	*out = heads;
	if (!heads)
		return -ENOMEM;
	pthread_mutex_init(&heads->lock, NULL);
	heads->count = count;
	return 0;
}

/* The end of an id is random. */
static struct known_head *place_of(struct s3_heads *heads, const char *id)
{
	uint64_t bits;

	memcpy(&bits, id + ULID_LENGTH - sizeof bits, sizeof bits);
	return &heads->place[(bits ^ bits >> 29) * UINT64_C(0x9e3779b97f4a7c15) % heads->count];
}

/* Copies the head of known->id. Returns whether it is known. */
static bool find_head(struct s3_heads *heads, struct known_head *known)
{
	pthread_mutex_lock(&heads->lock);
	const struct known_head *own = place_of(heads, known->id);
	bool is_known = strcmp(own->id, known->id) == 0;

	if (is_known)
		*known = *own;
	pthread_mutex_unlock(&heads->lock);
	return is_known;
}

/* ---- parts ---- */

static atomic_uint large_parts; /* streams that have them */

void s3_stream_free(void *of_stream)
{
	struct s3_stream *stream = of_stream;

	if (!stream)
		return;
	/* Relaxed: it is only a number. */
	if (stream->has_large)
		atomic_fetch_sub_explicit(&large_parts, 1, memory_order_relaxed);
	XXH3_freeState(stream->sum);
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

static int judge_part(const struct s3_op *op)
{
	const struct s3_stream *stream = op->arg;
	const struct s3_section *s = stream->section;
	char own[CHECKSUM_LENGTH + 1];

	if (strcmp(op->etag, stream->known.etag) != 0)
		return HAS_CHANGED;
	if (op->body.length != op->part_max)
		return S3_DAMAGED;
	if (!stream->sum || op->at + op->part_max < s->at + s->bytes)
		return 0;
	int err = checksum_of_end(stream->sum, op->body.data, op->body.length, own);

	return err ? err : strcmp(own, s->sum) == 0 ? 0 : S3_DAMAGED;
}

/* Reads the next bytes, to the end of what is wanted or `max` of them. */
static void read_part(struct s3_stream *stream, uint64_t max, void (*done)(struct s3_op *op))
{
	struct s3_op *op = &stream->op;

	op->at = stream->at;
	op->part_max = stream->end - stream->at < max ? stream->end - stream->at : max;
	op->body_max = op->part_max;
	op->judge = judge_part;
	op->done = done;
	s3_client_submit(stream->client, op);
}

/* Makes a file in memory, which a busy disk does not delay. Returns it or -errno. */
static int make_file(const char *data, size_t size)
{
	int fd = memfd_create("s3", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;

	if (!err)
		err = directory_write_all(fd, data, size);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Ends a part. Returns its file, or -errno. */
static int end_part(struct s3_stream *stream)
{
	struct s3_op *op = &stream->op;
	int fd = op->err ? op->err : make_file(op->body.data, op->body.length);

	if (stream->sum)
		XXH3_128bits_update(stream->sum, op->body.data, op->body.length);
	text_fini(&op->body);
	stream->at += op->part_max;
	return fd;
}

static void part_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;
	int fd = end_part(stream);

	stream->found->fd = fd == HAS_CHANGED ? S3_DAMAGED : fd;
	stream->found->held = op->part_max;
	stream->done(stream->arg);
}

void s3_stream_next(struct store_found *found, void (*done)(void *arg), void *arg)
{
	struct s3_stream *stream = found->stream;

	stream->found = found;
	stream->done = done;
	stream->arg = arg;
	assert(stream->at < stream->end);
	read_part(stream, part_max(stream), part_done);
}

void s3_stream_seek(struct s3_stream *stream, uint64_t at, uint64_t end)
{
	XXH3_freeState(stream->sum);
	stream->sum = NULL;
	stream->at = stream->section->at + at;
	stream->end = stream->section->at + end;
}

/* ---- the first part ---- */

/* Tells what was found, and ends the stream unless it has more. fd: or -errno. */
static void finish(struct s3_stream *stream, int fd, uint64_t held)
{
	const struct s3_section *s = stream->section;
	struct store_found *found = stream->found;
	void (*done)(void *arg) = stream->done;
	void *arg = stream->arg;

	/* Of an image that waits for the store, the store need not be asked. */
	if (fd == S3_AWAY && found->is_spooled)
		fd = -ENOENT;
	*found = (struct store_found){ .fd = fd, .is_spooled = found->is_spooled };
	if (fd >= 0) {
		found->size = s->bytes;
		found->held = held;
		found->modified = stream->known.modified;
		found->expires = s3_end_here(stream->client, stream->known.head.expires);
		memcpy(found->tag, s->sum, CHECKSUM_LENGTH);
	}
	if (fd >= 0 && held < s->bytes)
		found->stream = stream;
	else
		s3_stream_free(stream);
	done(arg);
}

static void read_head(struct s3_stream *stream);

static void first_part_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;
	bool has_changed = op->err == HAS_CHANGED || op->err == -ENOENT;

	if (has_changed && stream->heads_read < HEADS_MAX)
		read_head(stream);
	else if (has_changed)
		finish(stream, S3_DAMAGED, 0);
	else
		finish(stream, end_part(stream), op->part_max);
}

static void read_section(struct s3_stream *stream)
{
	XXH3_128bits_reset(stream->sum);
	stream->at = stream->section->at;
	stream->end = stream->section->at + stream->section->bytes;
	read_part(stream, S3_PART_MAX, first_part_done); /* [R2] */
}

/* ---- the head ---- */

/* Returns whether the file came with the head. */
static bool has_content(const struct s3_stream *stream)
{
	const struct s3_section *s = stream->section;

	return s && s->at + s->bytes <= stream->op.body.length;
}

static int judge_head(const struct s3_op *op)
{
	struct s3_stream *stream = op->arg;
	char sum[CHECKSUM_LENGTH + 1];
	int err = s3_head_of(&stream->known.head, op);

	stream->section = err ? NULL : s3_head_find(&stream->known.head, stream->name);
	if (!has_content(stream))
		return err;
	checksum_of(op->body.data + stream->section->at, stream->section->bytes, sum);
	return strcmp(sum, stream->section->sum) == 0 ? 0 : S3_DAMAGED;
}

static void head_done(struct s3_op *op)
{
	struct s3_stream *stream = op->arg;
	int err = op->err == S3_IS_REMOVED || op->err == S3_IS_FAILED ? -ENOENT : op->err;

	if (!err) {
		memcpy(stream->known.etag, op->etag, sizeof op->etag);
		stream->known.modified = op->modified;
		pthread_mutex_lock(&stream->heads->lock);
		*place_of(stream->heads, stream->known.id) = stream->known;
		pthread_mutex_unlock(&stream->heads->lock);
		err = stream->section ? 0 : -ENOENT;
	}
	const struct s3_section *s = err ? NULL : stream->section;
	bool is_here = s && has_content(stream);
	int fd = is_here ? make_file(op->body.data + s->at, s->bytes) : err;

	text_fini(&op->body);
	if (is_here || !s)
		finish(stream, fd, is_here ? s->bytes : 0);
	else
		read_section(stream);
}

static void read_head(struct s3_stream *stream)
{
	struct s3_op *op = &stream->op;
	bool is_json = strcmp(stream->name, STORED_IMAGE) == 0;

	stream->heads_read++;
	op->at = 0;
	op->part_max = op->body_max = is_json ? S3_HEAD_MAX : S3_FIRST_MAX;
	op->judge = judge_head;
	op->done = head_done;
	s3_client_submit(stream->client, op); /* [R1] */
}

void s3_stream_find(struct s3_client *c, struct s3_heads *heads, const char *id, const char *name,
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
	*stream = (struct s3_stream){
		.client = c,
		.heads = heads,
		.op = { .verb = S3_GET, .arg = stream },
		.sum = sum,
		.found = found,
		.done = done,
		.arg = arg,
	};
	s3_image_key(stream->op.key, id);
	snprintf(stream->name, sizeof stream->name, "%s", name);
	snprintf(stream->known.id, sizeof stream->known.id, "%s", id);
	/* What image.json says is also whether the image is there. */
	if (strcmp(name, STORED_IMAGE) != 0 && find_head(heads, &stream->known))
		stream->section = s3_head_find(&stream->known.head, name);
	if (stream->section)
		read_section(stream);
	else
		read_head(stream);
}

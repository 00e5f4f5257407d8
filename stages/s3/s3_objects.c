/* s3_objects.c - lists, conditions and removals. */
#include "s3_objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "log/log.h"
#include "s3_former.h"
#include "store/expiry.h"
#include "telemetry/counter.h"

#define LIST_MAX 1000       /* keys in one answer */
#define LIST_KEY_BYTES 2048 /* of an answer, for each key */
#define LISTS_AT_ONCE 32    /* of shards */
#define LIST_AGAIN 250      /* keys in an answer, where the first ones had many tombstones */
#define LIST_MAX_NS (30 * NS_PER_S) /* for a page of images; a list may have no end */
#define PASS "pass"
#define REMOVALS_MAX 4                           /* attempts, while others change the image */
#define PREFIX_LENGTH (sizeof S3_IMAGES + 2)     /* "image/XX/" */
#define MARK_NOTE_S (S3_TOMBSTONE_AGE_S + 86400) /* a day more, because clocks may be off */

/* ---- lists ---- */

static struct s3_op list_op(const char *prefix, const char *after, unsigned max)
{
	struct s3_op op = { .verb = S3_LIST, .after = after };

	op.max = max < LIST_MAX ? max : LIST_MAX;
	op.body_max = (op.max + 8) * LIST_KEY_BYTES;
	snprintf(op.key, sizeof op.key, "%s", prefix);
	return op;
}

time_t s3_age(const struct s3_op *op, time_t modified)
{
	return modified && op->date > modified ? op->date - modified : 0;
}

/* Calls `each` with the keys of an answer, and writes the last one, of which op->after may be the
 * former value. Returns 1 if more is wanted, and there is more; 0; or -errno. */
static int read_answer(struct s3_client *c, struct s3_op *op, char last[S3_NAME_MAX],
                       s3_key_reader *each, void *arg)
{
	struct s3_listed listed;
	struct s3_list list = { .is_truncated = false };
	int result = op->err;

	if (!op->err && s3_list_begin(&list, op->body.data, op->body.length))
		result = S3_LIST_NEXT;
	while (result > 0 && s3_list_next(&list, &listed)) {
		listed.key = listed.name + c->prefix_length;
		listed.age_s = s3_age(op, listed.modified);
		strcpy(last, listed.key);
		result = listed.is_plain && strlen(listed.key) < S3_KEY_MAX ? each(&listed, arg)
		                                                            : S3_LIST_FOREIGN;
		if (result == S3_LIST_FOREIGN)
			counter_add_shared(&c->counters.foreign);
	}
	text_fini(&op->body);
	return result > 0 ? list.is_truncated : result;
}

int s3_list_keys(struct s3_client *c, const char *prefix, unsigned max, s3_key_reader *each,
                 void *arg)
{
	char last[S3_NAME_MAX] = "";
	int result;

	do {
		struct s3_op op = list_op(prefix, last, max);

		s3_client_run(c, &op, 1);
		result = read_answer(c, &op, last, each, arg);
		/* A list may be without end. The thread that lists is also the one that probes. */
		if (result > 0 && (atomic_load(&c->are_lists_over) || s3_is_away(&c->counters)))
			return atomic_load(&c->are_lists_over) ? -ECANCELED : S3_AWAY;
	} while (result > 0);
	return result;
}

/* ---- lists of images ---- */

struct merge {
	struct s3_client *client;
	struct store_page *page;
	unsigned keys;                           /* in an answer */
	char last[S3_IMAGE_SHARDS][S3_NAME_MAX]; /* keys that were read last; "": no more come */
};

/* Adds an image in its place, if it belongs to the page. */
static int add_to_page(const struct s3_listed *listed, void *arg)
{
	struct store_page *page = arg;
	const char *id = listed->key + PREFIX_LENGTH;
	unsigned at = page->count;

	if (!ulid_is_valid(id, strlen(id)))
		return S3_LIST_FOREIGN;
	if (listed->size != sizeof S3_TOMBSTONE - 1 &&
	    (!page->before[0] || strcmp(id, page->before) < 0)) {
		while (at > 0 && strcmp(id, page->id[at - 1]) < 0)
			at--;
		if (at == page->max)
			return S3_LIST_NEXT;
		page->count += page->count < page->max;
		memmove(page->id[at + 1], page->id[at], (page->count - at - 1) * sizeof *page->id);
		memcpy(page->id[at], id, sizeof *page->id);
	}
	return S3_LIST_NEXT;
}

/* Returns whether the shard may have further images of the page. */
static bool is_wanted(const struct merge *m, unsigned shard)
{
	const struct store_page *page = m->page;
	const char *at = m->last[shard] + PREFIX_LENGTH;

	return m->last[shard][0] && (!page->before[0] || strcmp(at, page->before) < 0) &&
	       (page->count < page->max || strcmp(at, page->id[page->count - 1]) < 0);
}

/* Lists up to LISTS_AT_ONCE shards from *shard on, all at once, and sets *shard behind the last
 * one. Returns how many had to be listed, or -errno. */
static int list_shards(struct merge *m, unsigned *shard)
{
	struct s3_op op[LISTS_AT_ONCE];
	unsigned of[LISTS_AT_ONCE];
	char prefix[PREFIX_LENGTH + 1];
	int n = 0, err = 0;

	for (; *shard < S3_IMAGE_SHARDS && n < LISTS_AT_ONCE; ++*shard)
		if (is_wanted(m, *shard)) {
			snprintf(prefix, sizeof prefix, "%.*s", (int)PREFIX_LENGTH,
			         m->last[*shard]);
			of[n] = *shard;
			op[n++] = list_op(prefix, m->last[*shard], m->keys);
		}
	s3_client_run(m->client, op, (size_t)n);
	for (int i = 0; i < n; i++) {
		char *last = m->last[of[i]];
		int result = read_answer(m->client, &op[i], last, add_to_page, m->page);

		if (result <= 0)
			last[0] = '\0';
		err = result < 0 ? result : err;
	}
	return err ? err : n;
}

int s3_list_images(struct s3_client *c, struct store_page *page)
{
	struct merge *m = pool_get(sizeof *m);
	uint64_t end_ns = clock_ns() + LIST_MAX_NS;
	int listed = 1, result = 0;

	page->count = 0;
	if (!m)
		return -ENOMEM;
	m->client = c;
	m->page = page;
	for (unsigned i = 0; i < S3_IMAGE_SHARDS; i++)
		snprintf(m->last[i], S3_NAME_MAX, S3_IMAGES "%02x/%s", i, page->after);
	m->keys = page->max / 64 + 4;
	for (; listed > 0 && result >= 0; m->keys = LIST_AGAIN) {
		listed = 0;
		for (unsigned shard = 0; shard < S3_IMAGE_SHARDS && result >= 0; listed += result)
			result = clock_ns() < end_ns ? list_shards(m, &shard) : S3_AWAY;
	}
	pool_put(m);
	return result < 0 ? result : 0;
}

/* ---- one object ---- */

/* Returns whether the object has the content, and its entity tag. */
static bool is_same(struct s3_client *c, const char *key, const char *data, size_t size,
                    char etag[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_GET, .body_max = size + 1 };

	snprintf(op.key, sizeof op.key, "%s", key);
	s3_client_run(c, &op, 1);
	bool is_same = !op.err && op.body.length == size && memcmp(op.body.data, data, size) == 0;

	memcpy(etag, op.etag, S3_ETAG_MAX);
	text_fini(&op.body);
	return is_same;
}

int s3_put_if(struct s3_client *c, const char *key, const char *data, size_t size,
              const char *match, char etag[S3_ETAG_MAX])
{
	static atomic_bool has_bare_tags; /* Relaxed: it only saves requests. */
	const struct iovec content = { (void *)(uintptr_t)data, size };
	size_t length = strlen(match);
	bool is_tag = length > 2 && match[0] == '"' && match[length - 1] == '"';
	bool is_bare = is_tag && atomic_load_explicit(&has_bare_tags, memory_order_relaxed);

	for (;; is_bare = true) {
		struct s3_op op = { .verb = S3_PUT, .piece = &content, .piece_count = 1 };

		snprintf(op.key, sizeof op.key, "%s", key);
		snprintf(op.match, sizeof op.match, "%.*s", (int)(length - 2 * is_bare),
		         match + is_bare);
		s3_client_run(c, &op, 1);
		memcpy(etag, op.etag, S3_ETAG_MAX);
		if (!op.err && is_bare)
			atomic_store_explicit(&has_bare_tags, true, memory_order_relaxed);
		/* The answer to an earlier attempt may be lost, which has put it. libcurl also
		 * repeats requests by itself, if a connection that it kept has ended. */
		if (op.err == -EEXIST && is_same(c, key, data, size, etag))
			op.err = 0;
		/* Ceph's gateway (16) compares an entity tag without its quotes. */
		if (op.err != -EEXIST || is_bare || !is_tag)
			return op.err;
	}
}

int s3_remove(struct s3_client *c, const char *key, const char *match)
{
	struct s3_op op = { .verb = S3_DELETE };

	snprintf(op.key, sizeof op.key, "%s", key);
	snprintf(op.match, sizeof op.match, "%s", match);
	s3_client_run(c, &op, 1);
	return op.err == -ENOENT ? 0 : op.err;
}

int s3_probe(struct s3_client *c)
{
	static const char *const data[] = { "2\n", "3\n", "4\n" }, *const tag = "\"x\"";
	static const struct iovec content = { (void *)(uintptr_t)S3_PROBE_DATA,
		                              sizeof S3_PROBE_DATA - 1 };
	static atomic_bool is_told;
	struct s3_op op[] = {
		list_op(S3_PROBE, "", 1),
		{ .verb = S3_PUT, .key = S3_PROBE, .piece = &content, .piece_count = 1 }
	};
	char etag[S3_ETAG_MAX];

	op[0].is_probe = op[1].is_probe = true;
	s3_client_run(c, op, 2);
	text_fini(&op[0].body);
	int err = op[0].err ? op[0].err : op[1].err;

	if (err || atomic_load(&c->is_fit))
		return err;
	/* Other nodes that begin now may have removed it, but not each time. */
	for (unsigned i = 0; !err && i < COUNT_OF(data); i++)
		err = s3_put_if(c, S3_PROBE, data[i], strlen(data[i]), "*", etag);
	if (err == -EEXIST)
		err = s3_put_if(c, S3_PROBE, "5\n", 2, tag, etag);
	err = err == -EEXIST ? 0 : err ? err : -EOPNOTSUPP;
	if (!err) /* it must not be removed */
		atomic_store(&c->has_conditional_removals, s3_remove(c, S3_PROBE, tag) == -EEXIST);
	if (err == -EOPNOTSUPP && !atomic_exchange(&is_told, true))
		log_error("store: it has no conditional PUTs (If-None-Match, If-Match), by which "
		          "nodes do not overwrite or bring back each other's images; storing "
		          "none: see darkroomd(8), OBJECT STORE");
	return err;
}

/* ---- images ---- */

int s3_head_of(struct s3_head *head, const struct s3_op *op)
{
	return s3_head_read(head, op->key + PREFIX_LENGTH, op->body.data, op->body.length,
	                    op->total);
}

static int judge_head(const struct s3_op *op)
{
	struct s3_head head;

	return s3_head_of(&head, op);
}

void s3_note_key(char key[S3_KEY_MAX], const char *id, uint64_t when)
{
	char name[EXPIRY_NAME_MAX];

	expiry_write_name(name, id, when);
	snprintf(key, S3_KEY_MAX, S3_EXPIRY "%s", name);
}

uint64_t s3_end_there(const struct s3_client *c, uint64_t expires)
{
	return expires ? expires + (uint64_t)s3_client_skew(c) : 0;
}

uint64_t s3_end_here(const struct s3_client *c, uint64_t expires)
{
	return expires ? expires - (uint64_t)s3_client_skew(c) : 0;
}

struct s3_op s3_head_op(const char *id)
{
	struct s3_op op = { .verb = S3_GET,
		            .part_max = S3_HEAD_MAX,
		            .body_max = S3_HEAD_MAX,
		            .judge = judge_head };

	s3_image_key(op.key, id);
	return op;
}

/* Reads the head of an image. Returns its fate, with the operation's results but the body, or
 * -errno. */
static int read_head(struct s3_client *c, const char *id, struct s3_op *op, struct s3_head *head)
{
	*op = s3_head_op(id);
	s3_client_run(c, op, 1);
	if (!op->err)
		(void)s3_head_of(head, op);
	text_fini(&op->body);
	return op->err == 0               ? S3_THERE
	       : op->err == -ENOENT       ? S3_ABSENT
	       : op->err == S3_IS_REMOVED ? S3_REMOVED
	       : op->err == S3_IS_FAILED  ? S3_HAS_FAILED
	                                  : op->err;
}

/* Puts a mark in the place of what was read, and before it the note by which the mark goes. A note
 * without a mark does no harm. Returns 0, -EEXIST if the object has changed, or -errno. */
static int put_mark(struct s3_client *c, const char *id, const struct s3_op *was, const char *mark)
{
	char key[S3_KEY_MAX], etag[S3_ETAG_MAX];

	s3_note_key(key, id, s3_end_there(c, (uint64_t)time(NULL)) + MARK_NOTE_S);
	int err = s3_put_if(c, key, S3_NOTE, strlen(S3_NOTE), "", etag);

	if (!err)
		err = s3_put_if(c, was->key, mark, strlen(mark),
		                was->err == -ENOENT ? "*" : was->etag, etag);
	/* Then another removal of this second may have the same note. */
	return err == -ENOENT ? -EEXIST : err;
}

/* Returns -ENOENT, or another -errno. */
static int end_mark(struct s3_client *c, const char *id, const struct s3_op *mark)
{
	/* What an earlier removal has left. [M4] Without the mark it would be the image again. */
	int err = s3_former_remove(c, id);

	if (!err && s3_age(mark, mark->modified) >= S3_TOMBSTONE_AGE_S) {
		/* [T1] Nothing but a mark can be there. So it needs no condition, which some stores
		 * do not know. */
		err = s3_remove(c, mark->key, "");
		if (!err)
			counter_add_shared(&c->counters.tombstones);
	}
	return err ? err : -ENOENT;
}

int s3_image_remove(struct s3_client *c, const char *id, bool may_come, uint64_t due,
                    uint64_t *bytes)
{
	for (unsigned i = 0; i < REMOVALS_MAX; i++) {
		struct s3_head head;
		struct s3_op op;
		int state = read_head(c, id, &op, &head); /* [D1] */

		if (state == S3_REMOVED || state == S3_HAS_FAILED)
			return end_mark(c, id, &op);
		if (state == S3_THERE && due && (!head.expires || head.expires > due))
			return -ENOENT; /* the note is of a removal that was cut, or of others */
		if (state == S3_ABSENT) {
			int former = s3_former_copy(c, id);
			bool may_be = former == -ENOENT && may_come && !s3_id_is_too_old(id);
			bool is_bad = former == S3_DAMAGED || former == -EFBIG;

			if (former >= 0)
				continue;
			if (is_bad && due) { /* only a client's DELETE removes it */
				log_warning("expire: cannot read former image %s: %s; leaving it",
				            id, strerror(-former));
				return -ENOENT;
			}
			if (!may_be && !is_bad)
				return former;
		} else if (state < 0 && !(state == S3_DAMAGED && op.etag[0])) {
			return state;
		}
		*bytes = state == S3_ABSENT ? 0 : op.total;
		int err = put_mark(c, id, &op, S3_TOMBSTONE); /* [D2], or [D3] if it is absent */

		if (err != -EEXIST) /* the tombstone comes first, so that no copy can */
			return err ? err : s3_former_remove(c, id);
	}
	return -EAGAIN;
}

int s3_image_fate(struct s3_client *c, const char *id, bool ends)
{
	for (unsigned i = 0; i < REMOVALS_MAX; i++) {
		struct s3_head head;
		struct s3_op op;
		int state = read_head(c, id, &op, &head);

		if (state != S3_ABSENT || !ends)
			return state;
		int err =
			s3_id_is_too_old(id) ? -ETIME : put_mark(c, id, &op, S3_FAILED); /* [K5] */

		if (err != -EEXIST)
			return err ? err : S3_HAS_FAILED;
	}
	return -EAGAIN;
}

/* ---- passes ---- */

int s3_pass_hold(struct s3_client *c, struct s3_pass *p, uint64_t patience_ns)
{
	struct s3_op op = { .verb = S3_GET, .key = PASS, .body_max = ULID_LENGTH };
	char text[ULID_LENGTH + 1]; /* that nobody has put before */
	uint64_t now = clock_ns();

	s3_client_run(c, &op, 1); /* [P1] */
	text_fini(&op.body);
	/* What others have put there is replaced in the same way; its entity tag may be unknown. */
	bool is_there = !op.err || op.err == S3_DAMAGED || op.err == -EFBIG;

	if (!is_there && op.err != -ENOENT)
		return op.err;
	if (is_there && (strcmp(op.etag, p->etag) != 0 || !p->since_ns)) {
		memcpy(p->etag, op.etag, sizeof p->etag);
		p->since_ns = now;
		p->is_own = false;
	}
	if (is_there && !p->is_own && now - p->since_ns < patience_ns)
		return 0;
	ulid_new(text);
	int err = s3_put_if(c, PASS, text, ULID_LENGTH, is_there ? op.etag : "*", p->etag);

	p->since_ns = now;
	p->is_own = !err;
	return err == -EEXIST || err == -ENOENT ? 0 : err ? err : 1;
}

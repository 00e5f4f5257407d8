/* s3_objects.c - lists, conditions and removals. */
#include "s3_objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "log/log.h"
#include "s3_former.h"
#include "telemetry/counter.h"

#define LIST_MAX 1000       /* keys in one answer */
#define LIST_KEY_BYTES 2048 /* of an answer, for each key */
#define LISTS_AT_ONCE 32    /* of shards */
#define LIST_AGAIN 250      /* keys in an answer, where the first ones had many tombstones */
#define LIST_MAX_NS (30 * NS_PER_S) /* for a page of images; a list may have no end */
#define PASS "pass"
#define REMOVALS_MAX 4                       /* attempts, while others change the image */
#define PREFIX_LENGTH (sizeof S3_IMAGES + 2) /* "image/XX/" */

/* ---- lists ---- */

static struct s3_op list_op(const char *prefix, const char *after, unsigned max)
{
	struct s3_op op = { .verb = S3_LIST, .after = *after ? after : NULL };

	op.max = max < LIST_MAX ? max : LIST_MAX;
	op.body_max = (op.max + 8) * LIST_KEY_BYTES;
	snprintf(op.key, sizeof op.key, "%s", prefix);
	return op;
}

time_t s3_age(const struct s3_op *op, time_t modified)
{
	return modified && op->date > modified ? op->date - modified : 0;
}

void s3_count_foreign(struct s3_client *c)
{
	counter_add_shared(&s3_client_counters(c)->foreign);
}

/* Calls `each` with the keys of an answer, and writes the last one, of which op->after may be the
 * former value. Returns whether more is wanted, and there is more. */
static bool read_answer(struct s3_client *c, struct s3_op *op, char last[S3_NAME_MAX],
                        s3_key_reader *each, void *arg)
{
	size_t cut = s3_client_prefix_length(c);
	bool is_wanted = true;
	char key[S3_NAME_MAX];
	struct s3_list list;

	bool has_more = !op->err && s3_list_begin(&list, op->body.data, op->body.length);
	while (has_more && is_wanted && s3_list_next(&list, key)) {
		const struct s3_listed listed = { .key = key + cut,
			                          .etag = list.etag,
			                          .size = list.size,
			                          .age_s = s3_age(op, list.modified) };

		strcpy(last, key + cut);
		if (list.is_plain && strlen(listed.key) < S3_KEY_MAX)
			is_wanted = each(&listed, arg);
		else
			s3_count_foreign(c);
	}
	text_fini(&op->body);
	return has_more && list.is_truncated && is_wanted;
}

int s3_list_keys(struct s3_client *c, const char *prefix, unsigned max, s3_key_reader *each,
                 void *arg)
{
	char last[S3_NAME_MAX] = "";
	bool has_more = true;
	struct s3_op op;

	while (has_more) {
		op = list_op(prefix, last, max);
		s3_client_run(c, &op, 1);
		has_more = read_answer(c, &op, last, each, arg);
		if (has_more && s3_client_are_lists_over(c))
			return -ECANCELED; /* a list may have no end */
	}
	return op.err;
}

/* ---- lists of images ---- */

struct merge {
	struct s3_client *client;
	struct store_page *page;
	unsigned keys; /* in an answer */
	struct {
		char last[S3_NAME_MAX]; /* the key that was read last */
		bool is_over;
	} shard[S3_IMAGE_SHARDS];
};

static bool is_full(const struct store_page *page)
{
	return page->count == page->max;
}

/* Adds an image in its place, if it belongs to the page. */
static bool add_to_page(const struct s3_listed *listed, void *arg)
{
	struct merge *m = arg;
	struct store_page *page = m->page;
	const char *id = listed->key + PREFIX_LENGTH;
	unsigned at = page->count;

	if (!ulid_is_valid(id, strlen(id)))
		s3_count_foreign(m->client);
	else if (listed->size != sizeof S3_TOMBSTONE - 1 &&
	         (!page->before[0] || strcmp(id, page->before) < 0)) {
		while (at > 0 && strcmp(id, page->id[at - 1]) < 0)
			at--;
		if (at == page->max)
			return true;
		page->count += !is_full(page);
		memmove(page->id[at + 1], page->id[at], (page->count - at - 1) * sizeof *page->id);
		memcpy(page->id[at], id, sizeof *page->id);
	}
	return true;
}

/* Returns whether the shard may have further images of the page. */
static bool is_wanted(const struct merge *m, unsigned shard)
{
	const struct store_page *page = m->page;
	const char *at = m->shard[shard].last + PREFIX_LENGTH;

	return !m->shard[shard].is_over && (!page->before[0] || strcmp(at, page->before) < 0) &&
	       (!is_full(page) || strcmp(at, page->id[page->count - 1]) < 0);
}

/* Lists some shards from `first` on, all at once. Returns behind the last one, or -errno. */
static int list_shards(struct merge *m, unsigned first)
{
	unsigned of[LISTS_AT_ONCE], n = 0;
	struct s3_op op[LISTS_AT_ONCE];
	char prefix[PREFIX_LENGTH + 1];
	int err = 0;

	for (; first < S3_IMAGE_SHARDS && n < LISTS_AT_ONCE; first++)
		if (is_wanted(m, first)) {
			snprintf(prefix, sizeof prefix, "%.*s", (int)PREFIX_LENGTH,
			         m->shard[first].last);
			of[n] = first;
			op[n++] = list_op(prefix, m->shard[first].last, m->keys);
		}
	s3_client_run(m->client, op, n);
	for (unsigned i = 0; i < n; i++) {
		m->shard[of[i]].is_over =
			!read_answer(m->client, &op[i], m->shard[of[i]].last, add_to_page, m);
		err = err ? err : op[i].err;
	}
	return err ? err : (int)first;
}

static bool is_any_wanted(const struct merge *m)
{
	unsigned shard = 0;

	while (shard < S3_IMAGE_SHARDS && !is_wanted(m, shard))
		shard++;
	return shard < S3_IMAGE_SHARDS;
}

int s3_list_images(struct s3_client *c, struct store_page *page)
{
	struct merge *m = pool_get(sizeof *m);
	uint64_t end_ns = clock_ns() + LIST_MAX_NS;
	int at = 0;

	page->count = 0;
	if (!m)
		return -ENOMEM;
	m->client = c;
	m->page = page;
	for (unsigned i = 0; i < S3_IMAGE_SHARDS; i++) {
		m->shard[i].is_over = false;
		snprintf(m->shard[i].last, S3_NAME_MAX, S3_IMAGES "%02x/%s", i, page->after);
	}
	m->keys = page->max / 64 + 4;
	for (; at >= 0 && is_any_wanted(m); m->keys = LIST_AGAIN)
		for (at = 0; at >= 0 && at < S3_IMAGE_SHARDS;)
			at = clock_ns() < end_ns ? list_shards(m, (unsigned)at) : S3_AWAY;
	pool_put(m);
	return at < 0 ? at : 0;
}

/* ---- one object ---- */

static atomic_bool has_conditional_removals; /* of the store */

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

/* Puts it once. Returns as s3_put_if(). */
static int put_if(struct s3_client *c, const char *key, const char *data, size_t size,
                  const char *match, size_t match_length, char etag[S3_ETAG_MAX])
{
	const struct iovec content = { (void *)(uintptr_t)data, size };
	struct s3_op op = {
		.verb = S3_PUT, .piece = &content, .piece_count = 1, .type = "text/plain"
	};

	snprintf(op.key, sizeof op.key, "%s", key);
	snprintf(op.match, sizeof op.match, "%.*s", (int)match_length, match);
	checksum_of(data, size, op.sum);
	s3_client_run(c, &op, 1);
	text_fini(&op.body);
	memcpy(etag, op.etag, S3_ETAG_MAX);
	/* The answer to an earlier attempt may be lost, which has put it. libcurl also repeats
	 * requests by itself, if a connection that it kept has ended. */
	if (op.err == -EEXIST && is_same(c, key, data, size, etag))
		return 0;
	return op.err;
}

int s3_put_if(struct s3_client *c, const char *key, const char *data, size_t size,
              const char *match, char etag[S3_ETAG_MAX])
{
	static atomic_bool has_bare_tags; /* Relaxed: it only saves requests. */
	size_t length = strlen(match);
	bool is_tag = length > 2 && match[0] == '"' && match[length - 1] == '"';

	if (!is_tag || !atomic_load_explicit(&has_bare_tags, memory_order_relaxed)) {
		int err = put_if(c, key, data, size, match, length, etag);

		if (!is_tag || err != -EEXIST)
			return err;
	}
	/* Ceph's gateway (16) compares an entity tag without its quotes. */
	int err = put_if(c, key, data, size, match + 1, length - 2, etag);

	if (!err)
		atomic_store_explicit(&has_bare_tags, true, memory_order_relaxed);
	return err;
}

static int remove_if(struct s3_client *c, const char *key, const char *match)
{
	struct s3_op op = { .verb = S3_DELETE };

	snprintf(op.key, sizeof op.key, "%s", key);
	snprintf(op.match, sizeof op.match, "%s", match);
	s3_client_run(c, &op, 1);
	text_fini(&op.body);
	return op.err;
}

int s3_probe(struct s3_client *c)
{
	static const struct {
		const char *data, *match;
		int err;
	} step[] = { { S3_PROBE_DATA, "", 0 },
		     { "2\n", "*", -EEXIST },
		     { "3\n", "\"x\"", -EEXIST } };
	static atomic_bool is_told;
	struct s3_op alive = list_op(S3_PROBE, "", 1);
	char etag[S3_ETAG_MAX];

	alive.is_once = true;
	s3_client_run(c, &alive, 1);
	text_fini(&alive.body);
	int err = alive.err;

	for (unsigned i = 0; !err && i < COUNT_OF(step); i++) {
		err = s3_put_if(c, S3_PROBE, step[i].data, strlen(step[i].data), step[i].match,
		                etag);
		if (err == step[i].err)
			err = 0;
		else if (!err)
			err = -EOPNOTSUPP;
	}
	if (!err) /* it must not be removed */
		atomic_store(&has_conditional_removals,
		             remove_if(c, S3_PROBE, step[2].match) == -EEXIST);
	if (err == -EOPNOTSUPP && !atomic_exchange(&is_told, true))
		log_error("store: it has no conditional PUTs (If-None-Match, If-Match), by which "
		          "nodes do not overwrite or bring back each other's images; storing "
		          "none: see darkroomd(8), OBJECT STORE");
	return err;
}

int s3_remove(struct s3_client *c, const char *key, const char *match)
{
	int err = remove_if(c, key, match);

	return err == -ENOENT || (*match && err == -EEXIST) ? 0 : err;
}

bool s3_has_conditional_removals(void)
{
	return atomic_load(&has_conditional_removals);
}

/* ---- images ---- */

static bool is_head(const struct s3_op *op, const struct XXH3_state_s *sum)
{
	struct s3_head head;

	(void)sum;
	return s3_head_read(&head, op->body.data, op->body.length, op->total) != -EBADMSG;
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
		            .is_right = is_head };

	s3_image_key(op.key, id);
	return op;
}

/* Reads the head of an image, with the operation's results but the body. Returns op->err, or as
 * s3_head_read(). */
static int read_head(struct s3_client *c, const char *id, struct s3_op *op, struct s3_head *head)
{
	*op = s3_head_op(id);
	s3_client_run(c, op, 1);
	int err = op->err ? op->err : s3_head_read(head, op->body.data, op->body.length, op->total);

	text_fini(&op->body);
	return err;
}

int s3_image_remove(struct s3_client *c, const char *id, bool may_come, uint64_t *expires)
{
	int err = -EEXIST;

	*expires = 0;
	for (unsigned i = 0; err == -EEXIST && i < REMOVALS_MAX; i++) {
		char etag[S3_ETAG_MAX];
		struct s3_head head;
		struct s3_op op;

		err = read_head(c, id, &op, &head); /* [D1] */
		int former = err == -ENOENT ? s3_former_has(c, id) : 0;
		bool is_damaged = op.err == S3_DAMAGED && op.etag[0]; /* it is removed as well */

		if (former < 0) {
			err = former;
			continue;
		}
		may_come = may_come && !s3_id_is_too_old(id);
		bool is_absent = op.err == -ENOENT && (may_come || former);

		if (err && !is_absent && !is_damaged) {
			if (former) /* what an earlier removal has left */
				(void)s3_former_remove(c, id);
			return err == -ESTALE ? -ENOENT : err;
		}
		*expires = err ? 0 : head.expires;
		/* [D2], or [D3] if it is not there */
		err = s3_put_if(c, op.key, S3_TOMBSTONE, sizeof S3_TOMBSTONE - 1,
		                is_absent ? "*" : op.etag, etag);
		err = err == -ENOENT ? -EEXIST : err; /* it has changed as well */
	}
	if (!err) /* the tombstone comes first, so that no copy can */
		err = s3_former_remove(c, id);
	return err == -EEXIST ? -EAGAIN : err;
}

int s3_image_fate(struct s3_client *c, const char *id, bool ends)
{
	int err = -EEXIST;

	if (ends && s3_id_is_too_old(id))
		return -ETIME;
	for (unsigned i = 0; err == -EEXIST && i < REMOVALS_MAX; i++) {
		char etag[S3_ETAG_MAX];
		struct s3_head head;
		struct s3_op op;
		int state = read_head(c, id, &op, &head);

		if (op.err && op.err != -ENOENT)
			return op.err;
		if (!op.err)
			return state == -ENOENT   ? S3_REMOVED
			       : state == -ESTALE ? S3_HAS_FAILED
			                          : S3_THERE;
		if (!ends)
			return S3_ABSENT;
		err = s3_put_if(c, op.key, S3_FAILED, sizeof S3_FAILED - 1, "*", etag); /* [K5] */
	}
	return err == -EEXIST ? -EAGAIN : err ? err : S3_HAS_FAILED;
}

/* ---- passes ---- */

int s3_pass_hold(struct s3_client *c, struct s3_pass *p, uint64_t patience_ns)
{
	struct s3_op op = { .verb = S3_GET, .key = PASS, .body_max = ULID_LENGTH };
	char text[ULID_LENGTH + 1]; /* that nobody has put before */
	uint64_t now = clock_ns();

	s3_client_run(c, &op, 1); /* [P1] */
	text_fini(&op.body);
	if (op.err && op.err != -ENOENT)
		return op.err;
	if (!op.err && strcmp(op.etag, p->etag) != 0) {
		memcpy(p->etag, op.etag, sizeof p->etag);
		p->since_ns = now;
		p->is_own = false;
	}
	if (!op.err && !p->is_own && now - p->since_ns < patience_ns)
		return 0;
	ulid_new(text);
	int err = s3_put_if(c, PASS, text, ULID_LENGTH, op.err ? "*" : op.etag, p->etag);

	p->since_ns = now;
	p->is_own = !err;
	return err == -EEXIST || err == -ENOENT ? 0 : err ? err : 1;
}

/* ---- tombstones ---- */

struct looking {
	struct s3_client *client;
	int err, removed;
};

static bool remove_old(const struct s3_listed *listed, void *arg)
{
	struct looking *l = arg;
	const char *id = listed->key + PREFIX_LENGTH;

	if (listed->size != sizeof S3_TOMBSTONE - 1 || listed->age_s < S3_TOMBSTONE_AGE_S ||
	    !ulid_is_valid(id, strlen(id)))
		return true;
	/* [T1] Nothing but a tombstone can be there. So it needs no condition, which some stores
	 * do not know, and compare otherwise than they list. */
	l->err = s3_remove(l->client, listed->key, "");
	l->removed += !l->err;
	if (!l->err)
		counter_add_shared(&s3_client_counters(l->client)->tombstones);
	return !l->err;
}

int s3_tombstones_remove(struct s3_client *c, struct s3_round *round)
{
	struct looking l = { .client = c };

	for (unsigned i = 0; i < S3_ROUND_PAGES && !l.err; i++) {
		char prefix[PREFIX_LENGTH + 1];

		snprintf(prefix, sizeof prefix, S3_IMAGES "%02x/", round->shard);
		struct s3_op op = list_op(prefix, round->after, LIST_MAX);

		s3_client_run(c, &op, 1);
		bool has_more = read_answer(c, &op, round->after, remove_old, &l);

		l.err = op.err ? op.err : l.err;
		if (has_more || l.err)
			continue;
		round->after[0] = '\0';
		round->shard = (round->shard + 1) % S3_IMAGE_SHARDS;
	}
	return l.err ? l.err : l.removed;
}

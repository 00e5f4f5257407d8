/* bucket.c - objects, requests with their answers and faults, and clients that repeat them. */
#include "bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"

#define PREFIX "p/" /* store.s3_prefix */
#define TIMEOUT_NS (5 * NS_PER_S)
#define LATE_MAX_S (20 * 3600)  /* darkroom counts on a day */
#define AWAY_NS (30 * NS_PER_S) /* no operation is repeated for so long */
#define DATE_MAX_S 900          /* by which the date of a signature may be off */
#define BACKOFF_NS (50 * NS_PER_MS)
#define BREAKER_WEIGHT 16
#define BREAKER_TIMEOUT 8

struct bucket bucket;

struct client {
	struct s3_client shared;
	struct node *node;
	struct {
		unsigned weight;
		uint64_t first_ns;
	} breaker[S3_SIDES];
};

struct answer {
	int status; /* 0: none comes */
	char *data;
	size_t size;
	char etag[S3_ETAG_MAX], sum[CHECKSUM_LENGTH + 1];
	uint64_t total;
	time_t modified, date;
};

/* An attempt. It outlives its operation if it is carried out late. */
struct request {
	struct request *next, **place;
	struct client *client;
	struct s3_op *op;  /* NULL: nobody waits for the answer */
	struct s3_op sent; /* what is asked; the content of a PUT is `data` */
	char *data;
	size_t size;
	bool is_misdated, is_lost, is_damaged, is_second;
	int refusal; /* a status, whatever becomes of it */
	struct timer start, effect, again, answered;
	struct answer answer;
};

static struct request *requests;

/* ---- objects ---- */

/* Returns the first place whose key is not before this one. */
static unsigned place_of(const char *key)
{
	unsigned low = 0, high = bucket.count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (strcmp(bucket.object[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct object *bucket_find(const char *key)
{
	unsigned at = place_of(key);

	return at < bucket.count && strcmp(bucket.object[at]->key, key) == 0 ? bucket.object[at]
	                                                                     : NULL;
}

static void *copy(const void *data, size_t size)
{
	char *p = malloc(size + 1);

	if (!p)
		abort();
	memcpy(p, data, size);
	p[size] = '\0';
	return p;
}

/* Removes the object without a word. */
static void drop(unsigned at)
{
	free(bucket.object[at]->data);
	free(bucket.object[at]);
	memmove(&bucket.object[at], &bucket.object[at + 1],
	        (--bucket.count - at) * sizeof(struct object *));
}

void bucket_put(const char *key, const void *data, size_t size, bool is_one_piece)
{
	char sum[CHECKSUM_LENGTH + 1];
	unsigned at = place_of(key);
	struct object *o = calloc(1, sizeof *o);

	if (bucket_find(key))
		drop(at);
	bucket.object = realloc(bucket.object, (bucket.count + 1) * sizeof(struct object *));
	if (!o || !bucket.object)
		abort();
	memmove(&bucket.object[at + 1], &bucket.object[at],
	        (bucket.count++ - at) * sizeof(struct object *));
	bucket.object[at] = o;
	snprintf(o->key, sizeof o->key, "%s", key);
	o->data = copy(data, size);
	o->size = size;
	o->modified = (time_t)(cluster.now_ns / NS_PER_S);
	checksum_of(data, size, sum);
	snprintf(o->etag, sizeof o->etag, "\"%s\"", sum);
	if (is_one_piece)
		memcpy(o->sum, sum, sizeof sum);
	bucket.changes(o, false);
}

/* ---- what the store does ---- */

/* Returns the status of a condition that does not hold, or 200. */
static int check_match(const struct request *r, const struct object *o)
{
	const char *match = r->sent.match;

	if (!*match)
		return 200;
	if (*match == '*')
		return o ? 412 : 200;
	return !o ? 404 : strcmp(o->etag, match) == 0 ? 200 : 412;
}

static void do_put(struct request *r, struct answer *a)
{
	a->status = check_match(r, bucket_find(r->sent.key));
	if (a->status != 200)
		return;
	bucket_put(r->sent.key, r->data, r->size, r->sent.piece_count == 1);
	snprintf(a->etag, sizeof a->etag, "%s", bucket_find(r->sent.key)->etag);
}

static void do_delete(struct request *r, struct answer *a)
{
	struct object *o = bucket_find(r->sent.key);

	a->status = bucket.has_conditional_removals ? check_match(r, o) : 200;
	if (a->status != 200 || !o)
		return;
	bucket.changes(o, true);
	drop(place_of(r->sent.key));
}

static void do_get(struct request *r, struct answer *a)
{
	const struct object *o = bucket_find(r->sent.key);
	uint64_t at = r->sent.at, size;

	if (!o || at >= o->size) {
		a->status = o ? 416 : 404;
		return;
	}
	size = o->size - at;
	a->size = r->sent.part_max && r->sent.part_max < size ? r->sent.part_max : size;
	a->data = copy(o->data + at, a->size);
	if (r->is_damaged)
		a->data[bucket.requests * 7919 % a->size] ^= 16;
	memcpy(a->etag, o->etag, sizeof a->etag);
	memcpy(a->sum, o->sum, sizeof a->sum);
	a->total = o->size;
	a->modified = o->modified;
}

static void do_list(struct request *r, struct answer *a)
{
	const char *prefix = r->sent.key;
	struct text t;
	unsigned n = 0,
		 at = place_of(r->op && strcmp(r->op->after, prefix) > 0 ? r->op->after : prefix);

	if (!r->op)
		return; /* `after` is gone, too */
	text_init_growable(&t, SIZE_MAX);
	text_puts(&t, "<ListBucketResult>");
	for (; at < bucket.count && n <= r->sent.max; at++) {
		const struct object *o = bucket.object[at];
		char date[32];
		struct tm tm;

		if (strncmp(o->key, prefix, strlen(prefix)) != 0)
			break;
		if (strcmp(o->key, r->op->after) <= 0 || n++ == r->sent.max)
			continue;
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&o->modified, &tm));
		text_printf(&t,
		            "<Contents><Key>" PREFIX "%s</Key><LastModified>%s</LastModified><ETag>"
		            "&quot;%.32s&quot;</ETag><Size>%zu</Size></Contents>",
		            o->key, date, o->etag + 1, o->size);
	}
	text_printf(&t, "<IsTruncated>%s</IsTruncated></ListBucketResult>",
	            n > r->sent.max ? "true" : "false");
	a->data = copy(t.data, t.length);
	a->size = t.length;
	text_fini(&t);
}

static void carry_out(struct request *r)
{
	static void (*const verbs[])(struct request *, struct answer *) = {
		[S3_GET] = do_get, [S3_PUT] = do_put, [S3_DELETE] = do_delete, [S3_LIST] = do_list
	};
	struct answer a = { .status = r->is_misdated ? 403 : 200,
		            .date = (time_t)(cluster.now_ns / NS_PER_S) };

	if (a.status == 200)
		verbs[r->sent.verb](r, &a);
	free(r->answer.data);
	r->answer = a;
	tell("%s %s: %d", (const char *[]){ "", "GET", "PUT", "DELETE", "LIST" }[r->sent.verb],
	     r->sent.key, a.status);
}

/* ---- requests ---- */

static struct client *client_of(struct s3_client *c)
{
	return CONTAINER_OF(c, struct client, shared);
}

static void free_request(struct request *r)
{
	struct timer *const timers[] = { &r->start, &r->effect, &r->again, &r->answered };

	for (unsigned i = 0; i < COUNT_OF(timers); i++)
		timer_clear(timers[i]);
	*r->place = r->next;
	if (r->next)
		r->next->place = r->place;
	free(r->data);
	free(r->answer.data);
	free(r);
	bucket.in_flight--;
}

/* Frees it if nothing comes of it any more. */
static void end_request(struct request *r)
{
	if (!r->op && !r->effect.is_set && !r->again.is_set)
		free_request(r);
}

static void take_effect(struct timer *t)
{
	struct request *r = CONTAINER_OF(t, struct request, effect);

	carry_out(r);
	end_request(r);
}

/* Only one of the two answers comes. */
static void take_effect_again(struct timer *t)
{
	struct request *r = CONTAINER_OF(t, struct request, again);
	struct answer first = r->answer;

	if (!r->is_second)
		r->answer.data = NULL;
	carry_out(r);
	if (!r->is_second) {
		free(r->answer.data);
		r->answer = first;
	}
	end_request(r);
}

static void take_answer(struct timer *t);

static uint64_t draw_time(struct random *chance)
{
	return (random_next(chance) % 64 ? 20 * NS_PER_MS : 2 * NS_PER_S) *
	       (random_next(chance) % 1024) / 1024;
}

/* Returns after how long a request that was held up is carried out. */
static uint64_t draw_delay(struct random *chance)
{
	static const uint64_t most_s[] = { 2, 60, 3600, LATE_MAX_S };

	return random_next(chance) % (most_s[random_next(chance) % COUNT_OF(most_s)] * NS_PER_S);
}

static bool can_have(const struct request *r, unsigned kind)
{
	bool is_write = r->sent.verb == S3_PUT || r->sent.verb == S3_DELETE;

	return kind == BUCKET_DAMAGED                        ? r->sent.verb == S3_GET
	       : kind == BUCKET_LATE || kind == BUCKET_TWICE ? is_write
	                                                     : true;
}

static void set_answer(struct request *r, uint64_t after_ns)
{
	timer_clear(&r->answered);
	timer_set(&r->answered, r->client->node, after_ns, take_answer);
}

static void lose_answer(struct request *r)
{
	r->is_lost = true;
	set_answer(r, TIMEOUT_NS);
}

static void refuse(struct request *r, struct random *chance)
{
	static const int status[] = { 500, 503, 409, 507 };

	r->refusal = status[random_next(chance) % COUNT_OF(status)];
	if (r->refusal == 507 && r->sent.verb != S3_PUT)
		r->refusal = 500;
	if (r->refusal > 500 || random_next(chance) % 2)
		timer_clear(&r->effect);
}

/* Lets a fault happen to the request. */
static void hurt(struct request *r, const struct seed_fault *fault)
{
	struct random chance = { fault->seed };
	uint64_t delay = draw_delay(&chance);

	bucket.was_hurt = true;
	if (fault->kind == BUCKET_LOST) {
		lose_answer(r);
	} else if (fault->kind == BUCKET_LATE) {
		timer_clear(&r->effect);
		timer_set(&r->effect, NULL, delay, take_effect);
		lose_answer(r);
		if (random_next(&chance) % 2) /* repeating it does not help */
			bucket.away_until_ns = cluster.now_ns + AWAY_NS;
	} else if (fault->kind == BUCKET_TWICE) {
		uint64_t first = r->effect.at_ns - cluster.now_ns;

		r->is_second = delay % 2;
		timer_set(&r->again, NULL, r->is_second ? first : first + delay, take_effect_again);
	} else if (fault->kind == BUCKET_ERROR) {
		refuse(r, &chance);
	} else if (fault->kind == BUCKET_DAMAGED) {
		r->is_damaged = true;
	} else if (fault->kind == BUCKET_AWAY) {
		bucket.away_until_ns = cluster.now_ns + delay % (4 * AWAY_NS);
		if (random_next(&chance) % 2)
			lose_answer(r);
	} else {
		if (fault->kind == BUCKET_KILL && random_next(&chance) % 2)
			timer_clear(&r->effect); /* it was not sent */
		bucket.hurt(r->client->node, fault);
	}
}

/* Draws when a request is carried out and answered. A fault may end the node, and the request. */
static void plan(struct request *r)
{
	struct random chance = random_stream(bucket.seed, ++bucket.requests);
	uint64_t there = draw_time(&chance), back = draw_time(&chance);
	const struct seed_fault *fault = &bucket.fault[bucket.fault_next];

	if (cluster.now_ns < bucket.away_until_ns) {
		r->is_lost = true;
		set_answer(r, random_next(&chance) % 2 ? back : TIMEOUT_NS);
		return;
	}
	timer_set(&r->effect, NULL, there, take_effect);
	set_answer(r, there + back);
	if (bucket.fault_next == bucket.fault_count || bucket.requests < fault->at ||
	    !can_have(r, fault->kind))
		return;
	bucket.fault_next++;
	tell("fault %s", seed_program.words[fault->kind]);
	hurt(r, fault);
}

/* ---- clients ---- */

static enum s3_side side_of(const struct s3_op *op)
{
	return op->verb == S3_PUT || op->verb == S3_DELETE ? S3_WRITES : S3_READS;
}

static void reset(struct s3_op *op)
{
	text_fini(&op->body);
	text_init_growable(&op->body, op->body_max + 1);
}

/* Ends an operation. */
static void finish(struct request *r, int err)
{
	struct s3_op *op = r->op;

	op->err = err;
	r->client->shared.counters.in_flight--;
	r->op = NULL;
	end_request(r);
	op->done(op);
}

static void start(struct timer *t)
{
	struct request *r = CONTAINER_OF(t, struct request, start);
	struct client *c = r->client;
	struct s3_op *op = r->op;
	bool is_early = op->verb == S3_PUT && !c->shared.is_fit && strcmp(op->key, S3_PROBE) != 0;
	struct text content;

	if (is_early || (c->shared.counters.is_away[side_of(op)] && !op->is_probe)) {
		finish(r, S3_AWAY);
		return;
	}
	op->attempts++;
	op->began_ns = clock_ns();
	reset(op);
	r->sent = *op;
	text_init_growable(&content, SIZE_MAX);
	for (unsigned i = 0; i < (op->verb == S3_PUT ? op->piece_count : 0); i++)
		text_put(&content, op->piece[i].iov_base, op->piece[i].iov_len);
	r->data = copy(content.data, content.length);
	r->size = content.length;
	text_fini(&content);
	r->is_misdated = llabs(c->node->ahead_ns) > (int64_t)(DATE_MAX_S * NS_PER_S);
	plan(r);
}

static void attempt(struct client *c, struct s3_op *op, uint64_t after_ns)
{
	struct request *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	*r = (struct request){ .next = requests, .place = &requests, .client = c, .op = op };
	if (r->next)
		r->next->place = &r->next;
	requests = r;
	bucket.in_flight++;
	timer_set(&r->start, c->node, after_ns, start);
}

/* As in s3_client.c. */
static void note_skew(struct client *c, const struct s3_op *op)
{
	time_t now = time(NULL), took = (time_t)((clock_ns() - op->began_ns) / NS_PER_S) + 1;
	int64_t skew = s3_skew_of(op->date, now, took);

	if (skew || took <= 2)
		c->shared.skew_s = llabs(skew) <= S3_SKEW_MAX_S ? skew : 0;
}

enum verdict { DONE, RETRY, GONE };

static enum verdict verdict(struct s3_op *op, int err, enum verdict verdict)
{
	op->err = err;
	return verdict;
}

static enum verdict judge_good(const struct answer *a, struct s3_op *op)
{
	char sum[CHECKSUM_LENGTH + 1];
	int err = 0;

	if (side_of(op) == S3_WRITES)
		return verdict(op, 0, DONE);
	if (a->size > op->body_max)
		return op->etag[0] = '\0', verdict(op, -EFBIG, DONE);
	text_put(&op->body, a->data, a->size);
	checksum_of(op->body.data, op->body.length, sum);
	if (op->verb == S3_LIST)
		err = s3_list_is_right(op->body.data, op->body.length, PREFIX, op->key, op->after)
		              ? 0
		              : S3_DAMAGED;
	else if (op->judge)
		err = op->judge(op);
	else if (strcmp(a->sum, sum) != 0)
		err = S3_DAMAGED;
	return verdict(op, err, err == S3_DAMAGED ? RETRY : DONE);
}

static enum verdict judge(struct client *c, const struct request *r, struct s3_op *op)
{
	const struct answer *a = &r->answer;
	int status = r->refusal ? r->refusal : a->status;

	if (r->is_lost)
		return verdict(op, S3_AWAY, GONE);
	op->date = a->date;
	op->modified = a->modified;
	op->total = a->total;
	memcpy(op->etag, a->etag, sizeof op->etag);
	if (op->date)
		note_skew(c, op);
	if (status == 200)
		return judge_good(a, op);
	if (status == 412 || status == 404 || status == 416)
		return verdict(op, status == 412 ? -EEXIST : -ENOENT, DONE);
	if (status == 507)
		return verdict(op, -ENOSPC, DONE);
	return status == 409 ? verdict(op, op->match[0] ? -EAGAIN : S3_AWAY, RETRY)
	                     : verdict(op, S3_AWAY, GONE);
}

/* Opens the breaker after failures, or closes it. */
static void note_result(struct client *c, const struct s3_op *op, unsigned weight)
{
	enum s3_side side = side_of(op);
	bool was_open = c->shared.counters.is_away[side];
	__typeof__(c->breaker[0]) *b = &c->breaker[side];

	if (!b->weight)
		b->first_ns = op->began_ns;
	b->weight = weight ? b->weight + weight : 0;
	c->shared.counters.is_away[side] =
		weight &&
		(was_open || (b->weight >= BREAKER_WEIGHT && clock_ns() - b->first_ns >= NS_PER_S));
}

static void take_answer(struct timer *t)
{
	struct request *r = CONTAINER_OF(t, struct request, answered);
	struct client *c = r->client;
	struct s3_op *op = r->op;
	enum verdict verdict = judge(c, r, op);

	if (op->err || side_of(op) == S3_WRITES)
		reset(op);
	note_result(c, op, verdict != GONE ? 0 : r->is_lost ? BREAKER_TIMEOUT : 1);
	if (verdict == DONE || op->attempts == S3_ATTEMPTS_MAX || clock_ns() >= op->end_ns ||
	    op->is_probe) {
		finish(r, op->err);
		return;
	}
	attempt(c, op, random_next(&cluster.chance) % (BACKOFF_NS << (op->attempts - 1)));
	r->op = NULL;
	end_request(r);
}

int s3_client_open(struct s3_client **out, const struct conf *conf)
{
	struct client *c = calloc(1, sizeof *c);

	(void)conf;
	if (!c)
		abort();
	c->node = cluster.current;
	c->shared.prefix_length = sizeof PREFIX - 1;
	*out = &c->shared;
	return 0;
}

/* What was sent may still be carried out. */
void s3_client_close(struct s3_client *shared)
{
	struct client *c = client_of(shared);

	for (struct request *r = requests, *next; r; r = next) {
		next = r->next;
		if (r->client != c)
			continue;
		timer_clear(&r->start);
		timer_clear(&r->answered);
		r->op = NULL;
		end_request(r);
	}
	free(c);
}

/* Nothing calls these. With them, the linker needs no other client. */
void s3_client_check_keys(struct s3_client *c)
{
	(void)c;
}

int s3_client_start(struct s3_client *c)
{
	(void)c;
	return 0;
}

void s3_client_stop(struct s3_client *c)
{
	(void)c;
}

void s3_client_submit(struct s3_client *shared, struct s3_op *op)
{
	op->err = 0;
	op->attempts = 0;
	op->etag[0] = '\0';
	op->body = (struct text){ 0 };
	text_init_growable(&op->body, op->body_max + 1);
	op->end_ns = clock_ns() + 4 * TIMEOUT_NS;
	shared->counters.in_flight++;
	attempt(client_of(shared), op, 0);
}

struct waiting {
	struct task *task;
	size_t left;
};

static void run_done(struct s3_op *op)
{
	struct waiting *w = op->arg;

	if (--w->left == 0)
		task_go(w->task);
}

void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count)
{
	struct waiting w = { .task = task_self() };

	for (size_t i = 0; i < count; i++) {
		if (!ops[i].verb)
			continue;
		ops[i].done = run_done;
		ops[i].arg = &w;
		s3_client_submit(c, &ops[i]);
		w.left++;
	}
	if (w.left)
		task_stop();
}

bool s3_is_away(const struct s3_counters *counters)
{
	return counters->is_away[S3_READS] || counters->is_away[S3_WRITES];
}

int64_t s3_client_skew(const struct s3_client *c)
{
	return c ? c->skew_s : 0;
}

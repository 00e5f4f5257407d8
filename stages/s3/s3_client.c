/* s3_client.c - operations on their way to the loop, and the life of the client. */
#include "s3_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "log/log.h"
#include "s3_address.h"
#include "s3_loop.h"

/* ---- operations ---- */

static void count_verb(struct s3_counters *counters, enum s3_verb verb)
{
	_Atomic uint64_t *const by_verb[S3_VERB_COUNT] = { NULL, &counters->gets, &counters->puts,
		                                           &counters->deletes, &counters->lists };

	atomic_fetch_add_explicit(by_verb[verb], 1, memory_order_relaxed);
}

/* Puts the operation into the inbox. Returns 0, -EBUSY or -ECANCELED. */
static int enqueue(struct s3_client *c, struct s3_op *op)
{
	int err = 0;

	pthread_mutex_lock(&c->lock);
	if (c->is_stopping)
		err = -ECANCELED;
	else if (atomic_fetch_add_explicit(&c->waiting, 1, memory_order_relaxed) >= S3_QUEUE_MAX) {
		atomic_fetch_sub_explicit(&c->waiting, 1, memory_order_relaxed);
		err = -EBUSY;
	} else {
		s3_ops_append(&c->inbox, op);
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

void s3_client_submit(struct s3_client *c, struct s3_op *op)
{
	static const uint64_t one = 1;

	op->fd = -1;
	op->err = 0;
	op->attempts = 0;
	op->etag[0] = '\0';
	op->body = (struct text){ 0 };
	s3_op_reset(op);
	op->end_ns = clock_ns() + 4 * c->target.timeout_ms * NS_PER_MS;
	count_verb(&c->counters, op->verb);
	atomic_fetch_add_explicit(&c->counters.in_flight, 1, memory_order_relaxed);
	int err = enqueue(c, op);

	if (err)
		s3_loop_finish(c, op, err);
	else if (write(c->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN)
		log_error("store: cannot wake its thread: %s", strerror(errno));
}

struct running {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t left;
};

static void run_done(struct s3_op *op)
{
	struct running *r = op->arg;

	pthread_mutex_lock(&r->lock);
	if (--r->left == 0)
		pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
}

void s3_client_run(struct s3_client *c, struct s3_op *ops, size_t count)
{
	struct running r = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count };

	for (size_t i = 0; i < count; i++) {
		ops[i].done = run_done;
		ops[i].arg = &r;
		s3_client_submit(c, &ops[i]);
	}
	pthread_mutex_lock(&r.lock);
	while (r.left > 0)
		pthread_cond_wait(&r.ended, &r.lock);
	pthread_mutex_unlock(&r.lock);
}

bool s3_client_is_away(struct s3_client *c)
{
	return atomic_load_explicit(&c->counters.is_away, memory_order_relaxed);
}

const struct s3_counters *s3_client_counters(const struct s3_client *c)
{
	return &c->counters;
}

void s3_client_count_orphans(struct s3_client *c, unsigned count)
{
	atomic_fetch_add_explicit(&c->counters.orphans, count, memory_order_relaxed);
}

void s3_client_set_secret(struct s3_client *c, const struct s3_secret *secret)
{
	pthread_mutex_lock(&c->lock);
	c->secret = *secret;
	pthread_mutex_unlock(&c->lock);
}

size_t s3_client_prefix_length(const struct s3_client *c)
{
	return strlen(c->target.prefix);
}

void s3_client_presign(struct s3_client *c, const char *key, unsigned seconds, struct text *url)
{
	char date[S3_DATE_MAX], path_data[S3_URL_MAX], query_data[4 * S3_URL_MAX];
	struct text path, query;

	text_init(&path, path_data, sizeof path_data);
	text_init(&query, query_data, sizeof query_data);
	s3_target_path(&c->target, key, &path);
	s3_date(time(NULL), date);
	pthread_mutex_lock(&c->lock);
	const struct s3_keys keys = { c->secret.id, c->secret.secret, c->secret.session,
		                      c->target.region };
	const struct s3_request request = { .method = "GET",
		                            .path = path_data,
		                            .host = c->target.host };

	s3_presign(&keys, &request, date, seconds, &query);
	pthread_mutex_unlock(&c->lock);
	text_puts(url, c->target.base);
	text_puts(url, path_data);
	text_puts(url, "?");
	text_puts(url, query_data);
	url->overflowed |= path.overflowed || query.overflowed;
}

int s3_client_start(struct s3_client *c)
{
	int err = -pthread_create(&c->thread, NULL, s3_loop_run, c);

	if (err)
		log_error("store: cannot start its thread: %s", strerror(-err));
	c->is_started = !err;
	return err;
}

void s3_client_stop(struct s3_client *c)
{
	static const uint64_t one = 1;

	if (!c->is_started)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_stopping = true;
	pthread_mutex_unlock(&c->lock);
	if (write(c->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN)
		log_error("store: cannot wake its thread: %s", strerror(errno));
	pthread_join(c->thread, NULL);
	c->is_started = false;
}

int s3_client_new(struct s3_client **out, const struct conf *conf, int directory_fd)
{
	struct s3_client *c = calloc(1, sizeof *c);
	unsigned connections = (unsigned)conf->store.s3_connections;

	*out = c;
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->wake_fd = -1;
	c->random = random_stream(clock_ns(), (uint64_t)getpid());
	int err = s3_curl_load();

	if (!err)
		err = s3_address_target(&c->target, conf);
	c->target.directory_fd = directory_fd;
	if (!err)
		err = s3_loop_open(c, connections);
	if (err)
		log_error("store: cannot make the client of %s: %s", conf->store.s3_endpoint,
		          strerror(-err));
	return err;
}

void s3_client_free(struct s3_client *c)
{
	if (!c)
		return;
	s3_client_stop(c);
	s3_loop_close(c);
	if (c->target.resolve)
		s3_curl.slist_free_all(c->target.resolve);
	explicit_bzero(&c->secret, sizeof c->secret);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

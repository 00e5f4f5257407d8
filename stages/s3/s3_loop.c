/*
 * s3_loop.c - attempts: libcurl tells which sockets to watch and when to call it again
 * (CURLMOPT_SOCKETFUNCTION, CURLMOPT_TIMERFUNCTION). The client's thread, but for open and close.
 */
#include "s3_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "log/log.h"
#include "telemetry/counter.h"

#define BACKOFF_NS (50 * NS_PER_MS) /* the longest time before the second attempt */
#define BACKOFF_MAX_NS NS_PER_S
#define PROBE_BODY_MAX 16384

/* ---- lists of operations ---- */

void s3_ops_append(struct s3_ops *list, struct s3_op *op)
{
	op->next = NULL;
	*(list->last ? &list->last->next : &list->first) = op;
	list->last = op;
	list->count++;
}

static struct s3_op *take_first(struct s3_ops *list)
{
	struct s3_op *op = list->first;

	if (!op)
		return NULL;
	list->first = op->next;
	if (!list->first)
		list->last = NULL;
	list->count--;
	return op;
}

/* ---- ends ---- */

void s3_loop_finish(struct s3_client *c, struct s3_op *op, int err)
{
	op->err = err;
	if (err == S3_AWAY || err == S3_DAMAGED)
		counter_add_shared(&c->counters.failed);
	atomic_fetch_sub_explicit(&c->counters.in_flight, 1, memory_order_relaxed);
	op->done(op); /* which may free it */
}

static bool is_probe(const struct s3_client *c, const struct s3_op *op)
{
	return op >= c->probe && op < c->probe + S3_PROBES_MAX;
}

static void on_probe(void *arg);

static void note_success(struct s3_client *c)
{
	if (!s3_breaker_succeeded(&c->breaker))
		return;
	atomic_store(&c->counters.is_away, false);
	log_notice("store: %s answers again; serving", c->target.base);
}

static void note_failure(struct s3_client *c, const struct s3_op *op, CURLcode result)
{
	unsigned weight = result == CURLE_OPERATION_TIMEDOUT ? S3_BREAKER_TIMEOUT : 1;

	if (!s3_breaker_failed(&c->breaker, weight, op->began_ns, clock_ns()))
		return;
	atomic_store(&c->counters.is_away, true);
	counter_add_shared(&c->counters.outages);
	log_error("store: %s does not answer as it should; responding 503, and trying again every "
	          "%d ms",
	          c->target.base, (int)(S3_BREAKER_PROBE_NS / NS_PER_MS));
	on_probe(c);
}

/* ---- attempts ---- */

static void set_retry_timer(struct s3_client *c)
{
	uint64_t now = clock_ns(), due = UINT64_MAX;

	for (const struct s3_op *op = c->later.first; op; op = op->next)
		due = op->due_ns < due ? op->due_ns : due;
	if (due != UINT64_MAX)
		c->has_timer_failed |=
			reactor_timer_set(&c->retry_timer, due > now ? due - now : 0) != 0;
}

/* Lets the operation wait for another attempt, or ends it. */
static void try_later(struct s3_client *c, struct s3_op *op)
{
	uint64_t now = clock_ns(), longest = BACKOFF_NS << (op->attempts - 1);

	if (op->attempts >= S3_ATTEMPTS_MAX || now >= op->end_ns || op->is_once) {
		s3_loop_finish(c, op, op->err);
		return;
	}
	longest = longest < BACKOFF_MAX_NS ? longest : BACKOFF_MAX_NS;
	op->due_ns = now + random_next(&c->random) % longest;
	counter_add_shared(&c->counters.retried);
	s3_ops_append(&c->later, op);
	set_retry_timer(c);
}

static void start(struct s3_client *c, struct s3_op *op)
{
	struct s3_transfer *t = c->idle;
	struct s3_secret secret;

	c->idle = t->next;
	op->attempts++;
	op->began_ns = clock_ns();
	pthread_mutex_lock(&c->lock);
	secret = c->secret;
	pthread_mutex_unlock(&c->lock);
	int err = s3_transfer_begin(t, op, &secret);

	explicit_bzero(&secret, sizeof secret);
	if (!err && s3_curl.multi_add_handle(c->multi, t->easy) == CURLM_OK)
		return;
	t->err = err ? err : -ENOMEM;
	s3_transfer_end(t, CURLE_OK, &c->counters);
	t->next = c->idle;
	c->idle = t;
	s3_loop_finish(c, op, op->err);
}

/* Starts what has a connection. */
static void start_ready(struct s3_client *c)
{
	struct s3_op *op;

	while (c->idle && (op = take_first(&c->ready))) {
		atomic_fetch_sub_explicit(&c->waiting, 1, memory_order_relaxed);
		if (c->breaker.is_open && !is_probe(c, op)) {
			counter_add_shared(&c->counters.refused);
			s3_loop_finish(c, op, S3_AWAY);
		} else {
			start(c, op);
		}
	}
}

static void end_transfer(struct s3_client *c, struct s3_transfer *t, CURLcode result)
{
	struct s3_op *op = t->op;

	s3_curl.multi_remove_handle(c->multi, t->easy);
	enum s3_verdict verdict = s3_transfer_end(t, result, &c->counters);

	t->next = c->idle;
	c->idle = t;
	if (verdict == S3_VERDICT_GONE)
		note_failure(c, op, result);
	else
		note_success(c);
	if (verdict == S3_VERDICT_DONE)
		s3_loop_finish(c, op, op->err);
	else
		try_later(c, op);
}

/* Ends what libcurl has ended, until there is no more. */
static void end_transfers(struct s3_client *c)
{
	CURLMsg *message;
	int left;

	while ((message = s3_curl.multi_info_read(c->multi, &left))) {
		struct s3_transfer *t = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode result = message->data.result; /* the message ends with the handle */

		s3_curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		end_transfer(c, t, result);
	}
	start_ready(c);
}

/* ---- the loop's callbacks ---- */

void s3_loop_act(struct s3_client *c, int fd, int what)
{
	int running;

	s3_curl.multi_socket_action(c->multi, fd, what, &running);
	end_transfers(c);
}

static void on_curl_timer(void *arg)
{
	s3_loop_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* Moves what is due to the operations that may start. */
static void on_retry(void *arg)
{
	struct s3_client *c = arg;
	struct s3_ops later = c->later;
	uint64_t now = clock_ns();
	struct s3_op *op;

	c->later = (struct s3_ops){ 0 };
	while ((op = take_first(&later))) {
		bool is_due = op->due_ns <= now;

		s3_ops_append(is_due ? &c->ready : &c->later, op);
		if (is_due)
			atomic_fetch_add_explicit(&c->waiting, 1, memory_order_relaxed);
	}
	set_retry_timer(c);
	start_ready(c);
}

static void on_inbox(void *arg)
{
	struct s3_client *c = arg;
	struct s3_op *op;
	uint64_t ignored;

	if (read(c->wake_fd, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
		log_error("store: cannot read an event: %s", strerror(errno));
	pthread_mutex_lock(&c->lock);
	struct s3_ops inbox = c->inbox;

	c->inbox = (struct s3_ops){ 0 };
	pthread_mutex_unlock(&c->lock);
	while ((op = take_first(&inbox)))
		s3_ops_append(&c->ready, op);
	start_ready(c);
}

/* ---- a store that is away ---- */

static void probe_done(struct s3_op *op)
{
	struct s3_client *c = op->arg;

	text_fini(&op->body);
	c->is_probing[op - c->probe] = false;
}

/* Asks the store for a list of one key. Its success ends the outage. */
static void start_probe(struct s3_client *c, unsigned i)
{
	c->probe[i] = (struct s3_op){ .verb = S3_LIST,
		                      .max = 1,
		                      .body_max = PROBE_BODY_MAX,
		                      .is_once = true,
		                      .done = probe_done,
		                      .arg = c };
	c->is_probing[i] = true;
	s3_client_submit(c, &c->probe[i]);
}

static void on_probe(void *arg)
{
	struct s3_client *c = arg;
	unsigned i = 0;

	if (!c->breaker.is_open)
		return;
	while (i < S3_PROBES_MAX && c->is_probing[i])
		i++;
	if (i < S3_PROBES_MAX)
		start_probe(c, i);
	c->has_timer_failed |= reactor_timer_set(&c->probe_timer, S3_BREAKER_PROBE_NS) != 0;
}

/* ---- the thread ---- */

static bool is_over(struct s3_client *c)
{
	pthread_mutex_lock(&c->lock);
	bool is_stopping = c->is_stopping;

	pthread_mutex_unlock(&c->lock);
	return is_stopping;
}

/* Ends all operations. */
static void cancel_all(struct s3_client *c)
{
	struct s3_ops *const list[] = { &c->inbox, &c->ready, &c->later };
	struct s3_op *op;

	for (unsigned i = 0; i < c->transfer_count; i++) {
		struct s3_transfer *t = &c->transfer[i];

		if (!(op = t->op))
			continue;
		s3_curl.multi_remove_handle(c->multi, t->easy);
		t->err = -ECANCELED;
		s3_transfer_end(t, CURLE_OK, &c->counters);
		s3_loop_finish(c, op, -ECANCELED);
	}
	for (size_t i = 0; i < COUNT_OF(list); i++)
		while ((op = take_first(list[i]))) {
			s3_op_reset(op);
			s3_loop_finish(c, op, -ECANCELED);
		}
}

void *s3_loop_run(void *arg)
{
	struct s3_client *c = arg;

	pthread_setname_np(pthread_self(), "s3");
	while (!is_over(c) && reactor_run(c->reactor, true) && !c->has_timer_failed)
		;
	if (!is_over(c)) {
		log_error("store: no memory for its event loop; no object can be read or written "
		          "until the next start");
		pthread_mutex_lock(&c->lock);
		c->is_stopping = true;
		pthread_mutex_unlock(&c->lock);
	}
	cancel_all(c);
	pool_thread_fini();
	return NULL;
}

/* ---- its parts ---- */

static int make_transfers(struct s3_client *c, unsigned count)
{
	c->transfer = calloc(count, sizeof *c->transfer);
	for (; c->transfer && c->transfer_count < count; c->transfer_count++) {
		struct s3_transfer *t = &c->transfer[c->transfer_count];

		if (s3_transfer_init(t, &c->target))
			return -ENOMEM;
		t->next = c->idle;
		c->idle = t;
	}
	return c->transfer ? 0 : -ENOMEM;
}

static int make_multi(struct s3_client *c, long connections)
{
	c->multi = s3_curl.multi_init();
	return !c->multi ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION,
	                                            s3_socket_changed) ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION,
	                                            s3_timeout_changed) ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, connections) ||
	                       s3_curl.multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
	                                            connections)
	               ? -ENOMEM
	               : 0;
}

static int make_reactor(struct s3_client *c)
{
	c->reactor = reactor_new();
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!c->reactor || c->wake_fd < 0)
		return -errno;
	int err = reactor_watch_init(&c->woken, c->reactor, c->wake_fd, false, on_inbox, c);

	if (!err)
		err = reactor_watch_on(&c->woken);
	if (!err)
		err = reactor_timer_init(&c->curl_timer, c->reactor, on_curl_timer, c);
	if (!err)
		err = reactor_timer_init(&c->retry_timer, c->reactor, on_retry, c);
	return err ? err : reactor_timer_init(&c->probe_timer, c->reactor, on_probe, c);
}

int s3_loop_open(struct s3_client *c, unsigned connections)
{
	int err = make_reactor(c);

	if (!err)
		err = make_multi(c, (long)connections);
	return err ? err : make_transfers(c, connections);
}

void s3_loop_close(struct s3_client *c)
{
	for (unsigned i = 0; i < c->transfer_count; i++)
		s3_transfer_fini(&c->transfer[i]);
	free(c->transfer);
	if (c->multi)
		s3_curl.multi_cleanup(c->multi); /* frees sockets by s3_socket_changed() */
	reactor_watch_fini(&c->woken);
	reactor_timer_fini(&c->curl_timer);
	reactor_timer_fini(&c->retry_timer);
	reactor_timer_fini(&c->probe_timer);
	reactor_free(c->reactor);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
}

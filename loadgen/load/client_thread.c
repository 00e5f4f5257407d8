/*
 * client_thread.c - runs clients on one thread with epoll.
 *
 * A client is free, active (an exchange goes on), resting (after a failed connect, before a
 * repetition, or between two polls of an image) or thinking. Active clients have equal delays, and
 * so have resting ones: appending keeps the order.
 */
#include "client_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/random.h"
#include "epoll_until.h"
#include "retry.h"
#include "verify.h"

#define EVENTS_MAX 128
#define REST_NS (100 * NS_PER_MS) /* does not hammer a server that refuses connections */

/* ---- the course of a request ---- */

static void settle(struct client_thread *t, struct client *c, enum exchange_result result);

static void make_free(struct client_thread *t, struct client *c)
{
	client_list_remove(&c->link);
	t->free_clients[t->free_count++] = c;
}

/* The request is complete; the client can have another one. */
static void release(struct client_thread *t, struct client *c, enum exchange_result result)
{
	const struct command_line *args = t->run->args;
	struct connection *connection = &c->connection;

	t->busy_count--;
	c->is_verifying = false;
	connection->served++;
	if (connection->state != CONNECTION_CLOSED &&
	    (!connection->response.keep_alive ||
	     (args->requests_per_connection > 0 &&
	      connection->served >= args->requests_per_connection)))
		connection_close(connection);
	if (result == EXCHANGE_CONNECT)
		client_list_move(&t->resting, &c->link, clock_ns() + REST_NS);
	else if (args->heeds_retry_after && connection->response.retry_after_s > 0)
		client_list_insert(&t->thinking, &c->link,
		                   clock_ns() + connection->response.retry_after_s * NS_PER_S);
	else if (args->think_ns > 0)
		client_list_insert(&t->thinking, &c->link, clock_ns() + args->think_ns);
	else
		make_free(t, c);
}

static void start_exchange(struct client_thread *t, struct client *c, const struct iovec *parts,
                           unsigned part_count, struct text *capture, uint64_t now_ns)
{
	bool is_new = c->connection.state == CONNECTION_CLOSED;

	client_list_move(&t->active, &c->link, now_ns + t->run->args->timeout_ns);
	settle(t, c, connection_request(&c->connection, parts, part_count, capture, now_ns));
	if (is_new)
		counter_add(&t->stats.opened, 1);
}

static const char *file_name(const struct client_thread *t, const struct client *c)
{
	return t->run->files->list[c->file].name;
}

static void end_verifying(struct client_thread *t, struct client *c, enum exchange_result result)
{
	const struct verify *v = c->verify;

	counter_add(&t->stats.variants, v->right);
	counter_add(&t->stats.variants_wrong, v->wrong);
	if (v->wrong > 0)
		request_stats_problem(&t->stats, "%s: %s", file_name(t, c), v->problem);
	release(t, c, result);
}

static void fetch(struct client_thread *t, struct client *c, uint64_t now_ns)
{
	const char *request = verify_request(c->verify);
	struct iovec part = { .iov_base = c->verify->request, .iov_len = strlen(request) };

	if (c->connection.state != CONNECTION_CLOSED && !c->connection.response.keep_alive)
		connection_close(&c->connection);
	start_exchange(t, c, &part, 1, &c->verify->body, now_ns);
}

static void go_on_verifying(struct client_thread *t, struct client *c, enum verify_action action)
{
	uint64_t now_ns = clock_ns();

	if (action == VERIFY_FETCH) {
		fetch(t, c, now_ns);
	} else if (action == VERIFY_WAIT &&
	           now_ns < c->ticket.intended_ns + t->run->args->timeout_ns) {
		client_list_move(&t->resting, &c->link, now_ns + REST_NS);
	} else {
		if (action == VERIFY_WAIT)
			verify_give_up(c->verify, "the image was not finished before the timeout");
		end_verifying(t, c, EXCHANGE_OK);
	}
}

static bool is_expected(const struct client_thread *t, const struct client *c)
{
	int status = c->connection.response.status;

	if (t->run->args->has_expected)
		return t->run->args->expected.has[status];
	return status / 100 == (t->run->files->list[c->file].is_broken ? 4 : 2);
}

static void count_response(struct client_thread *t, struct client *c)
{
	struct request_stats *s = &t->stats;
	const struct connection *connection = &c->connection;
	int status = connection->response.status;

	c->responses++;
	latency_add(&s->response, connection->done_ns - connection->sent_ns);
	latency_add(&s->exchange, connection->done_ns - connection->start_ns);
	if (t->run->schedule->conf.is_open)
		latency_add(&s->latency, connection->done_ns - c->ticket.intended_ns);
	counter_add(&s->statuses[status], 1);
	if (status / 100 == 2)
		counter_add(&s->input_bytes, t->run->files->list[c->file].size);
	if (!is_expected(t, c)) {
		counter_add(&s->unexpected, 1);
		request_stats_problem(s, "%s: status %d", file_name(t, c), status);
	}
	s->last_ns = connection->done_ns;
}

/* Records what failed and, for a malformed response, what was wrong with it. */
static void note_failure(struct client_thread *t, const struct client *c,
                         enum exchange_result result)
{
	const char *why = result == EXCHANGE_PARSE ? c->connection.response.problem : NULL;

	request_stats_problem(&t->stats, "%s: %s%s%s", file_name(t, c),
	                      exchange_result_name(result), why ? ": " : "", why ? why : "");
}

static void add_record(struct client_thread *t, const struct client *c, enum exchange_result result)
{
	const struct connection *connection = &c->connection;
	int status = result == EXCHANGE_OK ? connection->response.status : 0;
	struct request_record record = { .intended_ns = c->ticket.intended_ns,
		                         .start_ns = connection->start_ns,
		                         .sent_ns = connection->sent_ns,
		                         .done_ns = connection->done_ns,
		                         .file = c->file,
		                         .connection = c->index,
		                         .status = (uint16_t)status,
		                         .result = (uint16_t)result };
	const char *slash = strrchr(connection->response.location, '/');

	if (status / 100 == 2 && slash && strlen(slash + 1) < sizeof record.id)
		snprintf(record.id, sizeof record.id, "%s", slash + 1);
	request_records_add(&t->records, &record);
}

static void count_upload(struct client_thread *t, struct client *c, enum exchange_result result)
{
	struct request_stats *s = &t->stats;
	uint64_t start_ns = c->connection.start_ns;

	counter_add(&s->results[result], 1);
	if (start_ns > 0 && (s->first_ns == 0 || start_ns < s->first_ns))
		s->first_ns = start_ns;
	if (result == EXCHANGE_OK)
		count_response(t, c);
	else
		note_failure(t, c, result);
	if (t->run->args->csv_path)
		add_record(t, c, result);
}

/* Counts what a repetition tells. Returns whether the upload goes on. */
static bool repeat(struct client_thread *t, struct client *c, enum exchange_result result)
{
	struct request_stats *s = &t->stats;
	uint64_t now_ns = clock_ns();

	switch (retry_judge(c->retry, result, &c->connection.response, now_ns)) {
	case RETRY_LATE:
		counter_add(&s->late, 1);
		count_upload(t, c, result);
		break;
	case RETRY_AGAIN:
		counter_add(&s->repeated, 1);
		break;
	case RETRY_DOUBLED:
		counter_add(&s->doubled, 1);
		request_stats_problem(s, "%s: stored twice", file_name(t, c));
		release(t, c, result);
		return true;
	case RETRY_SAME:
		release(t, c, result);
		return true;
	default:
		if (result != EXCHANGE_OK || !is_expected(t, c))
			counter_add(&s->lost, 1);
		return false;
	}
	c->is_repeating = true;
	client_list_move(&t->resting, &c->link, now_ns + REST_NS);
	return true;
}

static void send_again(struct client_thread *t, struct client *c, uint64_t now_ns)
{
	c->is_repeating = false;
	if (c->connection.state != CONNECTION_CLOSED && !c->connection.response.keep_alive)
		connection_close(&c->connection);
	start_exchange(t, c, c->retry->parts, c->retry->part_count, NULL, now_ns);
}

/* Acts on the result of an exchange, unless that goes on. */
static void settle(struct client_thread *t, struct client *c, enum exchange_result result)
{
	const struct response_reader *response = &c->connection.response;

	if (result == EXCHANGE_PENDING)
		return;
	if (c->is_verifying && result == EXCHANGE_OK) {
		go_on_verifying(t, c, verify_answer(c->verify, response));
		return;
	}
	if (c->is_verifying) {
		verify_give_up(c->verify, exchange_result_name(result));
		end_verifying(t, c, result);
		return;
	}
	if (c->retry && repeat(t, c, result))
		return;
	count_upload(t, c, result);
	if (c->verify && result == EXCHANGE_OK &&
	    (response->status == 201 || response->status == 202)) {
		c->is_verifying = true;
		go_on_verifying(t, c, verify_begin(c->verify, response->status));
	} else {
		release(t, c, result);
	}
}

/* ---- taking requests ---- */

/* Adds the field that names the client: one for each connection of a closed loop, and one by chance
 * for each request of an open loop. The network is for measurements (RFC 2544). Returns the number
 * of parts. */
static unsigned add_client(const struct client_thread *t, struct client *c,
                           const struct corpus_file *file)
{
	bool is_open = t->run->schedule->conf.is_open;
	unsigned n = (unsigned)((is_open ? random_mix(c->ticket.number) : c->index) %
	                        t->run->args->clients);
	int length = snprintf(c->field, sizeof c->field, "X-Forwarded-For: 198.18.%u.%u\r\n",
	                      n >> 8, n & 255);

	return corpus_add_field(file, c->field, (size_t)length, c->parts);
}

static void upload(struct client_thread *t, struct client *c, const struct request_ticket *ticket,
                   uint64_t now_ns)
{
	const struct corpus *files = t->run->files;
	const struct corpus_file *file;

	c->ticket = *ticket;
	c->file = files->order[ticket->number % files->count];
	file = &files->list[c->file];
	t->busy_count++;
	if (c->verify)
		verify_reset(c->verify);
	if (c->retry) {
		retry_begin(c->retry, ticket->number, file, now_ns + t->run->args->retry_ns);
		send_again(t, c, now_ns);
		return;
	}
	const struct iovec *parts = file->parts;
	unsigned part_count = file->part_count;

	if (t->run->args->clients > 0) {
		part_count = add_client(t, c, file);
		parts = c->parts;
	}
	start_exchange(t, c, parts, part_count, c->verify ? &c->verify->body : NULL, now_ns);
}

/* Gives requests to free clients while there are both. */
static void feed(struct client_thread *t)
{
	struct request_ticket ticket;

	while (t->free_count > 0 && !t->has_ended) {
		uint64_t now_ns = clock_ns();

		if (now_ns < t->due_ns)
			return; /* another thread may take that request, but none is due earlier */
		switch (request_schedule_take(t->run->schedule, now_ns, &ticket)) {
		case TICKET_TAKEN:
			upload(t, t->free_clients[--t->free_count], &ticket, now_ns);
			break;
		case TICKET_LATER:
			t->due_ns = ticket.intended_ns;
			break;
		default:
			t->has_ended = true;
		}
	}
}

/* ---- time ---- */

static void expire(struct client_thread *t, struct client *c, uint64_t now_ns)
{
	c->connection.done_ns = now_ns;
	connection_close(&c->connection);
	settle(t, c, EXCHANGE_TIMEOUT);
}

/* Returns the first client of the list if its time has come, otherwise NULL. */
static struct client *first_due(const struct client_link *list, uint64_t now_ns)
{
	struct client_link *first = client_list_first(list);

	return first && first->when_ns <= now_ns ? CONTAINER_OF(first, struct client, link) : NULL;
}

/* Handles the clients whose time has come. Returns the time of the next one. */
static uint64_t handle_times(struct client_thread *t)
{
	uint64_t now_ns = clock_ns(), next_ns = UINT64_MAX;
	const struct client_link *const lists[] = { &t->active, &t->thinking, &t->resting };
	struct client *c;

	while ((c = first_due(&t->active, now_ns)) != NULL)
		expire(t, c, now_ns);
	while ((c = first_due(&t->thinking, now_ns)) != NULL)
		make_free(t, c);
	while ((c = first_due(&t->resting, now_ns)) != NULL) {
		if (c->is_verifying)
			fetch(t, c, now_ns);
		else if (c->is_repeating)
			send_again(t, c, now_ns);
		else
			make_free(t, c);
	}
	feed(t);
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		const struct client_link *first = client_list_first(lists[i]);

		if (first && first->when_ns < next_ns)
			next_ns = first->when_ns;
	}
	if (t->free_count > 0 && !t->has_ended && t->due_ns < next_ns)
		next_ns = t->due_ns;
	return next_ns;
}

/* ---- the thread ---- */

static void run_clients(struct client_thread *t)
{
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		uint64_t next_ns = handle_times(t);
		int n;

		if (t->has_ended && t->busy_count == 0)
			return;
		n = epoll_until(t->epoll_fd, events, EVENTS_MAX, next_ns, &t->can_wait_exactly);
		if (n < 0 && errno != EINTR) {
			request_stats_problem(&t->stats, "epoll: %s", strerror(errno));
			t->is_failed = true;
			return;
		}
		for (int i = 0; i < n; i++) {
			struct client *c = events[i].data.ptr;

			if (!c) { /* stop_fd */
				counter_add(&t->stats.aborted, t->busy_count);
				return;
			}
			settle(t, c, connection_event(&c->connection, events[i].events));
			if (!t->run->schedule->conf.is_open)
				feed(t);
		}
	}
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void *thread_main(void *arg)
{
	struct client_thread *t = arg;
	uint64_t start_ns = clock_ns(), start_cpu_ns = thread_cpu_ns(), one = 1, wall_ns;

	/* the default slack would make each open-loop request 50 us late */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	run_clients(t);
	for (unsigned i = 0; i < t->client_count; i++)
		connection_close(&t->clients[i].connection);
	wall_ns = clock_ns() - start_ns;
	t->stats.cpu_ns = thread_cpu_ns() - start_cpu_ns;
	t->stats.busiest = wall_ns > 0 ? (double)t->stats.cpu_ns / (double)wall_ns : 0;
	if (write(t->run->done_fd, &one, sizeof one) != sizeof one)
		t->is_failed = true; /* cannot happen: the counter is far from its maximum */
	pool_thread_fini();          /* buffers of texts */
	return NULL;
}

int client_thread_start(struct client_thread *t)
{
	return -pthread_create(&t->thread, NULL, thread_main, t);
}

void client_thread_join(struct client_thread *t)
{
	pthread_join(t->thread, NULL);
}

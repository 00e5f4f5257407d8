/*
 * client_thread.c - a thread with its connections.
 *
 * A connection is free, has a request (active, or resting between two questions about an image), or
 * pauses (thinking, or resting after a failure). Waiting times of a kind are all the same, so each
 * list is in the order of its ends.
 */
#include "client_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "verify.h"

#define EVENTS_MAX 128
#define REST_NS (100 * NS_PER_MS) /* does not hammer a server that refuses connections */

/* ---- lists ---- */

static void list_init(struct list_link *list)
{
	list->next = list->prev = list;
}

static void list_remove(struct list_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

static void list_append(struct list_link *list, struct list_link *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

static struct connection *list_first(const struct list_link *list)
{
	return list->next == list ? NULL : CONTAINER_OF(list->next, struct connection, link);
}

static void enlist(struct list_link *list, struct connection *c, uint64_t when_ns)
{
	list_remove(&c->link);
	c->when_ns = when_ns;
	list_append(list, &c->link);
}

/* ---- what becomes of a request ---- */

static void settle(struct client_thread *w, struct connection *c, enum exchange_result result);

static void make_free(struct client_thread *w, struct connection *c)
{
	list_remove(&c->link);
	w->free_conns[w->free_count++] = c;
}

/* The request is over and done with, its connection may have another one. */
static void release(struct client_thread *w, struct connection *c, enum exchange_result result)
{
	const struct command_line *args = w->run->args;

	w->busy_count--;
	c->is_verifying = false;
	c->served++;
	if (c->state != CONNECTION_CLOSED &&
	    (!c->response.keep_alive ||
	     (args->requests_per_connection > 0 && c->served >= args->requests_per_connection)))
		connection_close(c);
	if (result == EXCHANGE_CONNECT)
		enlist(&w->resting, c, clock_ns() + REST_NS);
	else if (args->think_ns > 0)
		enlist(&w->thinking, c, clock_ns() + args->think_ns);
	else
		make_free(w, c);
}

static void exchange(struct client_thread *w, struct connection *c, const struct iovec *parts,
                     unsigned part_count, struct text *capture)
{
	bool is_new = c->state == CONNECTION_CLOSED;

	enlist(&w->active, c, clock_ns() + w->run->args->timeout_ns);
	settle(w, c, connection_request(c, parts, part_count, capture));
	if (is_new)
		counter_add(&w->stats.opened, 1);
}

static void end_verifying(struct client_thread *w, struct connection *c,
                          enum exchange_result result)
{
	const struct verify *v = c->verify;

	counter_add(&w->stats.variants, v->right);
	counter_add(&w->stats.variants_wrong, v->wrong);
	if (v->wrong > 0)
		request_stats_problem(&w->stats, "%s: %s", w->run->files->list[c->file].name,
		                      v->problem);
	release(w, c, result);
}

static void verify_fetch(struct client_thread *w, struct connection *c)
{
	const char *request = verify_request(c->verify);
	struct iovec part = { .iov_base = c->verify->request, .iov_len = strlen(request) };

	if (c->state != CONNECTION_CLOSED && !c->response.keep_alive)
		connection_close(c);
	exchange(w, c, &part, 1, &c->verify->body);
}

static void verify_step(struct client_thread *w, struct connection *c, enum verify_action step)
{
	uint64_t now_ns = clock_ns();

	if (step == VERIFY_FETCH) {
		verify_fetch(w, c);
	} else if (step == VERIFY_WAIT &&
	           now_ns < c->ticket.intended_ns + w->run->args->timeout_ns) {
		enlist(&w->resting, c, now_ns + REST_NS);
	} else {
		if (step == VERIFY_WAIT)
			verify_give_up(c->verify, "the image is not made in time");
		end_verifying(w, c, EXCHANGE_OK);
	}
}

static bool is_expected(const struct client_thread *w, const struct connection *c)
{
	int status = c->response.status;

	if (w->run->args->has_expected)
		return w->run->args->expected.has[status];
	return status / 100 == (w->run->files->list[c->file].is_broken ? 4 : 2);
}

static void count_response(struct client_thread *w, struct connection *c)
{
	struct request_stats *s = &w->stats;
	const struct corpus_file *file = &w->run->files->list[c->file];

	c->responses++;
	latency_add(&s->response, c->done_ns - c->sent_ns);
	latency_add(&s->exchange, c->done_ns - c->start_ns);
	if (w->run->schedule->conf.is_open)
		latency_add(&s->latency, c->done_ns - c->ticket.intended_ns);
	counter_add(&s->statuses[c->response.status], 1);
	if (c->response.status / 100 == 2)
		counter_add(&s->input_bytes, file->size);
	if (!is_expected(w, c)) {
		counter_add(&s->unexpected, 1);
		request_stats_problem(s, "%s: status %d", file->name, c->response.status);
	}
	s->last_ns = c->done_ns;
}

/* Notes a failed exchange: what failed, and what was wrong with a malformed response. */
static void note_failure(struct client_thread *w, const struct connection *c,
                         enum exchange_result result)
{
	const char *why = result == EXCHANGE_PARSE ? c->response.problem : NULL;

	request_stats_problem(&w->stats, "%s: %s%s%s", w->run->files->list[c->file].name,
	                      exchange_result_name(result), why ? ": " : "", why ? why : "");
}

/* The upload has been answered, or it failed. */
static void count_upload(struct client_thread *w, struct connection *c, enum exchange_result result)
{
	struct request_stats *s = &w->stats;

	counter_add(&s->results[result], 1);
	if (c->start_ns > 0 && (s->first_ns == 0 || c->start_ns < s->first_ns))
		s->first_ns = c->start_ns;
	if (result == EXCHANGE_OK)
		count_response(w, c);
	else
		note_failure(w, c, result);
	if (w->run->args->csv_path)
		request_records_add(
			&w->records,
			&(struct request_record){ .intended_ns = c->ticket.intended_ns,
		                                  .start_ns = c->start_ns,
		                                  .sent_ns = c->sent_ns,
		                                  .done_ns = c->done_ns,
		                                  .file = c->file,
		                                  .connection = c->index,
		                                  .result = (uint16_t)result,
		                                  .status = result == EXCHANGE_OK
		                                                    ? (uint16_t)c->response.status
		                                                    : 0 });
}

/* An exchange goes on or has ended. */
static void settle(struct client_thread *w, struct connection *c, enum exchange_result result)
{
	if (result == EXCHANGE_PENDING)
		return;
	if (c->is_verifying) {
		if (result == EXCHANGE_OK) {
			verify_step(w, c, verify_answer(c->verify, &c->response));
		} else {
			verify_give_up(c->verify, exchange_result_name(result));
			end_verifying(w, c, result);
		}
		return;
	}
	count_upload(w, c, result);
	if (c->verify && result == EXCHANGE_OK &&
	    (c->response.status == 201 || c->response.status == 202)) {
		c->is_verifying = true;
		verify_step(w, c, verify_begin(c->verify, c->response.status));
	} else {
		release(w, c, result);
	}
}

/* ---- where requests come from ---- */

static void upload(struct client_thread *w, struct connection *c,
                   const struct request_ticket *ticket)
{
	const struct corpus *files = w->run->files;
	const struct corpus_file *file;

	c->ticket = *ticket;
	c->file = files->order[ticket->number % files->count];
	file = &files->list[c->file];
	w->busy_count++;
	if (c->verify)
		verify_reset(c->verify);
	exchange(w, c, file->parts, file->part_count, c->verify ? &c->verify->body : NULL);
}

/* Gives requests to free connections as long as there are both. */
static void feed(struct client_thread *w)
{
	struct request_ticket ticket;

	while (w->free_count > 0 && !w->has_ended) {
		uint64_t now_ns = clock_ns();

		if (now_ns < w->due_ns)
			return; /* another thread may take that one, but none comes before it */
		switch (request_schedule_take(w->run->schedule, now_ns, &ticket)) {
		case TICKET_TAKEN:
			upload(w, w->free_conns[--w->free_count], &ticket);
			break;
		case TICKET_LATER:
			w->due_ns = ticket.intended_ns;
			break;
		default:
			w->has_ended = true;
		}
	}
}

/* ---- time ---- */

static void expire(struct client_thread *w, struct connection *c, uint64_t now_ns)
{
	c->done_ns = now_ns;
	connection_close(c);
	settle(w, c, EXCHANGE_TIMEOUT);
}

/* Handles what is over; returns when the next is. */
static uint64_t handle_times(struct client_thread *w)
{
	uint64_t now_ns = clock_ns(), next_ns = UINT64_MAX;
	struct list_link *const lists[] = { &w->active, &w->thinking, &w->resting };
	struct connection *c;

	while ((c = list_first(&w->active)) != NULL && c->when_ns <= now_ns)
		expire(w, c, now_ns);
	while ((c = list_first(&w->thinking)) != NULL && c->when_ns <= now_ns)
		make_free(w, c);
	while ((c = list_first(&w->resting)) != NULL && c->when_ns <= now_ns) {
		if (c->is_verifying)
			verify_fetch(w, c);
		else
			make_free(w, c);
	}
	feed(w);
	for (size_t i = 0; i < COUNT_OF(lists); i++)
		if ((c = list_first(lists[i])) != NULL && c->when_ns < next_ns)
			next_ns = c->when_ns;
	if (w->free_count > 0 && !w->has_ended && w->due_ns < next_ns)
		next_ns = w->due_ns;
	return next_ns;
}

/* Like epoll_wait, until then_ns. */
static int wait_events(struct client_thread *w, struct epoll_event *events, uint64_t then_ns)
{
	uint64_t now_ns = clock_ns(), left_ns = then_ns > now_ns ? then_ns - now_ns : 0;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
		                 .tv_nsec = (long)(left_ns % NS_PER_S) };
	int n = -1;

	if (then_ns == UINT64_MAX)
		return epoll_wait(w->epoll_fd, events, EVENTS_MAX, -1);
	if (w->can_wait_exactly) {
		n = epoll_pwait2(w->epoll_fd, events, EVENTS_MAX, &left, NULL);
		if (n >= 0 || errno != ENOSYS)
			return n;
		w->can_wait_exactly = false; /* Linux before 5.11: whole milliseconds, the last one
		                                in a busy loop */
	}
	return epoll_wait(w->epoll_fd, events, EVENTS_MAX,
	                  left_ns / NS_PER_MS > INT32_MAX ? INT32_MAX : (int)(left_ns / NS_PER_MS));
}

/* ---- the thread ---- */

static void loop(struct client_thread *w)
{
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		uint64_t next_ns = handle_times(w);
		int n;

		if (w->has_ended && w->busy_count == 0)
			return;
		n = wait_events(w, events, next_ns);
		if (n < 0 && errno != EINTR) {
			request_stats_problem(&w->stats, "epoll: %s", strerror(errno));
			w->is_failed = true;
			return;
		}
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (!c) { /* stop_fd */
				counter_add(&w->stats.aborted, w->busy_count);
				return;
			}
			settle(w, c, connection_event(c, events[i].events));
			if (!w->run->schedule->conf.is_open)
				feed(w);
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
	struct client_thread *w = arg;
	uint64_t start_ns = clock_ns(), start_cpu_ns = thread_cpu_ns(), one = 1, wall_ns;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL,
	      0UL); /* the default would make each open-loop request 50 us late */
	loop(w);
	for (unsigned i = 0; i < w->conn_count; i++)
		connection_close(&w->conns[i]);
	wall_ns = clock_ns() - start_ns;
	w->stats.cpu_ns = thread_cpu_ns() - start_cpu_ns;
	w->stats.busiest = wall_ns > 0 ? (double)w->stats.cpu_ns / (double)wall_ns : 0;
	if (write(w->run->done_fd, &one, sizeof one) != sizeof one)
		w->is_failed = true; /* cannot happen: the counter is far from its maximum */
	pool_thread_fini();          /* of texts */
	return NULL;
}

static int init_conns(struct client_thread *w, unsigned first_index)
{
	bool verify = w->run->args->verify;

	for (unsigned i = 0; i < w->conn_count; i++) {
		struct connection *c = &w->conns[i];

		*c = (struct connection){ .fd = -1,
			                  .epoll_fd = w->epoll_fd,
			                  .address = &w->run->address,
			                  .scratch = w->scratch,
			                  .index = first_index + i };
		list_init(&c->link);
		c->verify = verify ? verify_new(&w->run->args->url) : NULL;
		if (verify && !c->verify)
			return -1;
		w->free_conns[w->conn_count - 1 - i] = c;
	}
	w->free_count = w->conn_count;
	return 0;
}

struct client_thread *client_thread_new(struct client_run *run, unsigned conn_count,
                                        unsigned first_index)
{
	struct client_thread *w = calloc(1, sizeof *w);
	struct epoll_event stop = { .events = EPOLLIN, .data.ptr = NULL };

	if (!w)
		return NULL;
	w->run = run;
	w->can_wait_exactly = true;
	list_init(&w->active);
	list_init(&w->thinking);
	list_init(&w->resting);
	w->conns = calloc(conn_count, sizeof *w->conns);
	w->free_conns = calloc(conn_count, sizeof(struct connection *));
	w->scratch = malloc(CONNECTION_SCRATCH_SIZE);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->conns && w->free_conns && w->scratch && w->epoll_fd >= 0) {
		w->conn_count = conn_count;
		if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, run->stop_fd, &stop) == 0 &&
		    init_conns(w, first_index) == 0)
			return w;
	}
	client_thread_free(w);
	return NULL;
}

void client_thread_free(struct client_thread *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->conn_count; i++) {
		connection_close(&w->conns[i]);
		verify_free(w->conns[i].verify);
	}
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w->scratch);
	free(w->free_conns);
	free(w->conns);
	request_records_fini(&w->records);
	free(w);
}

int client_thread_start(struct client_thread *w)
{
	return -pthread_create(&w->thread, NULL, thread_main, w);
}

void client_thread_join(struct client_thread *w)
{
	pthread_join(w->thread, NULL);
}

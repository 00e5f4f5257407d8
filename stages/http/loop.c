/* loop.c - libevent, and the only file that knows it. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <event2/event.h>

#define DESCRIPTORS 4 /* that a loop needs at most */

static struct event_base *base_of(struct loop *loop)
{
	return (struct event_base *)(void *)loop;
}

/* libevent ends the process if it finds no descriptor for a loop: so it is asked for one only if
 * there are some, and if somebody else takes them just then, it is left by this way. What it has
 * until then is lost: some memory, and perhaps one descriptor. */
static _Thread_local jmp_buf *way_out;

static void on_fatal(int err)
{
	(void)err;
	if (way_out)
		longjmp(*way_out, 1);
}

static void set_fatal(void)
{
	event_set_fatal_callback(on_fatal);
}

static struct event_base *base_new(const struct event_config *config)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	jmp_buf here;

	pthread_once(&once, set_fatal);
	if (setjmp(here)) {
		way_out = NULL;
		return NULL;
	}
	way_out = &here;
	struct event_base *base = event_base_new_with_config(config);

	way_out = NULL;
	return base;
}

static bool are_descriptors_left(void)
{
	int fd[DESCRIPTORS], count = 0;

	while (count < DESCRIPTORS && (fd[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
		count++;
	for (int i = 0; i < count; i++)
		close(fd[i]);
	return count == DESCRIPTORS;
}

struct loop *loop_new(void)
{
	struct event_config *config;
	struct event_base *base = NULL;

	if (!are_descriptors_left())
		return NULL;
	config = event_config_new();
	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = base_new(config);
	if (config)
		event_config_free(config);
	if (!base)
		errno = ENOMEM;
	return (struct loop *)(void *)base;
}

void loop_free(struct loop *loop)
{
	if (loop)
		event_base_free(base_of(loop));
}

bool loop_run(struct loop *loop, bool may_block)
{
	/* ONCE in both cases: without it, NONBLOCK does not return as long as anything is readable,
	 * and the wake descriptor is only read empty by our caller. */
	return event_base_loop(base_of(loop),
	                       may_block ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK) >= 0;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct loop_watch *w = arg;

	(void)fd;
	(void)what;
	w->ready(w->arg);
}

int loop_watch_init(struct loop_watch *w, struct loop *loop, int fd, bool for_writing,
                    void (*ready)(void *arg), void *arg)
{
	*w = (struct loop_watch){ .ready = ready, .arg = arg };
	w->handle =
		event_new(base_of(loop), fd,
	                  (short)((for_writing ? EV_WRITE : EV_READ) | EV_PERSIST), on_ready, w);
	return w->handle ? 0 : -ENOMEM;
}

void loop_watch_fini(struct loop_watch *w)
{
	if (w->handle)
		event_free(w->handle);
	w->handle = NULL;
}

int loop_watch_on(struct loop_watch *w)
{
	if (w->is_on)
		return 0;
	if (event_add(w->handle, NULL))
		return -ENOMEM;
	w->is_on = true;
	return 0;
}

void loop_watch_off(struct loop_watch *w)
{
	if (w->is_on)
		event_del(w->handle);
	w->is_on = false;
}

static void on_fired(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;

	(void)fd;
	(void)what;
	t->fired(t->arg);
}

int loop_timer_init(struct loop_timer *t, struct loop *loop, void (*fired)(void *arg), void *arg)
{
	*t = (struct loop_timer){ .fired = fired, .arg = arg };
	t->handle = evtimer_new(base_of(loop), on_fired, t);
	return t->handle ? 0 : -ENOMEM;
}

void loop_timer_fini(struct loop_timer *t)
{
	if (t->handle)
		event_free(t->handle);
	t->handle = NULL;
}

int loop_timer_set(struct loop_timer *t, uint64_t delay_ns)
{
	/* Rounded up, so that a deadline has passed when it fires. */
	uint64_t delay_us = delay_ns / 1000 + 1;
	const struct timeval delay = { .tv_sec = (time_t)(delay_us / 1000000),
		                       .tv_usec = (suseconds_t)(delay_us % 1000000) };

	return evtimer_add((struct event *)t->handle, &delay) ? -ENOMEM : 0;
}

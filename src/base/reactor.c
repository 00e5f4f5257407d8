/* reactor.c - the only file that includes libevent. Each reactor is used by one thread. */
#include "reactor.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <event2/event.h>

#define DESCRIPTORS 4 /* upper bound of what a reactor opens */

static struct event_base *base_of(struct reactor *r)
{
	return (struct event_base *)(void *)r;
}

/* libevent ends the process if it cannot open a descriptor for an event base. So base_new() is
 * called only if descriptors are free. If another thread takes them in between, libevent's fatal
 * callback jumps here, and what libevent holds by then leaks: some memory, and perhaps one
 * descriptor. */
static _Thread_local jmp_buf *escape;

static void on_fatal(int err)
{
	(void)err;
	if (escape)
		longjmp(*escape, 1);
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
		escape = NULL;
		return NULL;
	}
	escape = &here;
	struct event_base *base = event_base_new_with_config(config);

	escape = NULL;
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

struct reactor *reactor_new(void)
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
	return (struct reactor *)(void *)base;
}

void reactor_free(struct reactor *r)
{
	if (r)
		event_base_free(base_of(r));
}

bool reactor_run(struct reactor *r, bool may_block)
{
	/* ONCE in both cases: NONBLOCK alone does not return while anything is readable, and only
	 * our caller reads the wake descriptor empty. */
	return event_base_loop(base_of(r),
	                       may_block ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK) >= 0;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct reactor_watch *w = arg;

	(void)fd;
	(void)what;
	w->ready(w->arg);
}

static int init(struct reactor_watch *w, struct reactor *r, int fd, int what,
                void (*ready)(void *arg), void *arg)
{
	*w = (struct reactor_watch){ .ready = ready, .arg = arg };
	w->handle = event_new(base_of(r), fd, (short)what, on_ready, w);
	return w->handle ? 0 : -ENOMEM;
}

int reactor_watch_init(struct reactor_watch *w, struct reactor *r, int fd, bool for_writing,
                       void (*ready)(void *arg), void *arg)
{
	return init(w, r, fd, (for_writing ? EV_WRITE : EV_READ) | EV_PERSIST, ready, arg);
}

int reactor_timer_init(struct reactor_watch *w, struct reactor *r, void (*fired)(void *arg),
                       void *arg)
{
	return init(w, r, -1, 0, fired, arg);
}

void reactor_watch_fini(struct reactor_watch *w)
{
	if (w->handle)
		event_free(w->handle);
	w->handle = NULL;
}

int reactor_watch_on(struct reactor_watch *w)
{
	if (w->is_on)
		return 0;
	if (event_add(w->handle, NULL))
		return -ENOMEM;
	w->is_on = true;
	return 0;
}

void reactor_watch_off(struct reactor_watch *w)
{
	if (w->is_on)
		event_del(w->handle);
	w->is_on = false;
}

int reactor_timer_set(struct reactor_watch *w, uint64_t delay_ns)
{
	/* Rounded up, so that the deadline has passed when the timer fires. */
	uint64_t delay_us = delay_ns / 1000 + 1;
	const struct timeval delay = { .tv_sec = (time_t)(delay_us / 1000000),
		                       .tv_usec = (suseconds_t)(delay_us % 1000000) };

	return event_add(w->handle, &delay) ? -ENOMEM : 0;
}

/*
 * loop.h - one thread's event loop: descriptors that become ready, and timers. A thin layer over
 * libevent.
 *
 * The layer is there because libevent's `struct event` and ours are two things of the same name:
 * loop.c alone includes libevent, everybody else knows events as units of work. All of a loop is
 * used by one thread; libevent's locks stay off.
 */
#ifndef DARKROOM_HTTP_LOOP_H
#define DARKROOM_HTTP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_watch {
	void *handle; /* libevent's; NULL: not initialised */
	void (*ready)(void *arg);
	void *arg;
	bool is_on;
};

struct loop_timer {
	void *handle;
	void (*fired)(void *arg);
	void *arg;
};

/* NULL: it could not be made, and errno says why. */
struct loop *loop_new(void);
void loop_free(struct loop *loop); /* NULL is ignored */

/* Calls what is ready; with may_block waits until something was. False if the system refused. */
bool loop_run(struct loop *loop, bool may_block);

/* Calls ready(arg) in loop_run() as long as fd is readable (or writable) and the watch is on; it
 * starts off. 0 or -ENOMEM. The fd must stay open until loop_watch_fini(). */
int loop_watch_init(struct loop_watch *w, struct loop *loop, int fd, bool for_writing,
                    void (*ready)(void *arg), void *arg);
void loop_watch_fini(struct loop_watch *w); /* of a zeroed one, too */

/* 0 or -ENOMEM. On when on already: nothing happens; off likewise. */
int loop_watch_on(struct loop_watch *w);
void loop_watch_off(struct loop_watch *w);

/* Calls fired(arg) once, delay_ns after loop_timer_set(), which replaces an earlier setting. 0 or
 * -ENOMEM. */
int loop_timer_init(struct loop_timer *t, struct loop *loop, void (*fired)(void *arg), void *arg);
void loop_timer_fini(struct loop_timer *t); /* of a zeroed one, too */
int loop_timer_set(struct loop_timer *t, uint64_t delay_ns);

#endif

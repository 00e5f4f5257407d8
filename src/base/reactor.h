/*
 * reactor.h - one thread's event loop over libevent: descriptors that become ready, and timers.
 *
 * libevent's `struct event` and ours are different things of the same name, so only reactor.c
 * includes libevent. One thread uses a reactor; libevent's locks stay off.
 */
#ifndef DARKROOM_BASE_REACTOR_H
#define DARKROOM_BASE_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

struct reactor;

/* A descriptor, or a timer, which has none. */
struct reactor_watch {
	void *handle; /* libevent's; NULL: not initialised */
	void (*ready)(void *arg);
	void *arg;
	bool is_on; /* of a descriptor */
};

/* Returns NULL and sets errno on failure. */
struct reactor *reactor_new(void);
void reactor_free(struct reactor *r); /* NULL is ignored */

/* Calls the callbacks of what is ready; with may_block it first waits until something is. Returns
 * false if the system refused to wait. */
bool reactor_run(struct reactor *r, bool may_block);

/* Makes a watch that is off. While it is on, reactor_run() calls ready(arg) whenever fd is readable
 * (or writable). fd must stay open until reactor_watch_fini(). Returns 0 or -ENOMEM. */
int reactor_watch_init(struct reactor_watch *w, struct reactor *r, int fd, bool for_writing,
                       void (*ready)(void *arg), void *arg);
void reactor_watch_fini(struct reactor_watch *w); /* also of a timer; a zeroed one is ignored */

/* Turn a watch on or off; no effect if it is so already. Returns 0 or -ENOMEM. */
int reactor_watch_on(struct reactor_watch *w);
void reactor_watch_off(struct reactor_watch *w);

/* Makes a timer. reactor_timer_set() has fired(arg) called once, delay_ns later, and replaces an
 * earlier setting. Return 0 or -ENOMEM. */
int reactor_timer_init(struct reactor_watch *w, struct reactor *r, void (*fired)(void *arg),
                       void *arg);
int reactor_timer_set(struct reactor_watch *w, uint64_t delay_ns);

#endif

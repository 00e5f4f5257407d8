/* trace_slot.c - one place for a client that asks for a trace. */
#include "trace_slot.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum state { SLOT_FREE, SLOT_FILLING, SLOT_ASKED, SLOT_ON };

unsigned trace_slot_read(struct slice query)
{
	static const char name[] = "seconds=";
	size_t at = sizeof name - 1;
	unsigned seconds = 0;

	if (query.length <= at || query.length > at + 2 || memcmp(query.data, name, at) != 0)
		return 0;
	for (; at < query.length; at++) {
		if (query.data[at] < '0' || query.data[at] > '9')
			return 0;
		seconds = seconds * 10 + (unsigned)(query.data[at] - '0');
	}
	return seconds <= TRACE_SLOT_SECONDS_MAX ? seconds : 0;
}

bool trace_slot_is_on(const struct trace_slot *t)
{
	/* Relaxed: only the state matters. */
	return atomic_load_explicit(&t->state, memory_order_relaxed) != SLOT_FREE;
}

bool trace_slot_ask(struct trace_slot *t, int fd, unsigned seconds)
{
	unsigned expected = SLOT_FREE;

	/* Acquire: pairs with the main thread's release, after which it reads nothing here. */
	if (!atomic_compare_exchange_strong_explicit(&t->state, &expected, SLOT_FILLING,
	                                             memory_order_acquire, memory_order_relaxed))
		return false;
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	t->seconds = seconds;
	/* Release: the main thread sees both. */
	atomic_store_explicit(&t->state, t->fd < 0 ? SLOT_FREE : SLOT_ASKED, memory_order_release);
	return t->fd >= 0;
}

int trace_slot_take(struct trace_slot *t, bool is_on, unsigned *seconds)
{
	/* Acquire: pairs with trace_slot_ask(). */
	unsigned state = atomic_load_explicit(&t->state, memory_order_acquire),
		 noted = is_on ? SLOT_ON : SLOT_FREE;
	int fd = -1;

	if (state == SLOT_ASKED && is_on) {
		close(t->fd); /* darkroomd ctl was faster */
	} else if (state == SLOT_ASKED) {
		fd = t->fd;
		*seconds = t->seconds;
		noted = SLOT_ON;
	}
	/* Release: pairs with the acquire of trace_slot_ask(). */
	if (state == SLOT_ASKED || state == SLOT_ON)
		atomic_store_explicit(&t->state, noted, memory_order_release);
	else if (state == SLOT_FREE && is_on)
		atomic_compare_exchange_strong_explicit(&t->state, &state, SLOT_ON,
		                                        memory_order_release, memory_order_relaxed);
	return fd;
}

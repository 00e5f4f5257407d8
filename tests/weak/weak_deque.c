/*
 * weak_deque.c - sched/core/deque.c in weak memory.
 *
 * Claims: each event that was pushed is taken at most once and none is lost, whether its owner pops
 * it or a thief steals it, and what the owner wrote before the push can be read by the thief.
 * tests/weak/check compiles it with DEQUE_SIZE 2, so that slots are used again.
 */
#include <string.h>

#include "sched/core/deque.c" /* NOLINT(bugprone-suspicious-include): with atomics that can be weak */
#include "weak_explore.h"
#include "weak_memory.h"

#define EVENTS 4

struct event {
	uint64_t value;
};

static struct deque deque;
static struct event events[EVENTS];
static unsigned pushed, taken[EVENTS];

static void start(void)
{
	memset(events, 0, sizeof events);
	memset(taken, 0, sizeof taken);
	memset(&deque, 0, sizeof deque);
	pushed = 0;
	weak_share(&deque.top, sizeof deque.top, "top");
	weak_share(&deque.bottom, sizeof deque.bottom, "bottom");
	weak_share(deque.item, sizeof deque.item, "item");
	weak_share(events, sizeof events, "events");
}

static void push(unsigned i)
{
	events[i].value = i + 1;
	if (deque_try_push(&deque, &events[i]))
		pushed |= 1U << i;
}

static void take(struct event *ev)
{
	if (!ev)
		return;
	unsigned i = (unsigned)(ev - events);

	weak_expect(ev->value == i + 1, "the event is not what was pushed");
	weak_expect(++taken[i] == 1, "an event is taken twice");
}

static const char *check(void)
{
	struct event *ev;
	unsigned all = 0;

	while ((ev = deque_pop(&deque)))
		taken[ev - events]++;
	for (unsigned i = 0; i < EVENTS; i++) {
		if (taken[i] > 1)
			return "an event is taken twice";
		all |= taken[i] << i;
	}
	return all == pushed ? NULL : "an event is lost";
}

static void steal(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		take(deque_steal(&deque));
}

static void last_event(unsigned thread)
{
	if (thread > 0) {
		steal(1);
		return;
	}
	push(0);
	take(deque_pop(&deque));
	push(1);
	take(deque_pop(&deque));
}

static void two_events(unsigned thread)
{
	if (thread > 0) {
		steal(1);
		return;
	}
	push(0);
	push(1);
	take(deque_pop(&deque));
	take(deque_pop(&deque));
}

static void slots_again(unsigned thread)
{
	if (thread > 0) {
		steal(2);
		return;
	}
	for (unsigned i = 0; i < EVENTS; i++)
		push(i);
}

/* A thief stops between reading a slot and taking it, while the slot is filled again. */
static void slots_again_two_thieves(unsigned thread)
{
	if (thread > 0) {
		steal(1);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		push(i);
	take(deque_pop(&deque));
}

static const struct weak_scenario scenarios[] = {
	{ "last-event", 3, true, start, last_event, check },
	{ "two-events", 3, true, start, two_events, check },
	{ "slots-again", 2, true, start, slots_again, check },
	{ "slots-again-two-thieves", 3, true, start, slots_again_two_thieves, check },
};

int main(int argc, char **argv)
{
	return weak_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}

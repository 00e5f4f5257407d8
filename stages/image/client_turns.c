/*
 * client_turns.c - slots of clients, and a ring of the slots that may have a turn.
 *
 * No image waits for nothing. While images are kept in slots that may begin one, others are in the
 * stage's queue, and each that leaves it comes here: see release(). Images of other slots are
 * released when an image of their slot gets its memory or ends. Any thread.
 */
#include "client_turns.h"

#include <string.h>

#include "base/check.h"

/* CPU time of decoding, for images whose cost is not known yet. */
#define NS_PER_BYTE 40

/* Images that are sent back to the queue at once: enough for all threads. */
#define RELEASE_MAX 16

/* ---- the ring ---- */

static void ring_remove(struct client_turns *t, struct turn_slot *s)
{
	if (!s->next)
		return;
	s->next->previous = s->previous;
	s->previous->next = s->next;
	s->next = s->previous = NULL;
	t->ring_count--;
}

static void ring_append(struct client_turns *t, struct turn_slot *s)
{
	if (s->next || s->queued + s->kept == 0 || s->memory_waits > 0)
		return;
	s->next = &t->ring;
	s->previous = t->ring.previous;
	s->previous->next = s;
	t->ring.previous = s;
	t->ring_count++;
}

static bool has_room(const struct client_turns *t, unsigned images)
{
	return t->present < 2 || images < t->window;
}

/* Returns the slot whose turn it is, or NULL. own comes first of those served equally. */
static struct turn_slot *next_slot(struct client_turns *t, struct turn_slot *own)
{
	struct turn_slot *best = own->next && has_room(t, own->begun) ? own : NULL;

	for (struct turn_slot *s = t->ring.next; s != &t->ring; s = s->next)
		if (has_room(t, s->begun) && (!best || s->served_ns < best->served_ns))
			best = s;
	return best;
}

/* ---- a slot's images ---- */

/* An image that was kept before is the oldest. */
static void keep(struct turn_slot *s, struct turn *turn)
{
	turn->next = NULL;
	if (!s->first) {
		s->first = s->last = turn;
	} else if (turn->was_kept) {
		turn->next = s->first;
		s->first = turn;
	} else {
		s->last->next = turn;
		s->last = turn;
	}
	turn->was_kept = true;
	s->kept++;
}

static struct turn *pop(struct turn_slot *s)
{
	struct turn *turn = s->first;

	if (!turn)
		return NULL;
	s->first = turn->next;
	s->kept--;
	turn->next = NULL;
	return turn;
}

/* Takes kept images back to the queue if that is empty, or if no other client has images. */
static struct turn *release(struct client_turns *t)
{
	struct turn *list = NULL, **end = &list;
	struct turn_slot *s = t->ring.next;
	unsigned misses = 0, n = 0;

	if (t->queued > 0 && t->present > 1)
		return NULL;
	while (n < RELEASE_MAX && misses < t->ring_count) {
		struct turn *turn = has_room(t, s->begun + s->queued) ? pop(s) : NULL;

		if (turn) {
			*end = turn;
			end = &turn->next;
			s->queued++;
			t->queued++;
			n++;
		}
		misses = turn ? 0 : misses + 1;
		s = s->next == &t->ring ? t->ring.next : s->next;
	}
	return list;
}

/* ---- life ---- */

void client_turns_init(struct client_turns *t, unsigned window)
{
	memset(t, 0, sizeof *t);
	t->window = window;
	client_key_seed(&t->seed);
	t->ring.next = t->ring.previous = &t->ring;
	pthread_mutex_init(&t->lock, NULL);
}

void client_turns_fini(struct client_turns *t)
{
	assert(t->present == 0);
	pthread_mutex_destroy(&t->lock);
}

static unsigned slot_of(const struct client_turns *t, const struct client_key *client)
{
	return (unsigned)(client_key_hash(client, &t->seed) % CLIENT_TURNS_SLOTS);
}

void client_turns_add(struct client_turns *t, struct turn *turn, const struct client_key *client,
                      uint64_t bytes)
{
	*turn = (struct turn){ .slot = slot_of(t, client), .expected_ns = bytes * NS_PER_BYTE };
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[turn->slot];

	if (s->queued + s->kept + s->begun == 0) {
		t->present++;
		if (s->served_ns < t->served_ns)
			s->served_ns = t->served_ns;
	}
	s->queued++;
	t->queued++;
	ring_append(t, s);
	pthread_mutex_unlock(&t->lock);
}

struct turn *client_turns_take(struct client_turns *t, struct turn *turn, bool goes_first,
                               struct turn **resumed)
{
	struct turn_slot *own = &t->slot[turn->slot], *s;

	pthread_mutex_lock(&t->lock);
	own->queued--;
	t->queued--;
	s = next_slot(t, own);
	/* A slot's images go in the order of their arrival while some of them are kept. */
	if (!goes_first && (s != own || (own->first && !turn->was_kept))) {
		keep(own, turn);
		turn = s ? pop(s) : NULL;
	}
	if (turn) {
		s = &t->slot[turn->slot];
		s->begun++;
		if (t->served_ns < s->served_ns)
			t->served_ns = s->served_ns;
		s->served_ns += turn->expected_ns;
		ring_remove(t, s);
		ring_append(t, s);
	}
	*resumed = release(t);
	pthread_mutex_unlock(&t->lock);
	return turn;
}

void client_turns_memory_wait(struct client_turns *t, unsigned slot)
{
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[slot];

	if (++s->memory_waits > 0)
		ring_remove(t, s);
	pthread_mutex_unlock(&t->lock);
}

struct turn *client_turns_memory_granted(struct client_turns *t, unsigned slot)
{
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[slot];

	s->memory_waits--;
	ring_append(t, s);
	struct turn *list = release(t);

	pthread_mutex_unlock(&t->lock);
	return list;
}

struct turn *client_turns_ended(struct client_turns *t, const struct turn *turn, uint64_t spent_ns)
{
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[turn->slot];

	assert(s->begun > 0);
	s->begun--;
	s->served_ns += spent_ns - turn->expected_ns; /* it was charged when it began */
	t->present -= s->queued + s->kept + s->begun == 0;
	struct turn *list = release(t);

	pthread_mutex_unlock(&t->lock);
	return list;
}

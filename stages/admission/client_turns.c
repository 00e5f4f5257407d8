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
#include "base/clock.h"

/* A client may have urgent images while another has this many times as many images in flight. */
#define URGENT_FACTOR 4

/* One that has less than this part of all images in flight is one of a crowd: if it made others
 * urgent, most images would be. */
#define URGENT_PART 16

/* CPU time by which a client with urgent images may be ahead of that one. */
#define URGENT_AHEAD_NS (100 * NS_PER_MS)

/* CPU time by which all clients together may be behind the virtual time. While ten clients send
 * large JPEGs, one that comes with a small one is further behind than each of them. */
#define BEHIND_NS (600 * NS_PER_MS)

/* Clients that the virtual time counts beside those that are there. So clients that send much soon
 * are ahead of it. */
#define BEHIND_CLIENTS 4

/* CPU time of a long image, and of one that shall not wait for its end. */
#define LONG_NS (100 * NS_PER_MS)
#define SHORT_NS (25 * NS_PER_MS)

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

/* Returns whether several clients have images in flight. With direct calls, also whether they had
 * within the last second: images that have begun cannot make way when another client comes. */
static bool is_contended(const struct client_turns *t)
{
	return t->present > 1 || (t->is_direct && clock_ns() < t->contended_ns + NS_PER_S);
}

static bool has_room(const struct client_turns *t, unsigned images)
{
	return images < t->window || !is_contended(t);
}

/* Returns the service with which a client comes. Of those with no more, the first is next. */
static uint64_t least_service(const struct client_turns *t)
{
	uint64_t behind_ns = BEHIND_NS / (t->present + BEHIND_CLIENTS);

	return t->served_ns > behind_ns ? t->served_ns - behind_ns : 0;
}

/* Returns whether a has its turn before b. */
static bool precedes(const struct turn_slot *a, const struct turn_slot *b, uint64_t least_ns)
{
	uint64_t a_ns = a->served_ns > least_ns ? a->served_ns : least_ns;
	uint64_t b_ns = b->served_ns > least_ns ? b->served_ns : least_ns;

	return a_ns < b_ns || (a_ns == b_ns && a->oldest < b->oldest);
}

/* Returns the slot whose turn it is, or NULL. */
static struct turn_slot *next_slot(struct client_turns *t)
{
	struct turn_slot *best = NULL;
	uint64_t least_ns = least_service(t);

	for (struct turn_slot *s = t->ring.next; s != &t->ring; s = s->next)
		if (has_room(t, s->begun) && (!best || precedes(s, best, least_ns)))
			best = s;
	return best;
}

/* ---- a slot's images ---- */

/* An image that was kept before is the oldest. */
static void keep(struct turn_slot *s, struct turn *turn)
{
	struct turn **at = turn->was_kept || !s->first ? &s->first : &s->last->next;

	turn->next = turn->was_kept ? *at : NULL;
	*at = turn;
	if (!turn->next)
		s->last = turn;
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
	t->ring.next = t->ring.previous = &t->ring;
	pthread_mutex_init(&t->lock, NULL);
}

void client_turns_fini(struct client_turns *t)
{
	assert(t->present == 0);
	pthread_mutex_destroy(&t->lock);
}

static unsigned in_flight(const struct turn_slot *s)
{
	return s->queued + s->kept + s->begun;
}

static bool is_long(const struct turn *turn)
{
	return turn->expected_ns >= LONG_NS;
}

/* Returns whether an image that the slot has sent is urgent. The bound on the time ahead is there
 * so that many small clients together cannot starve a large one. */
static bool is_urgent(struct client_turns *t, struct turn_slot *s, const struct turn *turn)
{
	struct turn_slot *largest = t->largest;
	uint64_t served_ns = s->served_ns + in_flight(s) * turn->expected_ns;

	if (!largest || in_flight(s) >= in_flight(largest))
		t->largest = largest = s;
	if (t->long_begun > 0 && turn->expected_ns <= SHORT_NS && served_ns <= t->long_served_ns)
		return true;
	return in_flight(s) * URGENT_FACTOR <= in_flight(largest) &&
	       in_flight(largest) * URGENT_PART >= t->in_flight &&
	       served_ns <= largest->served_ns + URGENT_AHEAD_NS;
}

bool client_turns_add(struct client_turns *t, struct turn *turn, unsigned slot,
                      uint64_t expected_ns)
{
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[slot];

	*turn = (struct turn){ .slot = slot, .expected_ns = expected_ns, .number = t->added++ };

	if (in_flight(s) == 0) {
		if (t->present++ > 0)
			t->contended_ns = clock_ns();
		if (s->served_ns < least_service(t))
			s->served_ns = least_service(t);
	}
	if (s->queued + s->kept == 0)
		s->oldest = turn->number;
	s->queued++;
	t->queued++;
	t->in_flight++;
	ring_append(t, s);
	turn->is_urgent = is_urgent(t, s, turn);
	pthread_mutex_unlock(&t->lock);
	return turn->is_urgent;
}

struct turn *client_turns_take(struct client_turns *t, struct turn *turn, bool is_direct,
                               struct turn **resumed)
{
	struct turn_slot *own = &t->slot[turn->slot], *s;

	pthread_mutex_lock(&t->lock);
	t->is_direct = is_direct;
	bool goes_first =
		has_room(t, own->begun) && (turn->is_urgent || (is_direct && !is_contended(t)));

	own->queued--;
	t->queued--;
	s = next_slot(t);
	/* A slot's images go in the order of their arrival while some of them are kept. */
	if (!goes_first && (s != own || (own->first && !turn->was_kept))) {
		keep(own, turn);
		turn = s ? pop(s) : NULL;
	}
	if (turn) {
		s = &t->slot[turn->slot];
		s->begun++;
		s->oldest = s->first ? s->first->number : turn->number;
		if (t->served_ns < s->served_ns)
			t->served_ns = s->served_ns;
		s->served_ns += turn->expected_ns;
		t->long_begun += is_long(turn);
		if (is_long(turn) && t->long_served_ns < s->served_ns)
			t->long_served_ns = s->served_ns;
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

struct turn *client_turns_ended(struct client_turns *t, struct turn *turn, uint64_t spent_ns)
{
	if (turn->has_ended)
		return NULL;
	turn->has_ended = true;
	pthread_mutex_lock(&t->lock);
	struct turn_slot *s = &t->slot[turn->slot];

	assert(s->begun > 0);
	s->begun--;
	t->in_flight--;
	t->long_begun -= is_long(turn);
	s->served_ns += spent_ns - turn->expected_ns; /* it was charged when it began */
	t->served_ns += spent_ns / (t->present + BEHIND_CLIENTS);
	t->present -= in_flight(s) == 0;
	struct turn *list = release(t);

	pthread_mutex_unlock(&t->lock);
	return list;
}

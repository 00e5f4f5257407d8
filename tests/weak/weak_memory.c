/* weak_memory.c - messages, views and clocks. */
#include "weak_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weak_explore.h"

#define LOCATIONS 28
#define MESSAGES 28
#define PLAIN 64
#define STALE_MAX 3

struct view {
	uint8_t at[LOCATIONS];
	uint8_t clock[WEAK_THREADS];
};

struct message {
	uint64_t value;
	bool is_attached; /* made by a read-modify-write of the one before: nothing comes between */
	struct view view;
};

struct location {
	uintptr_t address;
	unsigned count; /* 0: not used in this execution */
	struct message message[MESSAGES];
};

/* Accesses to eight bytes of plain memory. */
struct plain {
	uintptr_t word;
	uint8_t writer, written, read[WEAK_THREADS];
};

/* What a thread knows: what it must respect, what an acquire fence would add, and what a release
 * fence has made ready for later stores. */
struct knowledge {
	struct view cur, acquired, released;
	uint8_t stale[LOCATIONS];
};

static struct location locations[LOCATIONS];
static unsigned location_count; /* numbers of addresses stay the same in all executions */
static struct knowledge threads[WEAK_THREADS];
static struct view common; /* of the seq_cst fences; its clocks are unused */
static struct plain plain[PLAIN];
static unsigned plain_count;
static bool has_clocks;

static void die(const char *what)
{
	fprintf(stderr, "weak_memory: too many %s\n", what);
	exit(2);
}

void weak_memory_reset(bool checks_races)
{
	has_clocks = checks_races;
	for (unsigned i = 0; i < location_count; i++)
		locations[i].count = 0;
	memset(threads, 0, sizeof threads);
	for (unsigned t = 0; t < WEAK_THREADS; t++) /* before that, everything has happened */
		threads[t].cur.clock[t] = threads[t].acquired.clock[t] = 1;
	memset(&common, 0, sizeof common);
	plain_count = 0;
}

static uint64_t native(uintptr_t address, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)address, size); /* little endian */
	return value;
}

static unsigned location_of(uintptr_t address, unsigned size)
{
	unsigned x = 0;

	while (x < location_count && locations[x].address != address)
		x++;
	if (x == LOCATIONS)
		die("locations");
	if (x == location_count)
		locations[location_count++].address = address;
	if (locations[x].count == 0) {
		locations[x].count = 1;
		locations[x].message[0] = (struct message){ .value = native(address, size) };
	}
	return x;
}

static void join(struct view *to, const struct view *from)
{
	uint8_t *a = (uint8_t *)to;
	const uint8_t *b = (const uint8_t *)from;

	for (size_t i = 0; i < sizeof *to; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static bool acquires(int order)
{
	return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Later accesses of the thread are not in what it has released. */
static void tick(unsigned thread)
{
	if (!has_clocks)
		return;
	struct knowledge *k = &threads[thread];

	k->cur.clock[thread]++;
	join(&k->acquired, &k->cur);
}

/* ---- places in a location's list ---- */

/* Lists the messages that the thread may read; can_modify: only those that a read-modify-write may
 * follow. The newest comes first. */
static unsigned readable(unsigned thread, unsigned x, bool can_modify, unsigned at[MESSAGES])
{
	const struct location *l = &locations[x];
	bool is_newest = thread == WEAK_FINAL || threads[thread].stale[x] >= STALE_MAX;
	unsigned first = is_newest ? l->count - 1 : threads[thread].cur.at[x], n = 0;

	for (unsigned i = l->count; i-- > first;)
		if (!can_modify || i + 1 == l->count || !l->message[i + 1].is_attached)
			at[n++] = i;
	return n;
}

static void note_age(unsigned thread, unsigned x, unsigned at)
{
	uint8_t *stale = &threads[thread].stale[x];

	*stale = at + 1 == locations[x].count ? 0 : (uint8_t)(*stale + 1);
}

/* Takes over what the message knows. */
static void see(unsigned thread, unsigned x, unsigned at, int order)
{
	struct knowledge *k = &threads[thread];
	const struct view view = locations[x].message[at].view;

	k->cur.at[x] = (uint8_t)at;
	if (acquires(order))
		join(&k->cur, &view);
	join(&k->acquired, &view);
	join(&k->acquired, &k->cur);
}

/* Adds `by` to the places from `from` on; a place that is removed becomes the first one. */
static void move_view(struct view *v, unsigned x, unsigned from, int by)
{
	int at = v->at[x];

	if (at >= (int)from)
		v->at[x] = (uint8_t)(at + by > 0 ? at + by : 0);
}

static void move_views(unsigned x, unsigned from, int by)
{
	for (unsigned t = 0; t < WEAK_THREADS; t++) {
		move_view(&threads[t].cur, x, from, by);
		move_view(&threads[t].acquired, x, from, by);
		move_view(&threads[t].released, x, from, by);
	}
	move_view(&common, x, from, by);
	for (unsigned i = 0; i < location_count; i++)
		for (unsigned m = 0; m < locations[i].count; m++)
			move_view(&locations[i].message[m].view, x, from, by);
}

static void insert(unsigned thread, unsigned x, unsigned at, uint64_t value, int order,
                   const struct view *before)
{
	struct location *l = &locations[x];

	if (l->count == MESSAGES)
		die("messages");
	if (at < l->count)
		move_views(x, at, 1);
	memmove(&l->message[at + 1], &l->message[at], (l->count - at) * sizeof l->message[0]);
	l->count++;
	struct message *m = &l->message[at];

	*m = (struct message){ .value = value, .is_attached = before != NULL };
	if (before)
		m->view = *before;
	if (thread == WEAK_FINAL)
		return;
	struct knowledge *k = &threads[thread];

	k->cur.at[x] = (uint8_t)at;
	join(&m->view, releases(order) ? &k->cur : &k->released);
	m->view.at[x] = (uint8_t)at;
	join(&k->acquired, &k->cur);
	if (releases(order))
		tick(thread);
}

/* ---- operations ---- */

uint64_t weak_load(unsigned thread, uintptr_t address, unsigned size, int order)
{
	unsigned x = location_of(address, size), at[MESSAGES] = { 0 };
	unsigned i = at[weak_choose(readable(thread, x, false, at))];

	if (thread != WEAK_FINAL) {
		note_age(thread, x, i);
		see(thread, x, i, order);
	}
	return locations[x].message[i].value;
}

void weak_store(unsigned thread, uintptr_t address, unsigned size, uint64_t value, int order)
{
	unsigned x = location_of(address, size), at[MESSAGES] = { 0 };
	unsigned stale = thread == WEAK_FINAL ? 0 : threads[thread].stale[x];

	if (thread != WEAK_FINAL)
		threads[thread].stale[x] = 0; /* a store may go anywhere behind the view */
	unsigned i = at[weak_choose(readable(thread, x, true, at))];

	if (thread != WEAK_FINAL)
		threads[thread].stale[x] = (uint8_t)stale;
	insert(thread, x, i + 1, value, order, NULL);
}

static void replace(unsigned thread, unsigned x, unsigned i, uint64_t value, int order)
{
	if (thread != WEAK_FINAL)
		see(thread, x, i, order);
	const struct view before = locations[x].message[i].view;

	insert(thread, x, i + 1, value, order, &before);
}

static uint64_t changed(enum weak_change change, uint64_t old, uint64_t value)
{
	switch (change) {
	case WEAK_ADD:
		return old + value;
	case WEAK_AND:
		return old & value;
	case WEAK_OR:
		return old | value;
	default:
		return value;
	}
}

uint64_t weak_modify(unsigned thread, uintptr_t address, unsigned size, enum weak_change change,
                     uint64_t value, int order)
{
	uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
	unsigned x = location_of(address, size), at[MESSAGES] = { 0 };
	unsigned i = at[weak_choose(readable(thread, x, true, at))];
	uint64_t old = locations[x].message[i].value;

	replace(thread, x, i, changed(change, old, value) & mask, order);
	return old;
}

uint64_t weak_compare_exchange(unsigned thread, uintptr_t address, unsigned size, uint64_t expected,
                               uint64_t value, int order, int order_failed, bool *done)
{
	unsigned x = location_of(address, size), all[MESSAGES], n = 0;
	unsigned count = readable(thread, x, false, all);
	const struct location *l = &locations[x];

	for (unsigned k = 0; k < count; k++) {
		unsigned i = all[k];

		if (l->message[i].value != expected || i + 1 == l->count ||
		    !l->message[i + 1].is_attached)
			all[n++] = i;
	}
	unsigned i = all[weak_choose(n)];
	uint64_t old = l->message[i].value;

	*done = old == expected;
	if (*done) {
		replace(thread, x, i, value, order);
	} else if (thread != WEAK_FINAL) {
		note_age(thread, x, i);
		see(thread, x, i, order_failed);
	}
	return old;
}

void weak_fence(unsigned thread, int order)
{
	struct knowledge *k = &threads[thread];

	if (thread == WEAK_FINAL)
		return;
	if (acquires(order))
		k->cur = k->acquired;
	if (order == __ATOMIC_SEQ_CST) {
		/* It orders what the threads read, but makes no plain access happen before
		 * another: clocks are not exchanged. */
		for (unsigned x = 0; x < LOCATIONS; x++) {
			if (common.at[x] > k->cur.at[x])
				k->cur.at[x] = common.at[x];
			common.at[x] = k->cur.at[x];
		}
		join(&k->acquired, &k->cur);
	}
	if (releases(order)) {
		k->released = k->cur;
		tick(thread);
	}
}

bool weak_plain(unsigned thread, uintptr_t address, bool is_write)
{
	unsigned i = 0;

	if (!has_clocks)
		return true;
	while (i < plain_count && plain[i].word != address / 8)
		i++;
	if (i == PLAIN)
		die("plain words");
	if (i == plain_count)
		plain[plain_count++] = (struct plain){ .word = address / 8 };
	struct plain *p = &plain[i];
	const uint8_t *clock = threads[thread].cur.clock;

	if (p->written > clock[p->writer] && p->writer != thread)
		return false;
	if (!is_write) {
		p->read[thread] = clock[thread];
		return true;
	}
	for (unsigned t = 0; t < WEAK_THREADS; t++)
		if (t != thread && p->read[t] > clock[t])
			return false;
	p->writer = (uint8_t)thread;
	p->written = clock[thread];
	return true;
}

/* Removes the messages before the first one that an alive thread may still read. */
static void collect(unsigned x, unsigned alive)
{
	struct location *l = &locations[x];
	unsigned first = l->count - 1;

	for (unsigned t = 0; t < WEAK_THREADS; t++)
		if (alive >> t & 1 && threads[t].cur.at[x] < first)
			first = threads[t].cur.at[x];
	if (first == 0)
		return;
	l->count -= first;
	memmove(l->message, l->message + first, l->count * sizeof l->message[0]);
	l->message[0].is_attached = false;
	move_views(x, 0, -(int)first);
}

void weak_collect(unsigned alive)
{
	for (unsigned t = 0; t < WEAK_THREADS; t++)
		if (!(alive >> t & 1))
			memset(&threads[t], 0, sizeof threads[t]);
	for (unsigned x = 0; x < location_count; x++)
		if (locations[x].count > 1)
			collect(x, alive);
}

uint64_t weak_newest(uintptr_t address, unsigned size)
{
	const struct location *l = &locations[location_of(address, size)];

	return l->message[l->count - 1].value;
}

/* ---- hashes ---- */

uint64_t weak_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_bytes(uint64_t h, const void *data, size_t size)
{
	const char *bytes = data;
	uint64_t word;

	for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		h = weak_mix(h, word);
	}
	word = 0;
	memcpy(&word, bytes, size);
	return weak_mix(h, word);
}

uint64_t weak_memory_hash(uint64_t h)
{
	for (unsigned x = 0; x < location_count; x++) {
		const struct location *l = &locations[x];

		h = weak_mix(h, l->count);
		for (unsigned i = 0; i < l->count; i++) {
			h = weak_mix(h, l->message[i].value + l->message[i].is_attached);
			h = hash_bytes(h, &l->message[i].view, sizeof l->message[i].view);
		}
	}
	h = hash_bytes(h, threads, sizeof threads);
	h = hash_bytes(h, &common, sizeof common);
	/* Their order is that of the first accesses, so they are summed. */
	uint64_t sum = 0;

	for (unsigned i = 0; i < plain_count; i++) {
		uint64_t own = weak_mix(plain[i].word, plain[i].writer * 256U + plain[i].written);

		sum += hash_bytes(own, plain[i].read, sizeof plain[i].read);
	}
	return weak_mix(h, sum);
}

/*
 * test_ring.c - the ring of lines: order, bounds, several producers, and waking the consumer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "log/ring.h"

enum { PRODUCERS = 4, LINES_EACH = 20000 };

static bool put(struct ring *r, enum line_kind kind, const char *line, size_t length, size_t spare)
{
	bool is_awaited;

	return ring_put(r, kind, line, length, spare, &is_awaited);
}

/* Appends all lines to the text and releases them. Returns their number. */
static unsigned take_all(struct ring *r, char *to, size_t size)
{
	uint64_t position = atomic_load(&r->tail);
	struct line line;
	unsigned n = 0;

	to[0] = '\0';
	for (; ring_next(r, &position, &line); n++)
		snprintf(to + strlen(to), size - strlen(to), "%.*s", (int)line.length, line.data);
	ring_release(r, position);
	return n;
}

/* With lines of all lengths the end of the circle is reached in every way. */
static void lines_come_out_as_they_went_in(void **state)
{
	static char line[32], all[256];
	struct ring r;

	(void)state;
	assert_int_equal(ring_init(&r, 64), 0);
	assert_int_equal(take_all(&r, all, sizeof all), 0);
	memset(line, 'x', sizeof line);
	for (size_t i = 0; i < 1000; i++) {
		size_t length = 1 + i % 24;

		line[0] = (char)('a' + i % 26);
		assert_true(put(&r, LINE_MESSAGE, line, length, 0));
		assert_int_equal(take_all(&r, all, sizeof all), 1);
		assert_int_equal(strlen(all), length);
		assert_memory_equal(all, line, length);
		assert_int_equal(atomic_load(&r.head), atomic_load(&r.tail));
	}
	ring_fini(&r);
}

static void lines_without_room_are_counted(void **state)
{
	struct ring r;
	char all[256];
	uint64_t position;
	struct line line;

	(void)state;
	assert_int_equal(ring_init(&r, 64), 0);
	for (int i = 0; i < 4; i++) /* 16 bytes each */
		assert_true(put(&r, LINE_MESSAGE, "abcdefg\n", 8, 0));
	assert_false(put(&r, LINE_MESSAGE, "h", 1, 0));
	assert_false(put(&r, LINE_ACCESS, "i", 1, 0));
	assert_int_equal(atomic_load(&r.dropped[LINE_MESSAGE]), 1);
	assert_int_equal(atomic_load(&r.dropped[LINE_ACCESS]), 1);
	/* Reading does not consume. */
	position = atomic_load(&r.tail);
	while (ring_next(&r, &position, &line))
		assert_int_equal(line.kind, LINE_MESSAGE);
	assert_int_equal(take_all(&r, all, sizeof all), 4);
	assert_string_equal(all, "abcdefg\nabcdefg\nabcdefg\nabcdefg\n");
	ring_fini(&r);
}

static void spare_room_is_left_free(void **state)
{
	struct ring r;

	(void)state;
	assert_int_equal(ring_init(&r, 64), 0);
	assert_true(put(&r, LINE_ACCESS, "abcdefg\n", 8, 32));
	assert_true(put(&r, LINE_ACCESS, "abcdefg\n", 8, 32));
	assert_false(put(&r, LINE_ACCESS, "abcdefg\n", 8, 32));
	assert_true(put(&r, LINE_MESSAGE, "abcdefg\n", 8, 0));
	ring_fini(&r);
}

static void only_the_first_line_of_an_empty_ring_is_awaited(void **state)
{
	struct ring r;
	char all[256];
	bool is_awaited;

	(void)state;
	assert_int_equal(ring_init(&r, 64), 0);
	for (int round = 0; round < 10; round++) { /* also with padding before the line */
		assert_true(ring_put(&r, LINE_MESSAGE, "0123456789\n", 11, 0, &is_awaited));
		assert_true(is_awaited);
		assert_true(ring_put(&r, LINE_MESSAGE, "a\n", 2, 0, &is_awaited));
		assert_false(is_awaited);
		assert_int_equal(take_all(&r, all, sizeof all), 2);
	}
	ring_fini(&r);
}

struct producer {
	struct ring *ring;
	sem_t *wake; /* NULL: the consumer polls */
	unsigned index;
	unsigned put;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	char line[64];

	for (unsigned i = 0; i < LINES_EACH; i++) {
		int length = snprintf(line, sizeof line, "%u %u %.*s\n", p->index, p->put,
		                      (int)(i % 40), "0123456789012345678901234567890123456789");
		bool is_awaited;

		if (ring_put(p->ring, LINE_ACCESS, line, (size_t)length, 0, &is_awaited))
			p->put++;
		else
			sched_yield();
		if (is_awaited && p->wake)
			sem_post(p->wake);
	}
	return NULL;
}

static void start(pthread_t *thread, struct producer *p, struct ring *r, sem_t *wake)
{
	assert_int_equal(ring_init(r, 4096), 0);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){ .ring = r, .wake = wake, .index = i };
		assert_int_equal(pthread_create(&thread[i], NULL, produce, &p[i]), 0);
	}
}

static uint64_t produced(const struct ring *r)
{
	return atomic_load(&r->put[LINE_ACCESS]) + atomic_load(&r->dropped[LINE_ACCESS]);
}

static void check_line(const struct line *line, unsigned *seen)
{
	unsigned index, number;
	char copy[80];

	assert_true(line->length < sizeof copy && line->data[line->length - 1] == '\n');
	memcpy(copy, line->data, line->length);
	copy[line->length] = '\0';
	assert_int_equal(sscanf(copy, "%u %u", &index, &number), 2);
	assert_true(index < PRODUCERS);
	assert_int_equal(number, seen[index]++);
}

/* The consumer is sometimes too slow. */
static void lines_of_several_producers_come_out_whole_and_in_order(void **state)
{
	static struct ring r;
	struct producer p[PRODUCERS];
	pthread_t thread[PRODUCERS];
	unsigned seen[PRODUCERS] = { 0 }, total = 0, put_count = 0;
	bool are_done = false;

	(void)state;
	start(thread, p, &r, NULL);
	while (!are_done || atomic_load(&r.tail) < atomic_load(&r.head)) {
		uint64_t position = atomic_load(&r.tail);
		struct line line;

		are_done = produced(&r) == PRODUCERS * LINES_EACH;
		for (; ring_next(&r, &position, &line); total++)
			check_line(&line, seen);
		ring_release(&r, position);
		sched_yield();
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(thread[i], NULL);
		put_count += p[i].put;
	}
	assert_int_equal(total, put_count);
	assert_int_equal(produced(&r), PRODUCERS * LINES_EACH);
	ring_fini(&r);
}

static bool has_line(const struct ring *r)
{
	uint64_t position = atomic_load(&r->tail);
	struct line line;

	return ring_next(r, &position, &line);
}

static bool consume_one(struct ring *r)
{
	uint64_t position = atomic_load(&r->tail);
	struct line line;
	bool is_found = ring_next(r, &position, &line);

	if (is_found)
		ring_release(r, position);
	return is_found;
}

static bool is_posted_within(sem_t *wake, unsigned ms)
{
	uint64_t until_ns = clock_ns() + ms * NS_PER_MS;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
		                        .tv_nsec = (long)(until_ns % NS_PER_S) };

	return sem_clockwait(wake, CLOCK_MONOTONIC, &until) == 0;
}

/* The consumer sleeps whenever it finds no line. After a lost wake-up no other comes: the tail
 * stays before a line that is ready. */
static void a_sleeping_consumer_is_always_woken(void **state)
{
	static struct ring r;
	struct producer p[PRODUCERS];
	pthread_t thread[PRODUCERS];
	sem_t wake;

	(void)state;
	assert_int_equal(sem_init(&wake, 0, 0), 0);
	start(thread, p, &r, &wake);
	while (produced(&r) < PRODUCERS * LINES_EACH ||
	       atomic_load(&r.tail) < atomic_load(&r.head)) {
		if (!consume_one(&r) && !is_posted_within(&wake, 1) && has_line(&r))
			assert_true(is_posted_within(&wake, 60000)); /* it may be on its way */
	}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(thread[i], NULL);
	sem_destroy(&wake);
	ring_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_out_as_they_went_in),
		cmocka_unit_test(lines_without_room_are_counted),
		cmocka_unit_test(spare_room_is_left_free),
		cmocka_unit_test(only_the_first_line_of_an_empty_ring_is_awaited),
		cmocka_unit_test(lines_of_several_producers_come_out_whole_and_in_order),
		cmocka_unit_test(a_sleeping_consumer_is_always_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_trace_ring.c - a ring of trace records: order, overflow, content over the end, two threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "sched/core/trace.c" /* for the ring alone */

enum { READ = 100, MANY = 300000 };

static struct trace_ring *ring;

static int make(void **state)
{
	(void)state;
	ring = ring_new();
	return ring ? 0 : -1;
}

static int unmake(void **state)
{
	(void)state;
	free(ring);
	return 0;
}

/* Puts record number n. Every fifth has a content of two cells with its number in each byte. */
static bool put_number(uint32_t n)
{
	struct trace_record record = { .type = TRACE_VISIT, .events = n };
	struct trace_record content[2];

	record.cells = n % 5 == 0 ? 2 : 0;
	memset(content, (int)(n & 0xff), sizeof content);
	return put(ring, &record, content);
}

/* Takes at most max cells. Checks that numbers rise, and their content. Returns the number of
 * records; *next is the number after the last one. */
static unsigned take_numbers(size_t max, uint32_t *next, bool may_miss)
{
	struct trace_record to[READ];
	size_t n = take(ring, to, max);
	unsigned records = 0;

	assert_true(n <= max);
	for (size_t i = 0; i < n; i += 1u + to[i].cells, records++) {
		uint32_t number = to[i].events;

		assert_true(may_miss ? number >= *next : number == *next);
		assert_int_equal(to[i].cells, number % 5 == 0 ? 2 : 0);
		for (size_t k = 0; k < to[i].cells * sizeof *to; k++)
			assert_int_equal(((unsigned char *)&to[i + 1])[k], number & 0xff);
		*next = number + 1;
	}
	return records;
}

static void records_come_out_in_order_with_their_content(void **state)
{
	uint32_t next = 0, put_next = 0;

	(void)state;
	while (next < 3 * TRACE_RING_CELLS) {
		for (unsigned i = 0; i < 29; i++)
			assert_true(put_number(put_next++));
		while (take_numbers(3 + next % (READ - 3), &next, false) || next < put_next)
			continue;
	}
	assert_int_equal(ring->lost, 0);
}

/* The newest are lost. After a reading there is room again. */
static void a_full_ring_refuses_and_counts(void **state)
{
	uint32_t next = 0, n = 0;

	(void)state;
	for (unsigned cells = 0; cells + 3 <= TRACE_RING_CELLS; cells += n % 5 ? 1 : 3, n++)
		assert_true(put_number(n));
	uint32_t last = n;

	while (put_number(n))
		last = ++n;
	for (unsigned i = 0; i < 10; i++)
		assert_false(put_number(5));
	assert_int_equal(ring->lost, 11);
	while (take_numbers(READ, &next, false))
		continue;
	assert_int_equal(next, last);
	assert_true(put_number(last));
	assert_int_equal(take_numbers(READ, &next, false), 1);
	assert_int_equal(ring->lost, 11);
}

static void a_cleared_ring_is_empty(void **state)
{
	uint32_t next = 9;

	(void)state;
	put_number(0);
	put_number(1);
	clear(ring);
	assert_int_equal(take_numbers(READ, &next, false), 0);
	put_number(9);
	assert_int_equal(take_numbers(READ, &next, false), 1);
}

static void *write_many(void *arg)
{
	(void)arg;
	for (uint32_t n = 0; n < MANY; n++)
		put_number(n);
	return NULL;
}

static void a_writer_and_a_reader_need_no_lock(void **state)
{
	pthread_t writer;
	uint32_t next = 0;
	unsigned records = 0;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, write_many, NULL), 0);
	while (records + atomic_load(&ring->lost) < MANY)
		records += take_numbers(READ, &next, true);
	pthread_join(writer, NULL);
	assert_int_equal(records + ring->lost, MANY);
	assert_true(records > TRACE_RING_CELLS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_out_in_order_with_their_content, make,
		                                unmake),
		cmocka_unit_test_setup_teardown(a_full_ring_refuses_and_counts, make, unmake),
		cmocka_unit_test_setup_teardown(a_cleared_ring_is_empty, make, unmake),
		cmocka_unit_test_setup_teardown(a_writer_and_a_reader_need_no_lock, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

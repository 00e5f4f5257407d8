/*
 * test_pool.c - buffers: reuse, homes, and bounds of what is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "support/pool_fixture.h"

#define MIB ((size_t)1 << 20)

static uint64_t kept(void)
{
	uint64_t used_bytes, kept_bytes;

	pool_usage(&used_bytes, &kept_bytes);
	return kept_bytes;
}

static uint64_t used(void)
{
	uint64_t used_bytes, kept_bytes;

	pool_usage(&used_bytes, &kept_bytes);
	return used_bytes;
}

static int release_all(void **state)
{
	(void)state;
	pool_forget();
	return 0;
}

static void buffers_have_the_requested_size_and_alignment(void **state)
{
	static const size_t size[] = { 0,    1,     4095,  4096,        4097,    5120,
		                       5121, 65536, 65537, 3 * MIB + 1, 40 * MIB };

	(void)state;
	for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
		size_t got;
		char *buffer = pool_get_sized(size[i], &got);

		assert_non_null(buffer);
		assert_int_equal((uintptr_t)buffer % 64, 0);
		assert_true(got >= size[i] && (got <= 4096 || got <= size[i] + size[i] / 4));
		memset(buffer, 1, got + POOL_SLACK); /* for the address sanitizer */
		assert_int_equal(used(), got);
		pool_put(buffer);
		assert_int_equal(used(), 0);
	}
	assert_null(pool_get(SIZE_MAX));
	assert_null(pool_get(SIZE_MAX / 2));
	pool_put(NULL);
}

static void the_buffer_freed_last_is_reused_first(void **state)
{
	void *a = pool_get(10000), *b = pool_get(10000), *other = pool_get(100000);

	(void)state;
	pool_put(a);
	pool_put(other);
	pool_put(b);
	assert_ptr_equal(pool_get(10000), b);
	assert_ptr_equal(pool_get(10000), a);
	assert_ptr_equal(pool_get(100000), other);
	pool_put(a);
	pool_put(b);
	pool_put(other);
}

static void *put_on_thread(void *buffer)
{
	pool_put(buffer);
	return NULL;
}

static void put_elsewhere(void *buffer)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, put_on_thread, buffer), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A thread that takes no buffers, or has ended, leaves its buffers to others. */
static void buffers_come_back_from_other_threads(void **state)
{
	void *a = pool_get(300000);

	(void)state;
	put_elsewhere(a);
	assert_ptr_equal(pool_get(300000), a);
	pool_put(a);
	pool_thread_fini();
	assert_ptr_equal(pool_get(300000), a);
	pool_put(a);
}

static void *take_at_home_2(void *size)
{
	pool_thread_set_home(2);
	void *buffer = pool_get(*(size_t *)size);

	memset(buffer, 1, *(size_t *)size);
	pool_thread_fini();
	return buffer;
}

static void *taken_at_home_2(size_t size)
{
	pthread_t thread;
	void *buffer;

	assert_int_equal(pthread_create(&thread, NULL, take_at_home_2, &size), 0);
	assert_int_equal(pthread_join(thread, &buffer), 0);
	return buffer;
}

static void buffers_are_reused_only_at_their_home(void **state)
{
	size_t size = MIB;
	void *own = pool_get(size), *other = taken_at_home_2(size), *third;

	(void)state;
	pool_put(other); /* goes to its home, although this thread frees it */
	assert_int_equal(kept(), used());
	third = pool_get(size);
	assert_ptr_not_equal(third, other);
	assert_ptr_equal(taken_at_home_2(size), other);
	pool_put(other);
	pool_put(own);
	pool_thread_set_home(2);
	assert_ptr_equal(pool_get(size), other); /* not the own one, which stays at home 0 */
	pool_put(other);
	pool_put(third);
	pool_thread_set_home(0);
	void *again = pool_get(size), *more = pool_get(size);

	assert_true((again == own && more == third) || (again == third && more == own));
	pool_put(again);
	pool_put(more);
}

static void kept_bytes_are_bounded(void **state)
{
	void *buffer[256];

	(void)state;
	for (unsigned i = 0; i < 256; i++)
		assert_non_null(buffer[i] = pool_get(MIB + 4096 * (i % 64)));
	assert_true(used() >= 256 * MIB);
	for (unsigned i = 0; i < 256; i++)
		pool_put(buffer[i]);
	assert_int_equal(used(), 0);
	assert_in_range(kept(), 64 * MIB, 12 * MIB + 64 * MIB);

	uint64_t before = kept();

	pool_put(pool_get(100 * MIB)); /* not kept, and it displaces no other */
	assert_int_equal(kept(), before);
}

/* Kept buffers are freed when new ones are needed. */
static void kept_buffers_make_room_for_used_ones(void **state)
{
	void *buffer[16];

	(void)state;
	pool_set_max(20 * MIB);
	for (unsigned i = 0; i < 16; i++)
		assert_non_null(buffer[i] = pool_get(MIB));
	for (unsigned i = 0; i < 16; i++)
		put_elsewhere(buffer[i]);
	assert_int_equal(kept(), 16 * MIB);
	buffer[0] = pool_get(8 * MIB);
	assert_int_equal(used() + kept(), 20 * MIB);
	buffer[1] = pool_get(16 * MIB);
	assert_int_equal(kept(), 0);
	put_elsewhere(buffer[1]);
	assert_int_equal(kept(), 0);
	pool_put(buffer[0]);
	assert_int_equal(kept(), 8 * MIB);
	pool_set_max(UINT64_MAX);
}

/* Returns the memory of a load's buffers to the kernel only when no load has needed it. */
static void a_home_keeps_what_a_load_needs(void **state)
{
	enum { MANY = 200, FEW = 100 };
	void *buffer[MANY];

	(void)state;
	pool_set_max(4 * MANY * MIB);
	for (unsigned i = 0; i < MANY; i++)
		assert_non_null(buffer[i] = pool_get(MIB));
	for (unsigned i = 0; i < MANY; i++)
		put_elsewhere(buffer[i]);
	assert_int_equal(kept(), MANY * MIB); /* a quarter of the bound */
	pool_give_back();
	assert_int_equal(kept(), MANY * MIB);
	for (unsigned i = 0; i < FEW; i++)
		assert_non_null(buffer[i] = pool_get(MIB));
	for (unsigned i = 0; i < FEW; i++)
		put_elsewhere(buffer[i]);
	pool_give_back();
	assert_int_equal(kept(), FEW * MIB);
	pool_give_back();
	assert_int_equal(kept(), 64 * MIB);
	pool_set_max(UINT64_MAX);
}

static void *take_put_and_rest(void *arg)
{
	pthread_barrier_t *barrier = arg;
	void *buffer[10];

	for (unsigned i = 0; i < 10; i++)
		buffer[i] = pool_get((100 + 17 * i) << 12);
	for (unsigned i = 0; i < 10; i++)
		pool_put(buffer[i]);
	pool_thread_rest();
	pthread_barrier_wait(barrier); /* asleep */
	pthread_barrier_wait(barrier);
	pool_thread_fini();
	return NULL;
}

/* A sleeping thread keeps 2 MiB. */
static void buffers_of_sleeping_threads_make_room(void **state)
{
	enum { SLEEPERS = 6 };
	pthread_barrier_t barrier;
	pthread_t thread[SLEEPERS];

	(void)state;
	pool_set_max(100 * MIB);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, SLEEPERS + 1), 0);
	for (unsigned i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_put_and_rest, &barrier), 0);
	pthread_barrier_wait(&barrier);
	assert_true(kept() > 2 * SLEEPERS * MIB);
	void *buffer = pool_get(96 * MIB);

	assert_true(used() + kept() <= 100 * MIB + 2 * SLEEPERS * MIB);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	pthread_barrier_destroy(&barrier);
	pool_put(buffer);
	pool_set_max(UINT64_MAX);
}

/* Not for small buffers, and only up to 64 MiB in use. */
static void larger_buffers_are_lent(void **state)
{
	void *large = pool_get(4 * MIB), *small, *held;

	(void)state;
	pool_put(large);
	small = pool_get(4096);
	assert_ptr_not_equal(small, large);
	assert_ptr_equal(pool_get(MIB), large);
	assert_int_equal(used(), 4 * MIB + 4096);
	pool_put(large);
	pool_thread_fini();
	assert_ptr_equal(pool_get(MIB), large); /* from the depot */
	pool_put(large);
	held = pool_get(60 * MIB);
	void *exact = pool_get(MIB);

	assert_ptr_not_equal(exact, large);
	assert_int_equal(used(), 64 * MIB + MIB + 4096); /* 60 MiB is not a class */
	pool_put(exact);
	pool_put(held);
	pool_put(small);
}

static void free_all(void *buffer[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put_elsewhere(buffer[i]);
}

static bool contains(void *const buffer[], unsigned count, const void *one)
{
	for (unsigned i = 0; i < count; i++)
		if (buffer[i] == one)
			return true;
	return false;
}

/* Also if buffers are freed between one that stays unfilled and the next. */
static void unfilled_buffers_have_at_most_64_mib_of_written_pages(void **state)
{
	enum { WRITTEN = 16, ROUNDS = 4, SIZE = 4 << 20 };
	void *written[WRITTEN], *unfilled[ROUNDS * WRITTEN];
	unsigned count = 0, reused = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < WRITTEN; i++)
			assert_non_null(written[i] = pool_get(SIZE));
		free_all(written, WRITTEN);
		for (unsigned i = 0; i < WRITTEN; i++, count++) {
			assert_non_null(unfilled[count] = pool_get_unfilled(SIZE));
			reused += contains(written, WRITTEN, unfilled[count]);
		}
		assert_int_equal(reused, 64 * MIB / SIZE);
	}
	assert_int_equal(used(), (size_t)count * SIZE);

	/* One that is freed makes room for the next. */
	for (unsigned i = 0; i < WRITTEN; i++)
		written[i] = pool_get(SIZE); /* all that the depot has */
	put_elsewhere(unfilled[0]);
	assert_ptr_equal(pool_get_unfilled(SIZE), unfilled[0]);
	assert_null(pool_get_unfilled(SIZE_MAX));
	free_all(written, WRITTEN);
	free_all(unfilled, count);
	assert_int_equal(used(), 0);
}

/* Half of two buffers is as much as one buffer. */
static void filled_buffers_make_room_for_unfilled_ones(void **state)
{
	enum { ALLOWED = 16, SIZE = 4 << 20 };
	void *unfilled[ALLOWED], *spare[2], *fresh[2], *reused;

	(void)state;
	for (unsigned i = 0; i < ALLOWED; i++)
		unfilled[i] = pool_get(SIZE);
	free_all(unfilled, ALLOWED);
	for (unsigned i = 0; i < ALLOWED; i++)
		unfilled[i] = pool_get_unfilled(SIZE);
	spare[0] = pool_get(SIZE);
	spare[1] = pool_get(SIZE);
	free_all(spare, 2);

	fresh[0] = pool_get_unfilled(SIZE);
	pool_filled(fresh[0], SIZE); /* its pages were new */
	pool_filled(unfilled[0], SIZE / 2);
	fresh[1] = pool_get_unfilled(SIZE);
	assert_false(contains(spare, 2, fresh[0]) || contains(spare, 2, fresh[1]));
	pool_filled(unfilled[1], SIZE / 2);
	reused = pool_get_unfilled(SIZE);
	assert_true(contains(spare, 2, reused));
	put_elsewhere(reused);
	free_all(fresh, 2);
	free_all(unfilled, ALLOWED);
	assert_int_equal(used(), 0);
}

/* A shelf that is full of one size adapts to another. */
static void sizes_in_use_displace_unused_ones(void **state)
{
	void *a[64], *b;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		assert_non_null(a[i] = pool_get(MIB));
	for (unsigned i = 0; i < 64; i++)
		pool_put(a[i]);
	b = pool_get(3 * MIB);
	pool_put(b);
	assert_ptr_equal(pool_get(3 * MIB), b);
	pool_put(b);
}

/* Runs the function in a process of its own. Returns the signal that ended it, or 0. */
static int signal_of(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO);     /* the message of the assertion */
		signal(SIGABRT, SIG_DFL); /* cmocka catches it */
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void put_once(void)
{
	void *a = pool_get(MIB);

	pool_put(a);
	a = pool_get(MIB);
	pool_put(a);
}

static void put_twice(void)
{
	void *a = pool_get(MIB);

	pool_put(a);
	pool_put(a);
}

static void put_twice_in_a_depot(void)
{
	void *a = pool_get(MIB);

	pool_put(a);
	pool_thread_fini();
	pool_put(a);
}

static void a_buffer_that_is_put_twice_is_seen(void **state)
{
	(void)state;
	assert_int_equal(signal_of(put_once), 0);
	assert_int_equal(signal_of(put_twice), SIGABRT);
	assert_int_equal(signal_of(put_twice_in_a_depot), SIGABRT);
}

static void *take_and_put(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	void *held[16] = { NULL };

	for (unsigned i = 0; i < 20000; i++) {
		unsigned at = (seed = seed * 1664525 + 1013904223) >> 28;

		pool_put(held[at]);
		held[at] = pool_get(4096 + (seed >> 8) % 500000);
		*(volatile char *)held[at] = 1;
	}
	for (unsigned i = 0; i < 16; i++)
		pool_put(held[i]);
	pool_thread_fini();
	return NULL;
}

static void threads_can_take_and_put_at_the_same_time(void **state)
{
	pthread_t thread[4];
	unsigned seed[4] = { 1, 2, 3, 4 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_and_put, &seed[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(buffers_have_the_requested_size_and_alignment,
		                          release_all),
		cmocka_unit_test_teardown(the_buffer_freed_last_is_reused_first, release_all),
		cmocka_unit_test_teardown(buffers_come_back_from_other_threads, release_all),
		cmocka_unit_test_teardown(buffers_are_reused_only_at_their_home, release_all),
		cmocka_unit_test_teardown(kept_bytes_are_bounded, release_all),
		cmocka_unit_test_teardown(kept_buffers_make_room_for_used_ones, release_all),
		cmocka_unit_test_teardown(a_home_keeps_what_a_load_needs, release_all),
		cmocka_unit_test_teardown(buffers_of_sleeping_threads_make_room, release_all),
		cmocka_unit_test_teardown(larger_buffers_are_lent, release_all),
		cmocka_unit_test_teardown(unfilled_buffers_have_at_most_64_mib_of_written_pages,
		                          release_all),
		cmocka_unit_test_teardown(filled_buffers_make_room_for_unfilled_ones, release_all),
		cmocka_unit_test_teardown(sizes_in_use_displace_unused_ones, release_all),
		cmocka_unit_test_teardown(a_buffer_that_is_put_twice_is_seen, release_all),
		cmocka_unit_test_teardown(threads_can_take_and_put_at_the_same_time, release_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

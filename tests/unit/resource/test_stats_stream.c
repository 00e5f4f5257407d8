/* test_stats_stream.c - watchers of /stats/stream share documents; slow ones miss some, and end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "resource/admin_service.h"

struct fixture {
	struct stats_stream stream;
	unsigned made;     /* documents */
	size_t size;       /* bytes of each */
	uint64_t now;      /* ns */
	int client[70][2]; /* [0] is the client's end */
	unsigned clients;
};

static struct fixture f;

static void write_document(const struct report_source *source, struct text *to)
{
	assert_ptr_equal(source, &f);
	text_printf(to, "%u", ++f.made);
	for (size_t i = 0; i < f.size; i++)
		text_puts(to, "x");
	text_puts(to, "\n");
}

static int tick(unsigned ms)
{
	f.now += ms * NS_PER_MS;
	return stats_stream_tick(&f.stream, f.now, write_document,
	                         (const struct report_source *)(const void *)&f);
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	f.now = NS_PER_S;
	return stats_stream_open(&f.stream);
}

static int teardown(void **state)
{
	(void)state;
	stats_stream_close(&f.stream);
	close(f.stream.wake_fd);
	for (unsigned i = 0; i < f.clients; i++)
		close(f.client[i][0]);
	return 0;
}

/* As the I/O thread does: its own descriptor ends at once. */
static int connect_watcher(void)
{
	int *pair = f.client[f.clients++];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	stats_stream_add(&f.stream, pair[1]);
	close(pair[1]);
	return pair[0];
}

static void expect_text(int fd, const char *expected)
{
	char data[256] = "";
	ssize_t n = recv(fd, data, sizeof data - 1, MSG_DONTWAIT);

	assert_true(n >= 0 || errno == EAGAIN);
	assert_string_equal(data, expected);
}

static bool has_ended(int fd)
{
	char data[4096];
	ssize_t n;

	while ((n = recv(fd, data, sizeof data, MSG_DONTWAIT)) > 0)
		continue;
	return n == 0;
}

static void no_document_is_made_without_watchers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(tick(1000), -1);
	int fd = connect_watcher();

	assert_true(tick(0) > 0);
	assert_int_equal(f.made, 1);
	shutdown(fd, SHUT_RDWR);
	assert_int_equal(tick(600), -1);
	assert_int_equal(atomic_load(&f.stream.count), 0);
	unsigned made = f.made;

	assert_int_equal(tick(10000), -1);
	assert_int_equal(f.made, made);
}

static void watchers_share_a_document_every_half_second(void **state)
{
	(void)state;
	int a = connect_watcher(), b = connect_watcher();

	assert_in_range(tick(0), 400, 501);
	expect_text(a, "data: 1\n\n\n");
	expect_text(b, "data: 1\n\n\n");
	tick(100);
	expect_text(a, "");
	int late = connect_watcher();

	tick(400);
	expect_text(a, "data: 2\n\n\n");
	expect_text(late, "data: 2\n\n\n");
	assert_int_equal(f.made, 2);
}

static void a_slow_watcher_misses_documents_and_then_ends(void **state)
{
	(void)state;
	f.size = 100000;
	int slow = connect_watcher(), fast = connect_watcher();
	unsigned ticks = 0;

	for (; atomic_load(&f.stream.count) == 2; ticks++) {
		assert_true(ticks < 100);
		tick(500);
		assert_false(has_ended(fast));
	}
	assert_in_range(ticks, 20, 30); /* ten seconds, and what fits into its socket */
	assert_true(has_ended(slow));
	tick(500);
	assert_false(has_ended(fast));
}

static void a_watcher_that_reads_again_gets_whole_documents(void **state)
{
	static char data[4000000];
	size_t length = 0;
	ssize_t n;

	(void)state;
	f.size = 100000;
	int fd = connect_watcher();

	for (unsigned i = 0; i < 10; i++)
		tick(500);
	for (unsigned i = 0; i < 10; i++) {
		while ((n = recv(fd, data + length, sizeof data - length, MSG_DONTWAIT)) > 0)
			length += (size_t)n;
		tick(500);
	}
	assert_true(f.made == 20);
	for (size_t at = 0; at < length;) {
		const char *end = memmem(data + at, length - at, "\n\n\n", 3);

		assert_memory_equal(data + at, "data: ", 6);
		if (!end)
			break;
		assert_in_range((size_t)(end - data) - at, 100007, 100008);
		at = (size_t)(end - data) + 3;
	}
	assert_true(length > 1000000);
}

static void watchers_are_limited(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STATS_WATCHERS_MAX; i++) {
		assert_true(stats_stream_has_room(&f.stream));
		assert_false(has_ended(connect_watcher()));
	}
	assert_false(stats_stream_has_room(&f.stream));
	assert_true(has_ended(connect_watcher()));
	tick(0);
	assert_int_equal(f.made, 1);
	shutdown(f.client[3][0], SHUT_RDWR);
	tick(500);
	assert_true(stats_stream_has_room(&f.stream));
}

static void the_end_closes_all_watchers(void **state)
{
	(void)state;
	int a = connect_watcher();

	tick(0);
	int arrived = connect_watcher();

	stats_stream_close(&f.stream);
	assert_true(has_ended(a));
	assert_true(has_ended(arrived));
	assert_int_equal(tick(500), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_document_is_made_without_watchers),
		TEST(watchers_share_a_document_every_half_second),
		TEST(a_slow_watcher_misses_documents_and_then_ends),
		TEST(a_watcher_that_reads_again_gets_whole_documents),
		TEST(watchers_are_limited),
		TEST(the_end_closes_all_watchers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

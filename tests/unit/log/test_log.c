/* test_log.c - the log's ring, its thread, and what it does when lines are too many, or the end
 * comes suddenly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/log.h"
#include "log/log_ring.h"
#include "log/log_writer.h"

/* ---- the ring ---- */

enum { PRODUCERS = 4, LINES_EACH = 20000 };

static unsigned take_all(struct log_ring *r, char *to, size_t size)
{
	uint64_t position = atomic_load(&r->tail);
	struct log_line line;
	unsigned n = 0;

	to[0] = '\0';
	for (; log_ring_next(r, &position, &line); n++)
		snprintf(to + strlen(to), size - strlen(to), "%.*s", (int)line.length, line.data);
	log_ring_let_go(r, position);
	return n;
}

/* Lines of all lengths, so that the end of the circle is met in every way. */
static void lines_come_out_as_they_went_in(void **state)
{
	static char line[32], all[256];
	struct log_ring r;

	(void)state;
	assert_int_equal(log_ring_init(&r, 64), 0);
	assert_int_equal(take_all(&r, all, sizeof all), 0);
	memset(line, 'x', sizeof line);
	for (size_t i = 0; i < 1000; i++) {
		size_t length = 1 + i % 24;

		line[0] = (char)('a' + i % 26);
		assert_true(log_ring_put(&r, LOG_KIND_MESSAGE, line, length, 0));
		assert_int_equal(take_all(&r, all, sizeof all), 1);
		assert_int_equal(strlen(all), length);
		assert_memory_equal(all, line, length);
		assert_int_equal(log_ring_used(&r), 0);
	}
	log_ring_fini(&r);
}

static void what_finds_no_room_is_counted(void **state)
{
	struct log_ring r;
	char all[256];
	uint64_t position;
	struct log_line line;

	(void)state;
	assert_int_equal(log_ring_init(&r, 64), 0);
	for (int i = 0; i < 4; i++) /* 16 bytes each */
		assert_true(log_ring_put(&r, LOG_KIND_MESSAGE, "abcdefg\n", 8, 0));
	assert_false(log_ring_put(&r, LOG_KIND_MESSAGE, "h", 1, 0));
	assert_false(log_ring_put(&r, LOG_KIND_ACCESS, "i", 1, 0));
	assert_int_equal(atomic_load(&r.dropped[LOG_KIND_MESSAGE]), 1);
	assert_int_equal(atomic_load(&r.dropped[LOG_KIND_ACCESS]), 1);
	/* What is there is not touched, however often it is looked at. */
	position = atomic_load(&r.tail);
	while (log_ring_next(&r, &position, &line))
		assert_int_equal(line.kind, LOG_KIND_MESSAGE);
	assert_int_equal(take_all(&r, all, sizeof all), 4);
	assert_string_equal(all, "abcdefg\nabcdefg\nabcdefg\nabcdefg\n");
	/* Spare room is for others. */
	assert_true(log_ring_put(&r, LOG_KIND_ACCESS, "abcdefg\n", 8, 32));
	assert_true(log_ring_put(&r, LOG_KIND_ACCESS, "abcdefg\n", 8, 32));
	assert_false(log_ring_put(&r, LOG_KIND_ACCESS, "abcdefg\n", 8, 32));
	assert_true(log_ring_put(&r, LOG_KIND_MESSAGE, "abcdefg\n", 8, 0));
	log_ring_fini(&r);
}

struct producer {
	struct log_ring *ring;
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

		if (log_ring_put(p->ring, LOG_KIND_ACCESS, line, (size_t)length, 0))
			p->put++;
		else
			sched_yield();
	}
	return NULL;
}

/* Four at once, with a consumer that is sometimes too slow: what was put comes out whole, once, and
 * each one's in its order. */
static void producers_do_not_meet(void **state)
{
	static struct log_ring r;
	struct producer p[PRODUCERS];
	pthread_t thread[PRODUCERS];
	unsigned seen[PRODUCERS] = { 0 }, total = 0, put = 0;
	bool are_done = false;

	(void)state;
	assert_int_equal(log_ring_init(&r, 4096), 0);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){ .ring = &r, .index = i };
		assert_int_equal(pthread_create(&thread[i], NULL, produce, &p[i]), 0);
	}
	while (!are_done || log_ring_used(&r) > 0) {
		uint64_t position = atomic_load(&r.tail);
		struct log_line line;
		unsigned index, number;

		are_done = atomic_load(&r.put[LOG_KIND_ACCESS]) +
		                   atomic_load(&r.dropped[LOG_KIND_ACCESS]) ==
		           PRODUCERS * LINES_EACH;
		while (log_ring_next(&r, &position, &line)) {
			char copy[80];

			assert_true(line.length < sizeof copy &&
			            line.data[line.length - 1] == '\n');
			memcpy(copy, line.data, line.length);
			copy[line.length] = '\0';
			assert_int_equal(sscanf(copy, "%u %u", &index, &number), 2);
			assert_true(index < PRODUCERS);
			assert_int_equal(number, seen[index]++);
			total++;
		}
		log_ring_let_go(&r, position);
		sched_yield();
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(thread[i], NULL);
		put += p[i].put;
	}
	assert_int_equal(total, put);
	assert_int_equal(put + atomic_load(&r.dropped[LOG_KIND_ACCESS]), PRODUCERS * LINES_EACH);
	log_ring_fini(&r);
}

/* ---- the thread ---- */

/* Standard error is a pipe meanwhile; or, with a path, a file. */
static int saved_stderr, reading = -1;

static void redirect(void)
{
	int fd[2];

	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	assert_int_equal(pipe(fd), 0);
	assert_true(dup2(fd[1], STDERR_FILENO) >= 0);
	close(fd[1]);
	reading = fd[0];
	log_set_level(LOG_LEVEL_INFO);
}

static void restore(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

/* All that was written, when nobody has the other end any more. */
static char *read_all(void)
{
	static char all[1 << 20];
	size_t length = 0;
	ssize_t n;

	while ((n = read(reading, all + length, sizeof all - 1 - length)) > 0)
		length += (size_t)n;
	all[length] = '\0';
	close(reading);
	return all;
}

static unsigned count(const char *all, const char *what)
{
	unsigned n = 0;

	for (; (all = strstr(all, what)); all++)
		n++;
	return n;
}

static void everything_is_written_in_the_end(void **state)
{
	struct log_totals t;

	(void)state;
	redirect();
	log_write(LOG_LEVEL_NOTICE, "before");
	assert_int_equal(log_start(), 0);
	log_write(LOG_LEVEL_INFO, "a line\nthat is\x1b[31m one");
	log_write(LOG_LEVEL_DEBUG, "not this");
	log_set_access(LOG_ACCESS_JSON);
	assert_int_equal(log_access_style(), LOG_ACCESS_JSON);
	log_access_write(LOG_ACCESS_JSON, "{}", 2);
	log_access_write(LOG_ACCESS_TEXT, "a=b", 3);
	log_set_level(LOG_LEVEL_WARNING);
	assert_int_equal(log_access_style(), LOG_ACCESS_NO);
	log_totals(&t);
	assert_int_equal(t.messages, 1);
	assert_int_equal(t.access, 2);
	log_stop();
	log_error("after");
	restore();
	assert_string_equal(read_all(),
	                    "<5>before\n<6>a line?that is?[31m one\n{}\n<6>a=b\n<3>after\n");
}

/* A reader that does not read costs lines, and nothing else. */
static void nobody_waits_for_the_reader(void **state)
{
	static char line[1000];
	struct log_totals t;
	char *all;

	(void)state;
	redirect();
	memset(line, 'x', sizeof line);
	log_set_access(LOG_ACCESS_TEXT);
	assert_int_equal(log_start(), 0);
	for (int i = 0; i < 2000; i++) /* the pipe takes 64 KiB, the ring 512 KiB */
		log_access_write(LOG_ACCESS_TEXT, line, sizeof line);
	log_totals(&t);
	assert_int_equal(t.access + t.access_dropped, 2000);
	assert_true(t.access_dropped >= 1000);
	log_write(LOG_LEVEL_ERROR, "a message has room even then");
	log_totals(&t);
	assert_int_equal(t.messages, 1);
	assert_int_equal(t.messages_dropped, 0);
	pid_t child = fork(); /* reads what comes, to our end */

	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO);
		close(saved_stderr);
		all = read_all();
		_exit(count(all, "xxx\n") == t.access &&
		                      count(all, "<3>a message has room even then\n") == 1 &&
		                      count(all, "<4>the log lost ") == 1
		              ? 0
		              : 1);
	}
	close(reading);
	log_stop();
	restore();
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void complain(int number)
{
	log_error("failure %d", number);
}

static void too_many_are_counted(void **state)
{
	struct log_totals t;

	(void)state;
	redirect();
	assert_int_equal(log_start(), 0);
	for (int i = 0; i < LOG_BURST + 7; i++)
		complain(i);
	log_warning("from another place");
	log_totals(&t);
	assert_int_equal(t.suppressed, 7);
	log_stop();
	restore();
	char *all = read_all();

	assert_int_equal(count(all, "<3>failure "), LOG_BURST);
	assert_int_equal(count(all, "<3>failure 9\n"), 1);
	assert_int_equal(count(all, "<4>from another place\n"), 1);
	assert_int_equal(count(all, "<3>7 more messages like \"failure %d\" were not written\n"),
	                 1);
}

/* A new window: as if the last had begun long ago. */
static void a_window_ends(void **state)
{
	struct log_limit limit = { 0 };

	(void)state;
	redirect();
	assert_int_equal(log_start(), 0);
	for (int i = 0; i < LOG_BURST; i++)
		log_write_limited(&limit, LOG_LEVEL_ERROR, "one");
	atomic_fetch_sub(&limit.window_ns, LOG_WINDOW_NS);
	for (int i = 0; i < LOG_BURST; i++)
		log_write_limited(&limit, LOG_LEVEL_ERROR, "two");
	log_stop();
	restore();
	char *all = read_all();

	assert_int_equal(count(all, "<3>one\n"), LOG_BURST);
	assert_int_equal(count(all, "<3>two\n"), LOG_BURST);
	assert_int_equal(count(all, "more"), 0);
}

static _Atomic unsigned calls;

/* Something comes up as soon as it has looked. */
static int look(bool is_last)
{
	(void)is_last;
	if (atomic_fetch_add(&calls, 1) == 0)
		log_writer_wake();
	return -1;
}

static void what_comes_up_at_bedtime_is_seen(void **state)
{
	(void)state;
	redirect();
	assert_int_equal(log_writer_start(look), 0);
	for (int i = 0; i < 1000 && atomic_load(&calls) < 2; i++)
		usleep(10000);
	unsigned seen = atomic_load(&calls);

	log_writer_stop();
	restore();
	read_all();
	assert_true(seen >= 2);
}

static size_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (size_t)st.st_size;
}

static void a_renamed_file_is_left(void **state)
{
	char directory[] = "/tmp/darkroom-test-log-XXXXXX", path[64], old[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/access.log", directory);
	snprintf(old, sizeof old, "%s/access.log.1", directory);
	redirect();
	assert_int_equal(log_access_open(directory), -EISDIR);
	assert_int_equal(log_access_open(path), 0);
	assert_int_equal(log_start(), 0);
	log_set_level(LOG_LEVEL_ERROR); /* it is not standard error */
	assert_int_equal(log_access_style(), LOG_ACCESS_TEXT);
	log_access_write(LOG_ACCESS_TEXT, "first", 5);
	log_flush();
	assert_int_equal(size_of(path), 6);
	assert_int_equal(rename(path, old), 0);
	log_access_write(LOG_ACCESS_TEXT, "second", 6);
	log_flush();
	assert_int_equal(size_of(old), 13);
	assert_int_equal(log_access_reopen(), 0);
	log_access_write(LOG_ACCESS_TEXT, "third", 5);
	log_flush();
	assert_int_equal(size_of(old), 13);
	assert_int_equal(size_of(path), 6);
	/* Cannot be opened anew: the one that there is stays. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(log_access_reopen(), -EISDIR);
	log_stop();
	restore();
	assert_int_equal(count(read_all(), "Is a directory"), 2);
	assert_int_equal(log_access_open("stderr"), 0);
	rmdir(path);
	unlink(old);
	rmdir(directory);
}

/* Only there may something stand before JSON. It is looked at once: in another process. */
static void the_journal_gets_priorities(void **state)
{
	(void)state;
	redirect();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct stat st;
		char stream[64];

		fstat(STDERR_FILENO, &st);
		snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev,
		         (uintmax_t)st.st_ino);
		setenv("JOURNAL_STREAM", stream, 1);
		if (log_start())
			_exit(1);
		log_access_write(LOG_ACCESS_JSON, "{}", 2);
		log_stop();
		_exit(0);
	}
	restore();
	assert_string_equal(read_all(), "<6>{}\n");
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What was logged a moment before is written all the same. */
static void crash(int number, int expected)
{
	redirect();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		close(reading);
		signal(number, SIG_DFL); /* as if neither cmocka nor a sanitizer were there */
		if (log_start())
			_exit(1);
		for (int i = 0; i < 100; i++)
			log_write(LOG_LEVEL_INFO, "line %d.", i);
		if (number == SIGABRT)
			abort();
		raise(number);
		_exit(2);
	}
	restore();
	int status;
	char *all = read_all();

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), expected);
	assert_int_equal(count(all, "line "), 100);
	assert_int_equal(count(all, "<6>line 99.\n"), 1);
}

static void a_crash_loses_nothing(void **state)
{
	(void)state;
	crash(SIGABRT, SIGABRT);
	crash(SIGSEGV, SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_journal_gets_priorities), /* before this process has looked */
		cmocka_unit_test(lines_come_out_as_they_went_in),
		cmocka_unit_test(what_finds_no_room_is_counted),
		cmocka_unit_test(producers_do_not_meet),
		cmocka_unit_test(everything_is_written_in_the_end),
		cmocka_unit_test(nobody_waits_for_the_reader),
		cmocka_unit_test(too_many_are_counted),
		cmocka_unit_test(a_window_ends),
		cmocka_unit_test(what_comes_up_at_bedtime_is_seen),
		cmocka_unit_test(a_renamed_file_is_left),
		cmocka_unit_test(a_crash_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

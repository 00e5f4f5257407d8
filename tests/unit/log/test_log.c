/*
 * test_log.c - lines of the log's thread: nothing is lost, no thread waits, rate limits, the access
 * file, crashes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/log.h"

/* ---- standard error is a pipe ---- */

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

/* Everything that was written, once the other end is closed. */
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

/* What was counted since the totals before. */
static struct log_totals since(struct log_totals before)
{
	struct log_totals t;

	log_totals(&t);
	return (struct log_totals){ .messages = t.messages - before.messages,
		                    .access = t.access - before.access,
		                    .messages_dropped =
		                            t.messages_dropped - before.messages_dropped,
		                    .access_dropped = t.access_dropped - before.access_dropped,
		                    .suppressed = t.suppressed - before.suppressed };
}

static unsigned count(const char *all, const char *text)
{
	unsigned n = 0;

	for (; (all = strstr(all, text)); all++)
		n++;
	return n;
}

/* ---- messages ---- */

static void all_lines_are_written_before_the_log_stops(void **state)
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

/* A reader that does not read costs lines and nothing else. */
static void no_thread_waits_for_a_slow_reader(void **state)
{
	static char line[1000];
	struct log_totals before, t;
	char *all;

	(void)state;
	redirect();
	log_totals(&before);
	memset(line, 'x', sizeof line);
	log_set_access(LOG_ACCESS_TEXT);
	assert_int_equal(log_start(), 0);
	for (int i = 0; i < 2000; i++) /* the pipe takes 64 KiB, the buffers 512 KiB */
		log_access_write(LOG_ACCESS_TEXT, line, sizeof line);
	t = since(before);
	assert_int_equal(t.access + t.access_dropped, 2000);
	assert_true(t.access_dropped >= 1000);
	log_write(LOG_LEVEL_ERROR, "a message has room even then");
	t = since(before);
	assert_int_equal(t.messages, 1);
	assert_int_equal(t.messages_dropped, 0);
	pid_t child = fork(); /* reads until this process closes its end */

	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO);
		close(saved_stderr);
		all = read_all();
		_exit(count(all, "xxx\n") == t.access &&
		                      count(all, "<3>a message has room even then\n") == 1 &&
		                      count(all, "<4>log: dropped ") == 1
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

static void messages_over_the_rate_limit_are_counted(void **state)
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
	assert_int_equal(count(all, "<3>log: suppressed 7 more messages like \"failure %d\"\n"), 1);
}

/* Moves the start of the window into the past. */
static void a_new_window_allows_a_new_burst(void **state)
{
	struct log_limit limit = { 0 };

	(void)state;
	redirect();
	assert_int_equal(log_start(), 0);
	for (int i = 0; i < LOG_BURST; i++)
		log_write_limited(&limit, LOG_LEVEL_ERROR, "one");
	limit.window_ns -= LOG_WINDOW_NS;
	for (int i = 0; i < LOG_BURST; i++)
		log_write_limited(&limit, LOG_LEVEL_ERROR, "two");
	log_stop();
	restore();
	char *all = read_all();

	assert_int_equal(count(all, "<3>one\n"), LOG_BURST);
	assert_int_equal(count(all, "<3>two\n"), LOG_BURST);
	assert_int_equal(count(all, "more"), 0);
}

/* ---- the access file ---- */

static size_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (size_t)st.st_size;
}

/* Waits until the file has the size that it is to have. */
static void wait_for_size(const char *path, size_t size)
{
	for (int i = 0; i < 5000 && size_of(path) != size; i++)
		usleep(1000);
	assert_int_equal(size_of(path), size);
}

static void a_renamed_access_file_is_reopened(void **state)
{
	char directory[] = "/tmp/darkroom-test-log-XXXXXX", path[64], old[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/access.log", directory);
	snprintf(old, sizeof old, "%s/access.log.1", directory);
	redirect();
	assert_int_equal(log_access_open(directory, ""), -EISDIR);
	assert_int_equal(log_access_open(path, ""), 0);
	assert_int_equal(log_start(), 0);
	log_set_level(LOG_LEVEL_ERROR); /* applies to standard error only */
	assert_int_equal(log_access_style(), LOG_ACCESS_TEXT);
	log_access_write(LOG_ACCESS_TEXT, "first", 5);
	wait_for_size(path, 6);
	log_error("a message"); /* leaves the file alone, and the next line of it whole */
	assert_int_equal(rename(path, old), 0);
	log_access_write(LOG_ACCESS_TEXT, "second", 6);
	wait_for_size(old, 13);
	assert_int_equal(log_access_reopen(), 0);
	log_access_write(LOG_ACCESS_TEXT, "third", 5);
	wait_for_size(path, 6);
	assert_int_equal(size_of(old), 13);
	/* If it cannot be reopened, the old file stays in use. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(log_access_reopen(), -EISDIR);
	log_stop();
	restore();
	assert_int_equal(count(read_all(), "Is a directory"), 2);
	assert_int_equal(log_access_open("stderr", ""), 0);
	rmdir(path);
	unlink(old);
	rmdir(directory);
}

/* Without the journal, nothing else would add the time. Each process decides once: so in another
 * one. */
static void lines_have_the_time_without_the_journal(void **state)
{
	(void)state;
	redirect();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		unsetenv("JOURNAL_STREAM");
		log_write(LOG_LEVEL_WARNING, "careful");
		_exit(0);
	}
	restore();
	unsigned year, month, day, hour, minute, second, ms;
	int end = 0, status;
	char *all = read_all();

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(sscanf(all, "%4u-%2u-%2u %2u:%2u:%2u.%3u warning: careful\n%n", &year,
	                        &month, &day, &hour, &minute, &second, &ms, &end),
	                 7);
	assert_int_equal(end, strlen(all));
	assert_in_range(year, 2020, 9999);
	assert_in_range(month, 1, 12);
	assert_in_range(day, 1, 31);
}

/* Only the journal gets a priority before JSON. Each process decides once: so in another one. */
static void json_lines_have_priorities_only_in_the_journal(void **state)
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

/* ---- crashes ---- */

static void crash(int number, int expected)
{
	redirect();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		close(reading);
		signal(number, SIG_DFL); /* removes the handlers of cmocka or a sanitizer */
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

static void a_crash_loses_no_line(void **state)
{
	(void)state;
	crash(SIGABRT, SIGABRT);
	crash(SIGSEGV, SIGSEGV);
}

int main(void)
{
	setenv("JOURNAL_STREAM", "0:0", 1); /* lines have priorities */
	const struct CMUnitTest tests[] = {
		/* Before this process decides: */
		cmocka_unit_test(json_lines_have_priorities_only_in_the_journal),
		cmocka_unit_test(lines_have_the_time_without_the_journal),
		cmocka_unit_test(all_lines_are_written_before_the_log_stops),
		cmocka_unit_test(no_thread_waits_for_a_slow_reader),
		cmocka_unit_test(messages_over_the_rate_limit_are_counted),
		cmocka_unit_test(a_new_window_allows_a_new_burst),
		cmocka_unit_test(a_renamed_access_file_is_reopened),
		cmocka_unit_test(a_crash_loses_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

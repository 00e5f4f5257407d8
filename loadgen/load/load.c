/*
 * load.c - darkroom-load: reads the pictures, starts the client threads and reports.
 *
 * Meanwhile the main thread waits for signals and the ends of threads. Once a second it shows the
 * progress and samples the server's processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "client_thread.h"
#include "command_line.h"
#include "progress.h"
#include "report.h"

#define TICK_NS NS_PER_S
#define OTHER_FDS 64 /* file descriptors other than connections */

struct session {
	struct client_run run;
	struct corpus files;
	struct request_schedule schedule;
	struct client_thread *threads[THREADS_MAX];
	unsigned thread_count;
	unsigned started_count;
	struct server_usage server;
	struct progress progress;
	struct request_stats *stats;
	uint64_t *per_connection;
	uint64_t start_ns, end_ns;
	struct request_records unsent; /* with a CSV file */
	FILE *csv;
	int signal_fd;
	bool is_interrupted;
};

static int complain(const char *subject)
{
	fprintf(stderr, "darkroom-load: %s: %s\n", subject, strerror(errno));
	return -1;
}

/* Raises the limit on open files to what the connections need. */
static int raise_limit(unsigned connections)
{
	struct rlimit limit;
	rlim_t need = connections + OTHER_FDS;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return complain("getrlimit");
	if (limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need;
	if (limit.rlim_max < need)
		limit.rlim_max = need;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return 0;
	return complain("cannot raise the limit on open files for the connections (ulimit -n)");
}

/* INT and TERM are read from a descriptor; the threads inherit the mask. */
static sigset_t watched_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

static int open_descriptors(struct session *s)
{
	sigset_t set = watched_signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	s->run.stop_fd = eventfd(0, EFD_CLOEXEC);
	s->run.done_fd = eventfd(0, EFD_CLOEXEC);
	return s->signal_fd < 0 || s->run.stop_fd < 0 || s->run.done_fd < 0
	               ? complain("signalfd or eventfd")
	               : 0;
}

static int read_files(struct session *s, const struct command_line *args)
{
	const struct corpus_conf conf = {
		.path = args->url.path,
		.authority = args->url.authority,
		.headers = args->headers,
		.header_count = args->header_count,
		.is_form = args->is_form,
		.is_get = args->is_get,
		.seed = args->schedule.seed,
	};

	return corpus_read(&s->files, args->paths, args->path_count, &conf);
}

static int make_schedule(struct session *s, const struct command_line *args)
{
	struct request_schedule_conf conf = args->schedule;
	int err;

	if (conf.requests_max == 0 && conf.duration_ns == 0)
		conf.requests_max = s->files.count;
	err = request_schedule_init(&s->schedule, &conf);
	if (!err)
		s->run.schedule = &s->schedule;
	errno = -err;
	return err ? complain("request schedule") : 0;
}

static int make_threads(struct session *s, const struct command_line *args)
{
	unsigned first = 0;

	s->stats = calloc(1, sizeof *s->stats);
	s->per_connection = calloc(args->connections, sizeof *s->per_connection);
	if (!s->stats || !s->per_connection)
		return complain("statistics");
	for (unsigned i = 0; i < args->threads; i++) {
		unsigned count =
			args->connections / args->threads + (i < args->connections % args->threads);

		s->threads[i] = client_thread_new(&s->run, count, first);
		if (!s->threads[i])
			return complain("connections");
		s->thread_count++;
		first += count;
	}
	return 0;
}

static void stop_threads(struct session *s)
{
	uint64_t one = 1;

	if (write(s->run.stop_fd, &one, sizeof one) != sizeof one)
		complain("eventfd");
}

static int start_threads(struct session *s)
{
	uint64_t total = s->schedule.conf.requests_max;

	s->start_ns = clock_ns();
	request_schedule_start(&s->schedule, s->start_ns);
	if (progress_init(&s->progress, s->run.args, total, s->start_ns) < 0)
		return complain("progress");
	for (unsigned i = 0; i < s->thread_count; i++) {
		int err = client_thread_start(s->threads[i]);

		if (err) {
			errno = -err;
			stop_threads(s);
			return complain("thread");
		}
		s->started_count++;
	}
	return 0;
}

static void tick(struct session *s)
{
	struct request_stats *sum;

	server_usage_sample(&s->server);
	if (!s->progress.is_shown)
		return;
	sum = progress_stats(&s->progress);
	for (unsigned i = 0; i < s->thread_count; i++)
		request_stats_merge(sum, &s->threads[i]->stats);
	progress_show(&s->progress, clock_ns());
}

/* Handles the first signal; a second one kills the program. */
static void interrupt(struct session *s)
{
	struct signalfd_siginfo info;
	sigset_t set = watched_signals();

	s->is_interrupted = read(s->signal_fd, &info, sizeof info) == sizeof info;
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	stop_threads(s);
}

/* Waits until the last thread has ended. */
static void watch(struct session *s)
{
	struct pollfd fds[] = { { .fd = s->run.done_fd, .events = POLLIN },
		                { .fd = s->signal_fd, .events = POLLIN } };
	uint64_t next_ns = s->start_ns + TICK_NS, ended = 0, n;

	while (ended < s->started_count) {
		uint64_t now_ns = clock_ns();
		int wait_ms = next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;

		if (poll(fds, COUNT_OF(fds), wait_ms) < 0 && errno != EINTR) {
			complain("poll");
			break;
		}
		if ((fds[0].revents & POLLIN) && read(s->run.done_fd, &n, sizeof n) == sizeof n)
			ended += n;
		if (fds[1].revents & POLLIN) {
			fds[1].fd = -1;
			interrupt(s);
		}
		if (clock_ns() >= next_ns) {
			tick(s);
			next_ns += TICK_NS;
		}
	}
	s->end_ns = clock_ns();
	server_usage_sample(&s->server);
	progress_clear(&s->progress);
}

static void complain_lost(void)
{
	fputs("darkroom-load: out of memory: the CSV file lacks rows\n", stderr);
}

/* Joins the threads and adds up their counters. Returns 0, or -1 if one of them failed. */
static int collect(struct session *s)
{
	int err = 0;

	for (unsigned i = 0; i < s->started_count; i++) {
		struct client_thread *t = s->threads[i];

		client_thread_join(t);
		request_stats_merge_ended(s->stats, &t->stats);
		for (unsigned k = 0; k < t->client_count; k++)
			s->per_connection[t->clients[k].index] = t->clients[k].responses;
		if (t->is_failed || t->records.lost > 0)
			err = -1;
		if (t->records.lost > 0)
			complain_lost();
	}
	return err;
}

static int write_csv(struct session *s)
{
	const struct request_records *records[RECORD_LISTS_MAX];
	unsigned count = 0;
	int err;

	for (; count < s->thread_count; count++)
		records[count] = &s->threads[count]->records;
	records[count++] = &s->unsent;
	err = request_records_write(s->csv, records, count, s->start_ns, &s->files);
	if (fclose(s->csv) != 0)
		err = -1;
	s->csv = NULL;
	return err ? complain(s->run.args->csv_path) : 0;
}

static bool is_success(const struct session *s)
{
	const struct request_stats *stats = s->stats;

	return !s->is_interrupted && request_stats_failed(stats) == 0 &&
	       counter_read(&stats->unexpected) == 0 && counter_read(&stats->variants_wrong) == 0 &&
	       counter_read(&stats->doubled) == 0 && counter_read(&stats->aborted) == 0;
}

/* Returns the number of requests that were due and never sent. Records them for the CSV file. */
static uint64_t collect_unsent(struct session *s)
{
	struct request_record record = { .file = RECORD_UNSENT };
	uint64_t count = 0;

	for (; request_schedule_unsent(&s->schedule, s->end_ns, &record.intended_ns); count++)
		if (s->run.args->csv_path)
			request_records_add(&s->unsent, &record);
	if (s->unsent.lost > 0)
		complain_lost();
	return count;
}

/* Reports the results. Returns the exit status. */
static int report_results(struct session *s)
{
	const struct request_stats *stats = s->stats;
	struct report r = {
		.args = s->run.args,
		.files = &s->files,
		.stats = stats,
		.server = &s->server,
		.per_connection = s->per_connection,
		.is_interrupted = s->is_interrupted,
		.is_ok = is_success(s),
		.makespan_s = stats->last_ns > stats->first_ns
		                      ? (double)(stats->last_ns - stats->first_ns) / 1e9
		                      : 0,
		.unsent = collect_unsent(s),
	};
	int err = 0;

	if (s->run.args->csv_path)
		err = write_csv(s);
	if (s->run.args->json)
		err |= report_json(&r);
	else if (!s->run.args->quiet)
		err |= report_text(&r);
	else if (!r.is_ok)
		report_failure(&r);
	return r.is_ok && !err ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Opens the CSV file before the run, so that an error shows at once. */
static int open_csv(struct session *s, const char *path)
{
	if (!path)
		return 0;
	s->csv = fopen(path, "we");
	return s->csv ? 0 : complain(path);
}

static int run_session(struct session *s, const struct command_line *args)
{
	int err;

	if (url_resolve(&args->url, &s->run.address) < 0 || raise_limit(args->connections) < 0 ||
	    read_files(s, args) < 0 || open_csv(s, args->csv_path) < 0 || open_descriptors(s) < 0 ||
	    make_schedule(s, args) < 0 || make_threads(s, args) < 0)
		return EXIT_FAILURE;
	if (server_usage_find(&s->server, args->server_pid, &s->run.address) < 0) {
		complain("--server-pid");
		return EXIT_FAILURE;
	}
	server_usage_start(&s->server);
	err = start_threads(s);
	watch(s);
	err |= collect(s);
	return err ? EXIT_FAILURE : report_results(s);
}

int main(int argc, char **argv)
{
	static struct command_line args;
	static struct session s = { .signal_fd = -1, .run = { .stop_fd = -1, .done_fd = -1 } };
	int status = command_line_parse(&args, argc, argv);

	if (status >= 0)
		return status;
	s.run.args = &args;
	s.run.files = &s.files;
	status = run_session(&s, &args);
	for (unsigned i = 0; i < s.thread_count; i++)
		client_thread_free(s.threads[i]);
	if (s.run.schedule)
		request_schedule_fini(&s.schedule);
	progress_fini(&s.progress);
	corpus_fini(&s.files);
	free(s.stats);
	free(s.per_connection);
	if (s.csv)
		fclose(s.csv);
	for (unsigned i = 0; i < 3; i++) {
		int fd = (const int[]){ s.signal_fd, s.run.stop_fd, s.run.done_fd }[i];

		if (fd >= 0)
			close(fd);
	}
	pool_thread_fini();
	pool_fini();
	return status;
}

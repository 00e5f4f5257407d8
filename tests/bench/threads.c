/*
 * threads.c - the throughput of a server that has a thread for each task (Welsh, figure 3).
 *
 * Each thread takes a task from one queue, reads 8 KB of a file that is cached, and puts the task
 * back. There are as many tasks as threads, so that none waits for a thread.
 *
 * usage: threads COUNT SECONDS FILE
 * Prints one JSON object about SECONDS, after a warm-up of a quarter of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "telemetry/histogram.h"

#define THREADS_MAX 1024
#define READ_SIZE 8192
#define STACK_SIZE (128u * 1024)

struct task {
	struct task *next;
	uint64_t queued_ns;
	uint64_t count;
	struct histogram times;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct task *first, **last;
	bool is_stopping;
	_Atomic bool is_measured;
	int fd;
	off_t blocks;
	struct task tasks[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
} server = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .filled = PTHREAD_COND_INITIALIZER,
	     .last = &server.first };

static void put(struct task *task)
{
	task->next = NULL;
	task->queued_ns = clock_ns();
	pthread_mutex_lock(&server.lock);
	*server.last = task;
	server.last = &task->next;
	pthread_cond_signal(&server.filled);
	pthread_mutex_unlock(&server.lock);
}

/* Returns NULL at the end. */
static struct task *get(void)
{
	struct task *task = NULL;

	pthread_mutex_lock(&server.lock);
	while (!server.first && !server.is_stopping)
		pthread_cond_wait(&server.filled, &server.lock);
	if (!server.is_stopping) {
		task = server.first;
		server.first = task->next;
		if (!server.first)
			server.last = &server.first;
	}
	pthread_mutex_unlock(&server.lock);
	return task;
}

static void *serve(void *arg)
{
	char buffer[READ_SIZE];
	struct task *task;

	(void)arg;
	while ((task = get())) {
		off_t at = (off_t)(task->count % (uint64_t)server.blocks) * READ_SIZE;

		if (pread(server.fd, buffer, sizeof buffer, at) != sizeof buffer)
			abort();
		task->count++;
		if (atomic_load_explicit(&server.is_measured, memory_order_relaxed))
			histogram_add(&task->times, clock_ns() - task->queued_ns, 1);
		put(task);
	}
	return NULL;
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void wait_s(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
		              .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		continue;
}

static void measure(unsigned count, double seconds)
{
	struct histogram_sum times = { 0 };
	uint64_t start_ns, start_cpu_ns, spent_cpu_ns;
	double spent_s;

	wait_s(seconds / 4);
	start_ns = clock_ns();
	start_cpu_ns = cpu_ns();
	atomic_store(&server.is_measured, true);
	wait_s(seconds);
	atomic_store(&server.is_measured, false);
	spent_s = (double)(clock_ns() - start_ns) / 1e9;
	spent_cpu_ns = cpu_ns() - start_cpu_ns;
	for (unsigned i = 0; i < count; i++)
		histogram_collect(&times, &server.tasks[i].times);
	printf("{\"threads\":%u,\"tasks\":%" PRIu64 ",\"tasks_per_s\":%.1f,\"cpu_ns\":%" PRIu64
	       ",\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
	       count, times.count, (double)times.count / spent_s, spent_cpu_ns,
	       histogram_quantile(&times, 0.5) / 1e3, histogram_quantile(&times, 0.99) / 1e3);
}

/* Starts the threads with a task each. Returns 0 or an error number. */
static int start(unsigned count)
{
	pthread_attr_t attributes;
	int err = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (unsigned i = 0; i < count && !err; i++) {
		err = pthread_create(&server.threads[i], &attributes, serve, NULL);
		if (!err)
			put(&server.tasks[i]);
	}
	pthread_attr_destroy(&attributes);
	return err;
}

int main(int argc, char **argv)
{
	unsigned count = argc == 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	double seconds = argc == 4 ? strtod(argv[2], NULL) : 0;
	int err;

	if (count < 1 || count > THREADS_MAX || seconds <= 0) {
		fputs("usage: threads COUNT SECONDS FILE; at most 1024 threads\n", stderr);
		return 2;
	}
	server.fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	server.blocks = server.fd < 0 ? 0 : lseek(server.fd, 0, SEEK_END) / READ_SIZE;
	if (server.blocks < 1) {
		fprintf(stderr, "threads: %s: expected a file of at least 8 KB\n", argv[3]);
		return 1;
	}
	err = start(count);
	if (err) {
		fprintf(stderr, "threads: %u threads: %s\n", count, strerror(err));
		return 1; /* the process ends with the threads that have started */
	}
	measure(count, seconds);
	pthread_mutex_lock(&server.lock);
	server.is_stopping = true;
	pthread_cond_broadcast(&server.filled);
	pthread_mutex_unlock(&server.lock);
	for (unsigned i = 0; i < count; i++)
		pthread_join(server.threads[i], NULL);
	return 0;
}

/*
 * writer.c - takes lines out of the ring and writes them, many with one system call.
 *
 * The thread sleeps while the ring is empty. The first line of an empty ring wakes it. When the
 * process crashes, the handler of the signal writes what is left. It and the thread never consume
 * at the same time.
 */
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "ring.h"

#define RING_SIZE ((size_t)512 << 10) /* about 2,000 lines */
#define MESSAGE_SPARE (RING_SIZE / 4) /* room that access lines leave free */
#define SINK_SIZE ((size_t)32 << 10)  /* bytes per system call; more than the longest line */
/* After the first line of an empty ring the thread lets more arrive. Writing every line at once
 * would double the CPU time of small requests. */
#define COLLECT_NS (10 * NS_PER_MS)
#define END_MS 1000  /* the longest wait for a reader at the end */
#define CRASH_MS 100 /* the same in a crash, for each line */

/* ---- writing ---- */

/* Where lines go. Access lines go to standard error as well while they have no file. */
struct sink {
	int fd;       /* -1: none */
	bool is_torn; /* the last line was written in part */
	size_t length;
	char data[SINK_SIZE];
};

static struct {
	struct ring ring;
	pthread_t thread;
	int (*idle)(bool is_last);
	sem_t wake, ended;
	_Atomic bool is_running, is_stopping, has_file;
	_Atomic bool is_consuming; /* by the thread or, permanently, by the handler of a crash */
	_Atomic int next_file;     /* a descriptor that the thread has not taken yet, or -1 */
	_Atomic int file_error;
	_Atomic uint64_t failed;
	struct sink sink[LINE_KIND_COUNT]; /* consumer only */
} w = { .next_file = -1, .sink = { [LINE_MESSAGE].fd = STDERR_FILENO, [LINE_ACCESS].fd = -1 } };

static struct sink *sink_of(const struct line *line)
{
	bool has_file = w.sink[LINE_ACCESS].fd >= 0;

	return &w.sink[line->kind == LINE_ACCESS && has_file ? LINE_ACCESS : LINE_MESSAGE];
}

/* Adds the line to what the sink will write. False: the sink is full. */
static bool sink_add(struct sink *s, const struct line *line)
{
	if (line->length + s->is_torn > SINK_SIZE - s->length)
		return false;
	if (s->is_torn && s->length == 0)
		s->data[s->length++] = '\n';
	memcpy(s->data + s->length, line->data, line->length);
	s->length += line->length;
	return true;
}

static uint64_t count_lines(const char *data, size_t length)
{
	uint64_t n = 0;

	for (size_t i = 0; i < length; i++)
		n += data[i] == '\n';
	return n;
}

/* Writes what was added, and waits for the reader if need be. Counts what cannot be written. */
static void sink_flush(struct sink *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };
	size_t at = 0;

	while (at < s->length) {
		ssize_t n = write(s->fd, s->data + at, s->length - at);

		if (n >= 0) {
			at += (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			poll(&p, 1, -1); /* another process made the shared pipe non-blocking */
		} else if (errno != EINTR) {
			atomic_fetch_add_explicit(&w.failed,
			                          count_lines(s->data + at, s->length - at),
			                          memory_order_relaxed);
			if (s == &w.sink[LINE_ACCESS])
				atomic_store_explicit(&w.file_error, errno, memory_order_relaxed);
			break;
		}
	}
	if (at > 0)
		s->is_torn = s->data[at - 1] != '\n';
	s->length = 0;
}

/* Writes as many lines as the sinks hold. False: the record at the tail was not ready. */
static bool write_some(void)
{
	uint64_t tail = atomic_load_explicit(&w.ring.tail, memory_order_relaxed);
	uint64_t position = tail, next = tail;
	struct line line;

	while (ring_next(&w.ring, &next, &line) && sink_add(sink_of(&line), &line))
		position = next;
	if (position == tail)
		return false;
	for (int i = 0; i < LINE_KIND_COUNT; i++)
		sink_flush(&w.sink[i]);
	ring_release(&w.ring, position);
	return true;
}

/* Replaces the file of access lines if there is a new one. */
static void take_file(void)
{
	int fd = atomic_exchange(&w.next_file, -1);
	struct sink *s = &w.sink[LINE_ACCESS];

	if (fd < 0)
		return;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	s->is_torn = false;
}

/* Writes everything, unless the handler of a crash does it. */
static void consume(void)
{
	const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };

	/* Acquire, and release below: one consumer sees what the other one did. */
	while (atomic_exchange_explicit(&w.is_consuming, true, memory_order_acquire))
		nanosleep(&moment, NULL);
	take_file();
	while (write_some())
		continue;
	atomic_store_explicit(&w.is_consuming, false, memory_order_release);
}

/* ---- the thread ---- */

/* Waits for a post, at most timeout_ms (-1: indefinitely). False: it did not come. */
static bool wait_for(sem_t *sem, int timeout_ms)
{
	uint64_t until_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
		                        .tv_nsec = (long)(until_ns % NS_PER_S) };
	int result;

	do
		result = timeout_ms < 0 ? sem_wait(sem)
		                        : sem_clockwait(sem, CLOCK_MONOTONIC, &until);
	while (result && errno == EINTR);
	return result == 0;
}

static void *writer_run(void *arg)
{
	const struct timespec collect = { .tv_nsec = COLLECT_NS };

	(void)arg;
	pthread_setname_np(pthread_self(), "log");
	while (!atomic_load_explicit(&w.is_stopping, memory_order_relaxed)) {
		consume();
		if (wait_for(&w.wake, w.idle(false)))
			nanosleep(&collect, NULL);
		while (sem_trywait(&w.wake) == 0)
			continue; /* one round serves all posts so far */
	}
	consume();
	w.idle(true); /* may log */
	consume();
	sem_post(&w.ended);
	return NULL;
}

/* ---- crashes ---- */

/* Writes the rest of the ring, with calls of signal-safety(7) only. Takes the ring from the thread,
 * unless that is stuck in a write. If the thread itself has crashed, a line may come twice. */
static void on_crash(int number)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };
	bool is_ours = pthread_equal(pthread_self(), w.thread);
	uint64_t position;
	struct line line;

	for (int i = 0; i < CRASH_MS && !is_ours; i++) {
		is_ours = !atomic_exchange_explicit(&w.is_consuming, true, memory_order_acquire);
		if (!is_ours)
			nanosleep(&ms, NULL);
	}
	position = atomic_load_explicit(&w.ring.tail, memory_order_relaxed);
	while (writer_is_running() && is_ours && ring_next(&w.ring, &position, &line)) {
		struct pollfd p = { .fd = sink_of(&line)->fd, .events = POLLOUT };

		if (line.length <= PIPE_BUF && /* a ready pipe takes that much at once */
		    (poll(&p, 1, CRASH_MS) <= 0 || write(p.fd, line.data, line.length) < 0))
			break;
	}
	raise(number); /* SA_RESETHAND: now the default action */
}

/* Keeps handlers that exist: those of a sanitizer report more. */
static void catch_crashes(void)
{
	static const int numbers[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND }, before;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
		    before.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}

/* ---- public ---- */

int writer_start(int (*idle)(bool is_last))
{
	int err = ring_init(&w.ring, RING_SIZE);

	if (err)
		return err;
	w.idle = idle;
	sem_init(&w.wake, 0, 0);
	sem_init(&w.ended, 0, 0);
	atomic_store(&w.is_stopping, false);
	take_file();
	err = -pthread_create(&w.thread, NULL, writer_run, NULL);
	if (err) {
		ring_fini(&w.ring);
		return err;
	}
	catch_crashes();
	atomic_store(&w.is_running, true);
	return 0;
}

bool writer_is_running(void)
{
	return atomic_load_explicit(&w.is_running, memory_order_acquire);
}

void writer_flush(void)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };
	uint64_t head = atomic_load(&w.ring.head);

	for (int i = 0; i < END_MS && atomic_load(&w.ring.tail) < head; i++)
		nanosleep(&ms, NULL);
}

void writer_stop(void)
{
	atomic_store(&w.is_stopping, true);
	writer_wake();
	if (!wait_for(&w.ended, END_MS))
		return; /* the reader does not read: the thread ends with the process */
	pthread_join(w.thread, NULL);
	atomic_store(&w.is_running, false);
	if (w.sink[LINE_ACCESS].fd >= 0)
		close(w.sink[LINE_ACCESS].fd);
	w.sink[LINE_ACCESS].fd = -1;
	atomic_store(&w.has_file, false);
	ring_fini(&w.ring);
	sem_destroy(&w.wake);
	sem_destroy(&w.ended);
}

void writer_put(enum line_kind kind, const char *line, size_t length)
{
	bool is_awaited;

	ring_put(&w.ring, kind, line, length, kind == LINE_ACCESS ? MESSAGE_SPARE : 0, &is_awaited);
	if (is_awaited)
		writer_wake();
}

void writer_wake(void)
{
	sem_post(&w.wake);
}

void writer_set_file(int fd)
{
	int old = atomic_exchange(&w.next_file, fd);

	if (old >= 0)
		close(old); /* the thread never took it */
	atomic_store_explicit(&w.has_file, true, memory_order_relaxed);
	if (writer_is_running())
		writer_wake();
}

bool writer_has_file(void)
{
	return atomic_load_explicit(&w.has_file, memory_order_relaxed);
}

int writer_take_file_error(void)
{
	return atomic_exchange_explicit(&w.file_error, 0, memory_order_relaxed);
}

void writer_read_totals(struct writer_totals *totals)
{
	for (int i = 0; i < LINE_KIND_COUNT; i++) {
		totals->put[i] = atomic_load_explicit(&w.ring.put[i], memory_order_relaxed);
		totals->dropped[i] = atomic_load_explicit(&w.ring.dropped[i], memory_order_relaxed);
	}
	totals->failed = atomic_load_explicit(&w.failed, memory_order_relaxed);
}

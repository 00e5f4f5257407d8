/*
 * log_writer.c - the log's own thread: takes lines out of the ring and writes them, many at a time.
 *
 * It sleeps for good while there is nothing to write. The first line wakes it; then it dozes a
 * moment so that others come together, unless one is urgent. A writer that goes to sleep announces
 * it and looks again; a producer puts its line and looks whether a sleep was announced: with a
 * fence between the two on both sides, one of them sees the other.
 *
 * When the process crashes, the handler of the signal writes what is left. It and the thread are
 * never consumers at the same time.
 */
#include "log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "log.h"

#define RING_SIZE ((size_t)512 << 10) /* about 2,000 lines */
#define MESSAGE_SPARE (RING_SIZE / 4) /* kept free of lines about requests */
#define DOZE_NS (20 * NS_PER_MS)
#define BATCH_MAX 64
#define END_MS 1000         /* how long the end waits for a reader */
#define CRASH_MS 100        /* how long a crash does, each time */
#define CRASH_LINE_MAX 4096 /* what a pipe takes at once when it is ready: pipe(7), PIPE_BUF */

enum sleep { AWAKE = 0, DOZING, ASLEEP };

/* Where lines go. */
enum sink { SINK_STDERR = 0, SINK_FILE, SINK_COUNT };

static struct {
	struct log_ring ring;
	pthread_t thread;
	int (*idle)(bool is_last);
	sem_t wake, ended;
	_Atomic bool is_running, is_stopping;
	_Atomic bool has_file, is_urgent;
	_Atomic int sleep;         /* enum sleep */
	_Atomic bool is_consuming; /* the thread or the handler of a crash; the latter for good */
	_Atomic int next_file;     /* a new descriptor for the thread to take, or -1 */
	_Atomic uint64_t failed;
	/* the consumer's */
	int fd[SINK_COUNT];
	bool is_torn[SINK_COUNT]; /* the last line there has no end */
} w = { .next_file = -1, .fd = { STDERR_FILENO, -1 } };

/* ---- writing ---- */

/* Lines on their way to one sink. */
struct batch {
	struct iovec iov[BATCH_MAX + 1]; /* the first: an end for a torn line */
	int count;
};

/* n bytes were written: takes them off the front of what is left, from *iov on, and gives how many
 * pieces that is. */
static int advance(struct iovec **iov, int count, size_t n, bool *is_torn)
{
	while (count > 0 && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		count--;
	}
	*is_torn = n > 0;
	if (count > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
	return count;
}

/* Waits as long as it takes. What cannot be written is counted. */
static void write_batch(enum sink sink, struct batch *b)
{
	static char end[] = "\n";
	struct iovec *iov = &b->iov[w.is_torn[sink] ? 0 : 1];
	struct pollfd p = { .fd = w.fd[sink], .events = POLLOUT };
	int count = b->count + w.is_torn[sink];

	if (b->count == 0)
		return;
	b->iov[0] = (struct iovec){ .iov_base = end, .iov_len = 1 };
	while (count > 0) {
		ssize_t n = writev(w.fd[sink], iov, count);

		if (n >= 0) {
			count = advance(&iov, count, (size_t)n, &w.is_torn[sink]);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			poll(&p, 1, -1); /* who shares it with us has made it so */
		} else if (errno != EINTR) {
			atomic_fetch_add_explicit(&w.failed, (uint64_t)count, memory_order_relaxed);
			if (sink == SINK_FILE) /* of the other one nobody can be told there */
				log_warning("the access log cannot be written: %s",
				            strerror(errno));
			return;
		}
	}
}

static enum sink sink_of(const struct log_line *line)
{
	return line->kind == LOG_KIND_ACCESS && w.fd[SINK_FILE] >= 0 ? SINK_FILE : SINK_STDERR;
}

/* Writes up to BATCH_MAX lines; false: there was none. */
static bool write_some(void)
{
	static struct batch batch[SINK_COUNT]; /* the consumer's */
	uint64_t position = atomic_load_explicit(&w.ring.tail, memory_order_relaxed);
	struct log_line line;
	unsigned n = 0;

	for (int i = 0; i < SINK_COUNT; i++)
		batch[i].count = 0;
	while (n < BATCH_MAX && log_ring_next(&w.ring, &position, &line)) {
		struct batch *b = &batch[sink_of(&line)];

		b->iov[++b->count] = (struct iovec){ .iov_base = (char *)(uintptr_t)line.data,
			                             .iov_len = line.length };
		n++;
	}
	for (int i = 0; i < SINK_COUNT; i++)
		write_batch((enum sink)i, &batch[i]);
	log_ring_let_go(&w.ring, position);
	return n > 0;
}

/* A new file takes the place of the one before. */
static void take_file(void)
{
	/* Acquire: with the release of who has opened it. */
	int fd = atomic_exchange_explicit(&w.next_file, -1, memory_order_acquire);

	if (fd < 0)
		return;
	if (w.fd[SINK_FILE] >= 0)
		close(w.fd[SINK_FILE]);
	w.fd[SINK_FILE] = fd;
	w.is_torn[SINK_FILE] = false;
}

/* Becomes the consumer, unless a crash is on its way: then for ever nobody. */
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

/* ---- sleeping and waking ---- */

static void wake(bool is_urgent)
{
	if (is_urgent)
		atomic_store_explicit(&w.is_urgent, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* with the one in announce() */
	int sleep = atomic_load_explicit(&w.sleep, memory_order_relaxed);

	if (sleep == AWAKE || (sleep == DOZING && !is_urgent))
		return;
	if (atomic_exchange_explicit(&w.sleep, AWAKE, memory_order_relaxed) != AWAKE)
		sem_post(&w.wake);
}

static void announce(enum sleep sleep)
{
	atomic_store_explicit(&w.sleep, sleep, memory_order_relaxed);
	atomic_thread_fence(
		memory_order_seq_cst); /* what is looked at below, or the sleep is seen in wake() */
}

static bool is_stopping(void)
{
	return atomic_load_explicit(&w.is_stopping, memory_order_relaxed);
}

static bool has_work(void)
{
	uint64_t position = atomic_load_explicit(&w.ring.tail, memory_order_relaxed);
	struct log_line ignored;

	return log_ring_next(&w.ring, &position, &ignored) || is_stopping() ||
	       atomic_load_explicit(&w.next_file, memory_order_relaxed) >= 0;
}

/* Waits for sem_post(), at most until then; false: it did not come. One that was meant for an
 * earlier sleep only makes the thread look once more. */
static bool sem_wait_until(sem_t *sem, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
		                        .tv_nsec = (long)(until_ns % NS_PER_S) };
	int result;

	do
		result = until_ns == UINT64_MAX ? sem_wait(sem)
		                                : sem_clockwait(sem, CLOCK_MONOTONIC, &until);
	while (result && errno == EINTR);
	return result == 0;
}

/* Until there is something to do, at most for timeout_ms (-1: for ever); then until more may have
 * come. */
static void rest(int timeout_ms)
{
	announce(ASLEEP);
	if (!has_work())
		sem_wait_until(&w.wake, timeout_ms < 0
		                                ? UINT64_MAX
		                                : clock_ns() + (uint64_t)timeout_ms * NS_PER_MS);
	announce(DOZING);
	if (!atomic_exchange_explicit(&w.is_urgent, false, memory_order_relaxed) && !is_stopping())
		sem_wait_until(&w.wake, clock_ns() + DOZE_NS);
	atomic_store_explicit(&w.sleep, AWAKE, memory_order_relaxed);
}

static void *writer_run(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "log");
	while (!is_stopping()) {
		consume();
		rest(w.idle(false));
	}
	consume();
	w.idle(true); /* may have something to say itself */
	consume();
	sem_post(&w.ended);
	return NULL;
}

/* ---- crashes ---- */

/* Becomes the consumer for good. The thread may be in the middle of a write that takes a while, or
 * never ends. */
static bool take_over(void)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };

	if (pthread_equal(pthread_self(), w.thread))
		return true; /* it is the thread itself that has crashed: a line may come twice */
	for (int i = 0; i < CRASH_MS; i++) {
		if (!atomic_exchange_explicit(&w.is_consuming, true, memory_order_acquire))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

/* Everything in here may be called by a handler of signals: signal-safety(7). */
static void on_crash(int number)
{
	struct log_line line;

	if (log_writer_is_running() && take_over()) {
		uint64_t position = atomic_load_explicit(&w.ring.tail, memory_order_relaxed);

		while (log_ring_next(&w.ring, &position, &line)) {
			struct pollfd p = { .fd = w.fd[sink_of(&line)], .events = POLLOUT };

			if (line.length > CRASH_LINE_MAX)
				continue;
			if (poll(&p, 1, CRASH_MS) <= 0 || write(p.fd, line.data, line.length) < 0)
				break;
		}
	}
	raise(number); /* it is the default's turn, as soon as this returns */
}

/* Handlers that are there already stay: those of a sanitizer have more to say. */
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

/* ---- life ---- */

int log_writer_start(int (*idle)(bool is_last))
{
	int err = log_ring_init(&w.ring, RING_SIZE);

	if (err)
		return err;
	w.idle = idle;
	sem_init(&w.wake, 0, 0);
	sem_init(&w.ended, 0, 0);
	atomic_store(&w.is_stopping, false);
	take_file();
	err = -pthread_create(&w.thread, NULL, writer_run, NULL);
	if (err) {
		log_ring_fini(&w.ring);
		return err;
	}
	catch_crashes();
	atomic_store(&w.is_running, true);
	return 0;
}

bool log_writer_is_running(void)
{
	return atomic_load_explicit(&w.is_running, memory_order_acquire);
}

void log_writer_flush(void)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };
	uint64_t head = atomic_load(&w.ring.head);

	wake(true);
	for (int i = 0; i < END_MS && atomic_load(&w.ring.tail) < head; i++)
		nanosleep(&ms, NULL);
}

void log_writer_stop(void)
{
	atomic_store(&w.is_stopping, true);
	wake(true);
	if (!sem_wait_until(&w.ended, clock_ns() + END_MS * NS_PER_MS))
		return; /* nobody reads what it writes: it ends with the process */
	pthread_join(w.thread, NULL);
	atomic_store(&w.is_running, false);
	if (w.fd[SINK_FILE] >= 0)
		close(w.fd[SINK_FILE]);
	w.fd[SINK_FILE] = -1;
	atomic_store(&w.has_file, false);
	log_ring_fini(&w.ring);
	sem_destroy(&w.wake);
	sem_destroy(&w.ended);
}

void log_writer_put(enum log_kind kind, const char *line, size_t length, bool is_urgent)
{
	if (!log_ring_put(&w.ring, kind, line, length, kind == LOG_KIND_ACCESS ? MESSAGE_SPARE : 0))
		is_urgent = false; /* it has enough to do */
	wake(is_urgent || log_ring_used(&w.ring) > RING_SIZE / 2);
}

/* Even if it is awake: it does not look for what this is about before it sleeps. */
void log_writer_wake(void)
{
	sem_post(&w.wake);
}

void log_writer_set_access_file(int fd)
{
	/* Release: it is open. One that was not taken yet is superseded. */
	int old = atomic_exchange_explicit(&w.next_file, fd, memory_order_acq_rel);

	if (old >= 0)
		close(old);
	atomic_store_explicit(&w.has_file, true, memory_order_relaxed);
	if (log_writer_is_running())
		wake(false);
}

bool log_writer_has_access_file(void)
{
	return atomic_load_explicit(&w.has_file, memory_order_relaxed);
}

void log_writer_totals(struct log_totals *totals)
{
	const struct log_ring *r = &w.ring;

	*totals = (struct log_totals){
		.messages = atomic_load_explicit(&r->put[LOG_KIND_MESSAGE], memory_order_relaxed),
		.access = atomic_load_explicit(&r->put[LOG_KIND_ACCESS], memory_order_relaxed),
		.messages_dropped =
			atomic_load_explicit(&r->dropped[LOG_KIND_MESSAGE], memory_order_relaxed),
		.access_dropped =
			atomic_load_explicit(&r->dropped[LOG_KIND_ACCESS], memory_order_relaxed),
		.failed = atomic_load_explicit(&w.failed, memory_order_relaxed),
	};
}

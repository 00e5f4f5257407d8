/*
 * log.c - messages with levels and rate limits, lines about requests, and the thread that writes
 * both.
 *
 * A line is copied into a buffer, under a lock that is held for nothing longer. The first line of
 * an empty buffer wakes the thread, which swaps the buffer with an empty one and writes all lines
 * with one system call. When the process crashes, the handler of the signal writes what is left.
 * The handler and the thread never write at the same time.
 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opener.h"
#include "base/text.h"

#define MESSAGE_MAX 2048 /* bytes of a line; longer ones are cut */
#define BUFFER_SIZE ((size_t)256 << 10)
#define MESSAGE_SPARE (BUFFER_SIZE / 4) /* room that access lines leave to messages */
/* After the first line of an empty buffer the thread lets more arrive. Writing every line at once
 * would double the CPU time of small requests. */
#define COLLECT_NS (10 * NS_PER_MS)
#define END_MS 1000  /* the longest wait for a reader at the end */
#define CRASH_MS 100 /* the same in a crash, for each piece */

static _Atomic int level_max = LOG_LEVEL_NOTICE;
static _Atomic int access_style = LOG_ACCESS_NO;
static const char *access_path; /* NULL: standard error. Main thread */

/* ---- lines that wait ---- */

enum sink_name { SINK_STDERR, SINK_FILE, SINK_COUNT };

/* Where lines go. Access lines go to standard error as well while they have no file. */
struct sink {
	int fd;                   /* -1: none */
	bool is_torn;             /* the last line was written in part */
	_Atomic unsigned filling; /* the buffer that takes lines; swapped under the lock */
	_Atomic size_t length[2]; /* of the buffers; grows under the lock */
	size_t written;           /* of the other buffer, which the thread writes */
	char data[2][BUFFER_SIZE];
};

static struct sink sinks[SINK_COUNT] = { { .fd = STDERR_FILENO }, { .fd = -1 } };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_totals totals; /* under the lock, as all places and the next two */
static struct log_limit *limits; /* places that have ever suppressed a message */
static bool has_suppressed;      /* since the last report */
static int file_error;           /* under the lock: of the last failed write to the file, or 0 */
static pthread_t thread;
static sem_t wake, ended;
static _Atomic bool is_running, is_stopping, has_file;
static _Atomic bool is_writing;    /* the thread or, permanently, the handler of a crash */
static _Atomic int next_file = -1; /* a descriptor that the thread has not taken yet, or -1 */

/* Puts a line, which includes its end, while the thread is running. */
static void put(enum sink_name name, bool is_access, const char *line, size_t length)
{
	struct sink *s = &sinks[name];

	pthread_mutex_lock(&lock);
	unsigned filling = s->filling;
	size_t at = s->length[filling], spare = is_access ? MESSAGE_SPARE : 0;
	bool has_room = length + spare <= BUFFER_SIZE - at;

	if (has_room) {
		memcpy(s->data[filling] + at, line, length);
		s->length[filling] = at + length;
		totals.access += is_access;
		totals.messages += !is_access;
	} else {
		totals.access_dropped += is_access;
		totals.messages_dropped += !is_access;
	}
	pthread_mutex_unlock(&lock);
	if (has_room && at == 0)
		sem_post(&wake);
}

/* ---- messages ---- */

static bool has_priorities, is_journal, is_terminal; /* fixed by style_init() */
static pthread_once_t style_once = PTHREAD_ONCE_INIT;

static void style_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;

	/* A process may inherit the variable and have another standard error (sd-daemon(3)). */
	is_journal = stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	             fstat(STDERR_FILENO, &st) == 0 && (uintmax_t)st.st_dev == device &&
	             (uintmax_t)st.st_ino == inode;
	is_terminal = isatty(STDERR_FILENO);
	/* A pipe may lead to the journal. */
	has_priorities =
		stream && !is_terminal && fstat(STDERR_FILENO, &st) == 0 && !S_ISREG(st.st_mode);
	tzset();
}

void log_set_level(enum log_level level)
{
	/* Relaxed: a message around the change may still use the old level. */
	atomic_store_explicit(&level_max, (int)level, memory_order_relaxed);
}

static bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&level_max, memory_order_relaxed);
}

/* "<6>" for journald, "12:34:56.789 warning: " on a terminal, otherwise with the date before it.
 * Returns its length. */
static size_t write_head(char *out, size_t size, enum log_level level)
{
	static const char *const names[] = {
		[LOG_LEVEL_ERROR] = "error: ", [LOG_LEVEL_WARNING] = "warning: ",
		[LOG_LEVEL_NOTICE] = "",       [LOG_LEVEL_INFO] = "",
		[LOG_LEVEL_DEBUG] = "debug: ",
	};
	struct timespec now;
	struct tm local;
	int length;

	assert(level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_DEBUG);
	pthread_once(&style_once, style_init);
	if (has_priorities) {
		length = snprintf(out, size, "<%d>", (int)level);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		localtime_r(&now.tv_sec, &local);
		length = is_terminal ? 0
		                     : snprintf(out, size, "%d-%02d-%02d ", local.tm_year + 1900,
		                                local.tm_mon + 1, local.tm_mday);
		length += snprintf(out + length, size - (size_t)length, "%02d:%02d:%02d.%03ld %s",
		                   local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1000000,
		                   names[level]);
	}
	assert(length > 0 && (size_t)length < size);
	return (size_t)length;
}

__attribute__((format(printf, 2, 0))) static void write_message(enum log_level level,
                                                                const char *format, va_list args)
{
	int saved = errno; /* callers report errno after logging */
	char line[MESSAGE_MAX];
	size_t head = write_head(line, sizeof line, level), length;

	errno = saved; /* for %m */
	int made = vsnprintf(line + head, sizeof line - head - 1, format, args);

	if (made < 0)
		goto out;
	length = head + (size_t)made;
	if (length > sizeof line - 2) {
		length = sizeof line - 2;
		memcpy(line + length - 3, "...", 3);
	}
	/* Control bytes may come from a client: a line must stay one line, and must not control the
	 * terminal. */
	for (char *c = line + head; c < line + length; c++)
		*c = (unsigned char)*c < 0x20 || *c == 0x7F ? '?' : *c;
	line[length++] = '\n';
	if (atomic_load(&is_running))
		put(SINK_STDERR, false, line, length);
	else
		while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR)
			continue;
out:
	errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, format);
	write_message(level, format, args);
	va_end(args);
}

/* ---- rate limits ---- */

/* Counts a message, and whether it is suppressed: the window has had its burst. */
static bool is_over_limit(struct log_limit *limit, enum log_level level, const char *format)
{
	uint64_t now = clock_ns();

	pthread_mutex_lock(&lock);
	if (limit->window_ns == 0 || now - limit->window_ns >= LOG_WINDOW_NS) {
		limit->window_ns = now;
		limit->written = 0;
	}
	bool is_over = limit->written >= LOG_BURST, is_first = is_over && !has_suppressed;

	limit->written += !is_over;
	limit->suppressed += is_over;
	totals.suppressed += is_over;
	has_suppressed |= is_over;
	if (is_over && !limit->format) {
		limit->level = level;
		limit->format = format;
		limit->next = limits;
		limits = limit;
	}
	pthread_mutex_unlock(&lock);
	if (is_first)
		sem_post(&wake);
	return is_over;
}

void log_write_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
{
	va_list args;

	if (!log_enabled(level))
		return;
	/* Without the thread the number could not be reported. At startup and shutdown messages are
	 * few. */
	if (atomic_load(&is_running) && is_over_limit(limit, level, format))
		return;
	va_start(args, format);
	write_message(level, format, args);
	va_end(args);
}

/* Reports how many messages were suppressed. The log's thread only. */
static void report_suppressed(void)
{
	pthread_mutex_lock(&lock);
	has_suppressed = false;
	for (struct log_limit *l = limits; l; l = l->next) {
		uint32_t n = l->suppressed;

		l->suppressed = 0;
		pthread_mutex_unlock(&lock);
		if (n)
			log_write(l->level, "log: suppressed %" PRIu32 " more messages like \"%s\"",
			          n, l->format);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

/* Reports lines that were lost since the last call. The log's thread only. */
static void report_lost(void)
{
	static uint64_t reported;

	pthread_mutex_lock(&lock);
	uint64_t dropped = totals.messages_dropped + totals.access_dropped;
	int err = file_error;

	file_error = 0;
	pthread_mutex_unlock(&lock);
	if (dropped > reported)
		log_write(LOG_LEVEL_WARNING,
		          "log: dropped %" PRIu64 " line%s: the reader is too slow",
		          dropped - reported, plural(dropped - reported));
	reported = dropped;
	if (err)
		log_warning("log.access_file: cannot write: %s; lines are lost", strerror(err));
}

/* Called when the log's thread has written everything. Suppressed messages are reported a window
 * after the first was noticed. Returns the ms until the next call, or -1. */
static int report_idle(bool is_last)
{
	static uint64_t report_ns; /* 0: nothing to report */
	uint64_t now = clock_ns();

	report_lost();
	pthread_mutex_lock(&lock);
	if (!report_ns && has_suppressed)
		report_ns = now + LOG_WINDOW_NS;
	pthread_mutex_unlock(&lock);
	if (!report_ns)
		return -1;
	if (now < report_ns && !is_last)
		return (int)((report_ns - now) / NS_PER_MS) + 1;
	report_ns = 0;
	report_suppressed();
	return -1;
}

/* ---- lines about requests ---- */

/* A descriptor of the file, or -errno. Refuses pipes and devices: writing to one may wait. */
static int open_access(const char *path)
{
	int fd = opener_open(path, OPENER_APPEND_FILE);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

static int open_logged(const char *path, const char *place)
{
	int fd = open_access(path);

	if (fd < 0) {
		log_error("%slog.access_file = %s: %s", place, path,
		          fd == -EINVAL ? "expected a regular file" : strerror(-fd));
		return fd;
	}
	fd = atomic_exchange(&next_file, fd);
	if (fd >= 0)
		close(fd); /* the thread never took it */
	atomic_store(&has_file, true);
	if (atomic_load(&is_running))
		sem_post(&wake);
	return 0;
}

int log_access_open(const char *path, const char *place)
{
	access_path = strcmp(path, "stderr") == 0 ? NULL : path;
	return access_path ? open_logged(access_path, place) : 0;
}

int log_access_reopen(void)
{
	return access_path ? open_logged(access_path, "") : 0;
}

void log_set_access(enum log_access style)
{
	atomic_store_explicit(&access_style, (int)style, memory_order_relaxed);
}

enum log_access log_access_style(void)
{
	if (!atomic_load(&has_file) && !log_enabled(LOG_LEVEL_INFO))
		return LOG_ACCESS_NO;
	return (enum log_access)atomic_load_explicit(&access_style, memory_order_relaxed);
}

void log_access_write(enum log_access style, const char *line, size_t length)
{
	char whole[LOG_ACCESS_MAX + 4];
	size_t head = 0;
	enum sink_name sink = atomic_load(&has_file) ? SINK_FILE : SINK_STDERR;

	assert(length > 0 && length < LOG_ACCESS_MAX);
	if (!atomic_load(&is_running))
		return; /* requests come only while it is running */
	pthread_once(&style_once, style_init);
	if (sink == SINK_STDERR && (is_journal || (has_priorities && style == LOG_ACCESS_TEXT)))
		head = (size_t)snprintf(whole, sizeof whole, "<%d>", LOG_LEVEL_INFO);
	memcpy(whole + head, line, length);
	whole[head + length] = '\n';
	put(sink, true, whole, head + length + 1);
}

/* ---- the thread ---- */

static void count_failure(const struct sink *s, const char *data, size_t length, int err)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < length; i++)
		totals.failed += data[i] == '\n';
	if (s == &sinks[SINK_FILE])
		file_error = err;
	pthread_mutex_unlock(&lock);
}

/* Writes the lines that wait, and waits for the reader if need be. Counts what cannot be written.
 * Returns whether there were some. */
static bool write_sink(struct sink *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };

	pthread_mutex_lock(&lock);
	unsigned full = s->filling;
	size_t length = s->length[full];

	s->filling = !full;
	pthread_mutex_unlock(&lock);
	if (length && s->is_torn && write(s->fd, "\n", 1) == 1)
		s->is_torn = false;
	while (s->written < length) {
		const char *rest = s->data[full] + s->written;
		ssize_t n = write(s->fd, rest, length - s->written);

		if (n >= 0) {
			s->written += (size_t)n;
			s->is_torn = rest[n - (n > 0)] != '\n';
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			poll(&p, 1, -1); /* another process made the shared pipe non-blocking */
		} else if (errno != EINTR) {
			count_failure(s, rest, length - s->written, errno);
			break;
		}
	}
	s->written = 0;
	s->length[full] = 0;
	return length > 0;
}

/* Replaces the file of access lines if there is a new one. */
static void take_file(void)
{
	int fd = atomic_exchange(&next_file, -1);
	struct sink *s = &sinks[SINK_FILE];

	if (fd < 0)
		return;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	s->is_torn = false;
}

/* Writes everything, unless the handler of a crash does it. */
static void write_all(void)
{
	const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };

	while (atomic_exchange(&is_writing, true))
		nanosleep(&moment, NULL);
	take_file();
	while (write_sink(&sinks[SINK_STDERR]) || write_sink(&sinks[SINK_FILE]))
		continue;
	atomic_store(&is_writing, false);
}

/* Waits for a post, at most timeout_ms (-1: indefinitely). False: it did not come. */
static bool wait_for(sem_t *sem, int timeout_ms)
{
	const struct timespec until = clock_deadline((uint64_t)timeout_ms);
	int result;

	do
		result = timeout_ms < 0 ? sem_wait(sem)
		                        : sem_clockwait(sem, CLOCK_MONOTONIC, &until);
	while (result && errno == EINTR);
	return result == 0;
}

static void *run(void *arg)
{
	const struct timespec collect = { .tv_nsec = COLLECT_NS };

	(void)arg;
	pthread_setname_np(pthread_self(), "log");
	while (!atomic_load(&is_stopping)) {
		write_all();
		if (wait_for(&wake, report_idle(false)))
			nanosleep(&collect, NULL);
		while (sem_trywait(&wake) == 0)
			continue; /* one round serves all posts so far */
	}
	write_all();
	report_idle(true);
	write_all();
	sem_post(&ended);
	return NULL;
}

/* ---- crashes ---- */

/* Writes what is left, with calls of signal-safety(7) only. */
static void write_rest(const struct sink *s, unsigned buffer, size_t at)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };
	ssize_t n;

	for (size_t end = s->length[buffer]; at < end; at += (size_t)n) {
		size_t size = end - at < PIPE_BUF ? end - at : PIPE_BUF;

		/* A ready pipe takes that much at once. */
		if (poll(&p, 1, CRASH_MS) <= 0 ||
		    (n = write(p.fd, s->data[buffer] + at, size)) <= 0)
			return;
	}
}

/* Takes the buffers from the thread, unless that is stuck in a write. If the thread itself has
 * crashed, some lines may come twice. */
static void on_crash(int number)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };
	bool is_ours = pthread_equal(pthread_self(), thread);

	for (int i = 0; i < CRASH_MS && !is_ours; i++) {
		is_ours = !atomic_exchange(&is_writing, true);
		if (!is_ours)
			nanosleep(&ms, NULL);
	}
	for (const struct sink *s = sinks; s < sinks + SINK_COUNT && is_ours; s++) {
		write_rest(s, !s->filling, s->written);
		write_rest(s, s->filling, 0);
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

/* ---- life ---- */

int log_start(void)
{
	pthread_once(&style_once, style_init);
	sem_init(&wake, 0, 0);
	sem_init(&ended, 0, 0);
	atomic_store(&is_stopping, false);
	take_file();
	int err = -pthread_create(&thread, NULL, run, NULL);

	if (err) {
		log_error("log: cannot start its thread: %s", strerror(-err));
		return err;
	}
	catch_crashes();
	atomic_store(&is_running, true);
	return 0;
}

void log_stop(void)
{
	if (!atomic_load(&is_running))
		return;
	atomic_store(&is_stopping, true);
	sem_post(&wake);
	if (!wait_for(&ended, END_MS))
		return; /* the reader does not read: the thread ends with the process */
	pthread_join(thread, NULL);
	atomic_store(&is_running, false);
	if (sinks[SINK_FILE].fd >= 0)
		close(sinks[SINK_FILE].fd);
	sinks[SINK_FILE].fd = -1;
	atomic_store(&has_file, false);
}

void log_totals(struct log_totals *t)
{
	pthread_mutex_lock(&lock);
	*t = totals;
	pthread_mutex_unlock(&lock);
}

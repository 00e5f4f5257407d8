/*
 * log.c - the format of a line, levels, rate limits, and the file of access lines.
 *
 * writer.c writes the lines. Any thread.
 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opener.h"
#include "writer.h"

#define MESSAGE_MAX 2048 /* bytes of a line; longer ones are cut */

static _Atomic int level_max = LOG_LEVEL_NOTICE;
static _Atomic int access_style = LOG_ACCESS_NO;
static const char *access_path;            /* NULL: standard error. Main thread */
static _Atomic(struct log_limit *) limits; /* all that have ever suppressed a message */
static _Atomic bool has_suppressed;
static _Atomic uint64_t suppressed_total;

/* ---- messages ---- */

static bool has_priorities, is_journal, is_terminal; /* fixed by style_init() */
static pthread_once_t style_once = PTHREAD_ONCE_INIT;

/* Checks that standard error is the journal: a process may inherit the variable and have another
 * standard error (sd-daemon(3)). */
static bool is_journal_stream(const char *stream)
{
	uintmax_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && (uintmax_t)st.st_dev == device &&
	       (uintmax_t)st.st_ino == inode;
}

static void style_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;

	is_journal = is_journal_stream(stream);
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

bool log_enabled(enum log_level level)
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

/* Replaces control bytes, which may come from a client: a line must stay one line, and must not
 * control the terminal. */
static void make_harmless(char *s, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7F)
			s[i] = '?';
}

static void write_message(enum log_level level, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void write_message(enum log_level level, const char *format, va_list args)
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
	make_harmless(line + head, length - head);
	line[length++] = '\n';
	if (writer_is_running())
		writer_put(LINE_MESSAGE, line, length);
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

static void list_limit(struct log_limit *limit, enum log_level level, const char *format)
{
	if (atomic_exchange_explicit(&limit->is_listed, true, memory_order_relaxed))
		return;
	limit->level = level;
	limit->format = format;
	limit->next = atomic_load_explicit(&limits, memory_order_relaxed);
	/* Release: publishes level and format. */
	while (!atomic_compare_exchange_weak_explicit(&limits, &limit->next, limit,
	                                              memory_order_release, memory_order_relaxed))
		continue;
}

/* Counts a message. True: the window has had its burst. Two threads at the start of a window may
 * add a message or two. */
static bool is_over_limit(struct log_limit *limit)
{
	uint64_t now = clock_ns(),
		 start = atomic_load_explicit(&limit->window_ns, memory_order_relaxed);

	if ((start == 0 || now - start >= LOG_WINDOW_NS) &&
	    atomic_compare_exchange_strong_explicit(&limit->window_ns, &start, now,
	                                            memory_order_relaxed, memory_order_relaxed))
		atomic_store_explicit(&limit->written, 0, memory_order_relaxed);
	return atomic_fetch_add_explicit(&limit->written, 1, memory_order_relaxed) >= LOG_BURST;
}

void log_write_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
{
	va_list args;

	if (!log_enabled(level))
		return;
	/* Without the thread the number could not be reported. At startup and shutdown messages are
	 * few. */
	if (writer_is_running() && is_over_limit(limit)) {
		atomic_fetch_add_explicit(&suppressed_total, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
		list_limit(limit, level, format);
		if (!atomic_exchange_explicit(&has_suppressed, true, memory_order_acq_rel))
			writer_wake();
		return;
	}
	va_start(args, format);
	write_message(level, format, args);
	va_end(args);
}

/* Reports how many messages were suppressed. The log's thread only. */
static void report_suppressed(void)
{
	for (struct log_limit *l = atomic_load_explicit(&limits, memory_order_acquire); l;
	     l = l->next) {
		uint32_t n = atomic_exchange_explicit(&l->suppressed, 0, memory_order_relaxed);

		if (n)
			log_write(l->level, "log: suppressed %" PRIu32 " more messages like \"%s\"",
			          n, l->format);
	}
}

/* Reports how many lines were dropped since the last call. The log's thread only. */
static void report_dropped(void)
{
	static uint64_t reported;
	struct log_totals t;

	log_totals(&t);
	uint64_t dropped = t.messages_dropped + t.access_dropped;

	if (dropped > reported)
		log_write(LOG_LEVEL_WARNING,
		          "log: dropped %" PRIu64 " lines: the reader is too slow",
		          dropped - reported);
	reported = dropped;
}

static void report_file_error(void)
{
	int err = writer_take_file_error();

	if (err)
		log_warning("log.access_file: cannot write: %s; lines are lost", strerror(err));
}

/* Called when the log's thread has written everything. Suppressed messages are reported a window
 * after the first was noticed. */
static int on_idle(bool is_last)
{
	static uint64_t report_ns; /* 0: nothing to report */
	uint64_t now = clock_ns();

	report_dropped();
	report_file_error();
	if (!report_ns && atomic_load_explicit(&has_suppressed, memory_order_relaxed))
		report_ns = now + LOG_WINDOW_NS;
	if (!report_ns)
		return -1;
	if (now < report_ns && !is_last)
		return (int)((report_ns - now) / NS_PER_MS) + 1;
	report_ns = 0;
	/* Before the report: a thread that suppresses a message from now on wakes us again.
	 * Acquire: the messages of the others are counted. */
	atomic_exchange_explicit(&has_suppressed, false, memory_order_acq_rel);
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
	writer_set_file(fd);
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
	if (!writer_has_file() && !log_enabled(LOG_LEVEL_INFO))
		return LOG_ACCESS_NO;
	return (enum log_access)atomic_load_explicit(&access_style, memory_order_relaxed);
}

void log_access_write(enum log_access style, const char *line, size_t length)
{
	char whole[LOG_ACCESS_MAX + 4];
	size_t head = 0;

	assert(length > 0 && length < LOG_ACCESS_MAX);
	if (!writer_is_running())
		return; /* requests come only while it is running */
	pthread_once(&style_once, style_init);
	if (!writer_has_file() && (is_journal || (has_priorities && style == LOG_ACCESS_TEXT)))
		head = (size_t)snprintf(whole, sizeof whole, "<%d>", LOG_LEVEL_INFO);
	memcpy(whole + head, line, length);
	whole[head + length] = '\n';
	writer_put(LINE_ACCESS, whole, head + length + 1);
}

/* ---- life ---- */

int log_start(void)
{
	int err;

	pthread_once(&style_once, style_init);
	err = writer_start(on_idle);
	if (err)
		log_error("log: cannot start its thread: %s", strerror(-err));
	return err;
}

void log_flush(void)
{
	if (writer_is_running())
		writer_flush();
}

void log_stop(void)
{
	if (writer_is_running())
		writer_stop();
}

void log_totals(struct log_totals *totals)
{
	struct writer_totals w;

	writer_read_totals(&w);
	*totals = (struct log_totals){
		.messages = w.put[LINE_MESSAGE],
		.access = w.put[LINE_ACCESS],
		.messages_dropped = w.dropped[LINE_MESSAGE],
		.access_dropped = w.dropped[LINE_ACCESS],
		.suppressed = atomic_load_explicit(&suppressed_total, memory_order_relaxed),
		.failed = w.failed,
	};
}

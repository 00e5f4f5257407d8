/*
 * log.h - messages for the operator on standard error, and lines about requests, there or in a
 * file.
 *
 * From log_start() to log_stop() no call waits for the reader of the lines: they go into bounded
 * buffers, and a thread of the log writes them. Lines without room are dropped and counted. Before
 * and after, messages are written at once. Under systemd a message begins with the priority that
 * journald expects
 * (<3>..<7>), otherwise with the time; on a terminal without the date. Any thread, unless stated
 * otherwise.
 */
#ifndef DARKROOM_LOG_LOG_H
#define DARKROOM_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { /* the numbers of syslog(3) and sd-daemon(3) */
	         LOG_LEVEL_ERROR = 3,
	         LOG_LEVEL_WARNING = 4,
	         LOG_LEVEL_NOTICE = 5,
	         LOG_LEVEL_INFO = 6,
	         LOG_LEVEL_DEBUG = 7
};

enum log_access { LOG_ACCESS_NO = 1, LOG_ACCESS_TEXT, LOG_ACCESS_JSON };

/* Sets the highest level that is written; initially NOTICE. */
void log_set_level(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- rate limits, for messages that many requests may cause ---- */

#define LOG_BURST 10                        /* messages that one place writes per window */
#define LOG_WINDOW_NS UINT64_C(10000000000) /* the others are counted, and reported later */

/* One place in the code. Zeroed; lives as long as the process. Belongs to the log. */
struct log_limit {
	uint64_t window_ns;           /* start of the window; 0: there was none */
	uint32_t written, suppressed; /* in the window; not yet reported */
	/* of the first message that was suppressed; format NULL: none was */
	enum log_level level;
	const char *format;
	struct log_limit *next;
};

void log_write_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_LIMITED(level, ...)                                     \
	do {                                                        \
		static struct log_limit log_limit_;                 \
		log_write_limited(&log_limit_, level, __VA_ARGS__); \
	} while (0)

#define log_error(...) LOG_LIMITED(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) LOG_LIMITED(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* ---- lines about requests ---- */

#define LOG_ACCESS_MAX 8192 /* bytes of one, with its end */

/* Sets where they go: "stderr", or the absolute path of a file that is created if it is missing and
 * appended to. The path is borrowed until the end. place: begins the message if it fails. Returns 0
 * or -errno, logged. Main thread, before log_start(). */
int log_access_open(const char *path, const char *place);

/* Reopens the file, which may have been renamed; does nothing without a file. Returns 0, or as
 * above with the old file still in use. Main thread. */
int log_access_reopen(void);

/* Sets the style of the lines. */
void log_set_access(enum log_access access);

/* The style to be written now. On standard error the lines count as messages of level INFO. */
enum log_access log_access_style(void);

/* Writes a line in the style that log_access_style() has returned. length is 1 to LOG_ACCESS_MAX -
 * 1, without a line break. A priority precedes it as a message; JSON gets one only in the journal,
 * which removes it. */
void log_access_write(enum log_access style, const char *line, size_t length);

/* ---- life ---- */

/* Starts the thread. From now on lines are written even if the process crashes (SIGABRT, SIGSEGV,
 * SIGBUS, SIGILL, SIGFPE). Returns 0, or -errno, logged, with nothing changed. Main thread. */
int log_start(void);

/* Waits, for a second at most, until all lines are written, and ends the thread. A thread that is
 * stuck in a write stays; later lines are lost. Other threads may still log: from then on their
 * messages are written at once, and lines about requests are dropped. Main thread, before exit(3)
 * or _exit(2). */
void log_stop(void);

/* Since the start. */
struct log_totals {
	uint64_t messages, access;                 /* lines that were taken */
	uint64_t messages_dropped, access_dropped; /* no room: the reader is too slow */
	uint64_t suppressed;                       /* messages over a rate limit */
	uint64_t failed;                           /* lines that could not be written */
};

void log_totals(struct log_totals *totals);

#endif

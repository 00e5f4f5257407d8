/*
 * log.h - messages for the operator, on standard error, and lines about requests, there or in a
 * file of their own.
 *
 * From log_start() to log_stop() no call here waits for anything but a processor: lines go into a
 * bounded ring, from which a thread of the log's own writes them; what finds no room is dropped,
 * and counted. Before and after, messages are written at once. Messages have journald's priorities
 * (<3>..<7>) in front when standard error is the journal (JOURNAL_STREAM) or is no terminal; the
 * time of day on a terminal. Any thread, unless it says otherwise.
 */
#ifndef DARKROOM_LOG_LOG_H
#define DARKROOM_LOG_LOG_H

#include <stdatomic.h>
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

/* Messages above the level are not written; NOTICE until this is called. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- messages that many requests may cause at once ---- */

#define LOG_BURST 10 /* messages of one place in the code that are written ... */
#define LOG_WINDOW_NS \
	UINT64_C(10000000000) /* ... in so long; of the others only the number, afterwards */

/* One place in the code. Zeroed; lives as long as the process. */
struct log_limit {
	_Atomic uint64_t window_ns;           /* it began then */
	_Atomic uint32_t written, suppressed; /* since then; not yet reported */
	_Atomic bool is_listed;
	uint64_t due_ns; /* those are reported then, 0: nobody has noticed any. The log's thread
	                    only */
	/* fixed once it is listed */
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

/* Where they go: "stderr", or the absolute path (borrowed, for good) of a file that is made if it
 * is missing and appended to. 0, or -errno with the reason logged. Main thread, before log_start().
 */
int log_access_open(const char *path);

/* Opens the file anew, for it may have been renamed; nothing if there is none. 0, or as above: then
 * the old one stays. Main thread. */
int log_access_reopen(void);

/* What they look like. */
void log_set_access(enum log_access access);

/* What is to be written now. On standard error they count as messages of level INFO. */
enum log_access log_access_style(void);

/* style: what log_access_style() has said. length: 1 to LOG_ACCESS_MAX - 1, without an end of line
 * and without a byte that is one. JSON has a priority in front in the journal only, which takes it
 * off again. */
void log_access_write(enum log_access style, const char *line, size_t length);

/* ---- life ---- */

/* Starts the thread. From now on what was logged is written even if the process crashes (SIGABRT,
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE). 0, or -errno, logged: then all stays as it was. Main thread. */
int log_start(void);

/* Waits, for a second at most, until what has been logged is written: before _exit(2). */
void log_flush(void);

/* The same, and ends the thread; one that is stuck in a write stays, and what is logged after that
 * is lost. Main thread, when there are no other threads. */
void log_stop(void);

/* Since the start. */
struct log_totals {
	uint64_t messages, access; /* lines that were taken */
	uint64_t messages_dropped,
		access_dropped; /* there was no room: who reads them is too slow */
	uint64_t suppressed;    /* messages too many from one place in the code */
	uint64_t failed;        /* lines that could not be written */
};

void log_totals(struct log_totals *totals);

#endif

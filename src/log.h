/*
 * log.h - messages for the operator, on standard error.
 *
 * With journald's priorities (<3>..<7>) in front when standard error is the journal (JOURNAL_STREAM) or
 * is no terminal; with the time of day on a terminal. One write(2) per message, so that lines of several
 * threads never mix. Any thread.
 */
#ifndef DARKROOM_LOG_H
#define DARKROOM_LOG_H

#include <stdbool.h>

enum log_level { /* the numbers of syslog(3) and sd-daemon(3) */
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/* Messages above the level are not written; NOTICE until this is called. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif

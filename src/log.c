/*
 * log.c - messages for the operator, on standard error.
 *
 * One write(2) per message. Knows nothing of who logs. Any thread.
 */
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define MESSAGE_MAX 2048 /* bytes of a line; longer ones are cut and say so */

static _Atomic int level_max = LOG_LEVEL_NOTICE;
static bool has_priorities; /* fixed by style_init() */
static pthread_once_t style_once = PTHREAD_ONCE_INIT;

static void style_init(void)
{
	has_priorities = getenv("JOURNAL_STREAM") || !isatty(STDERR_FILENO);
	tzset();
}

void log_set_level(enum log_level level)
{
	/* Relaxed: a message more or less around the change does not matter. */
	atomic_store_explicit(&level_max, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&level_max, memory_order_relaxed);
}

/* "<6>" for journald, "12:34:56.789 warning: " on a terminal. Returns its length. */
static size_t write_head(char *out, size_t size, enum log_level level)
{
	static const char *const names[] = {
		[LOG_LEVEL_ERROR] = "error: ", [LOG_LEVEL_WARNING] = "warning: ", [LOG_LEVEL_NOTICE] = "",
		[LOG_LEVEL_INFO] = "", [LOG_LEVEL_DEBUG] = "debug: ",
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
		length = snprintf(out, size, "%02d:%02d:%02d.%03ld %s", local.tm_hour, local.tm_min, local.tm_sec,
		                  now.tv_nsec / 1000000, names[level]);
	}
	assert(length > 0 && (size_t)length < size);
	return (size_t)length;
}

/* A line that somebody else's bytes got into must stay one line, and must not command the terminal. */
static void make_harmless(char *s, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7F)
			s[i] = '?';
}

void log_write(enum log_level level, const char *format, ...)
{
	int saved = errno; /* callers report errno after logging */
	char line[MESSAGE_MAX];
	size_t head, length;
	va_list args;
	int made;

	if (!log_enabled(level))
		return;
	head = write_head(line, sizeof line, level);
	errno = saved; /* for %m */
	va_start(args, format);
	made = vsnprintf(line + head, sizeof line - head - 1, format, args);
	va_end(args);
	if (made < 0)
		goto out;
	length = head + (size_t)made;
	if (length > sizeof line - 2) {
		length = sizeof line - 2;
		memcpy(line + length - 3, "...", 3);
	}
	make_harmless(line + head, length - head);
	line[length++] = '\n';
	while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR)
		;
out:
	errno = saved;
}

/* seed_seams.c - the calls of libc about chance and the date, and the messages, of a program that
 * runs seeds. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "log/log.h"
#include "seam.h"
#include "seeds.h"

/* ---- time and chance ---- */

SEAM(time_t, time, time_t *out)
{
	CALLED(time);
	(void)out;
	return (time_t)(seed_program.now_ns(CLOCK_REALTIME) / NS_PER_S);
}

SEAM(ssize_t, getrandom, void *to, size_t size, unsigned flags)
{
	CALLED(getrandom);
	(void)flags;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)random_next(seed_program.chance());
	return (ssize_t)size;
}

/* ---- messages ---- */

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	if (!seeds_are_loud)
		return;
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void __wrap_log_write(enum log_level, const char *, ...) __attribute__((format(printf, 2, 3)));
void __wrap_log_write_limited(struct log_limit *, enum log_level, const char *, ...)
	__attribute__((format(printf, 3, 4)));

SEAM(void, log_write, enum log_level level, const char *format, ...)
{
	va_list args;

	CALLED(log_write);
	(void)level;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

SEAM(void, log_write_limited, struct log_limit *limit, enum log_level level, const char *format,
     ...)
{
	va_list args;

	CALLED(log_write_limited);
	(void)limit, (void)level;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

SEAM(void, __assert_fail, const char *what, const char *file, unsigned line, const char *function)
{
	CALLED(__assert_fail);
	promise_broken("%s:%u: %s: %s", file, line, function, what);
	abort();
}

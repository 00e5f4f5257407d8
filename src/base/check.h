/*
 * check.h - assertions, graded.
 *
 * assert() is for our own mistakes and stays on in production (NDEBUG is never defined).
 * debug_assert() is for hot paths and whole-structure checks: on with -DDARKROOM_DEBUG, as in the
 * test and sanitizer builds. Hostile input is never asserted on.
 */
#ifndef DARKROOM_BASE_CHECK_H
#define DARKROOM_BASE_CHECK_H

#undef NDEBUG
#include <assert.h>

#ifdef DARKROOM_DEBUG
#define debug_assert(condition) assert(condition)
#else
#define debug_assert(condition) \
	((void)(0 && (condition))) /* not evaluated, but its functions count as used */
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define CACHE_LINE 64

#endif

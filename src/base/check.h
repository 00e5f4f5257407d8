/*
 * check.h - two grades of assertions, and a few macros.
 *
 * assert() is for mistakes of the program and stays on in production: NDEBUG is never defined.
 * debug_assert() is for hot paths and checks of whole structures. It is on with -DDARKROOM_DEBUG,
 * as in the sanitizer builds. Input from outside is never asserted on.
 */
#ifndef DARKROOM_BASE_CHECK_H
#define DARKROOM_BASE_CHECK_H

#undef NDEBUG
#include <assert.h>

#ifdef DARKROOM_DEBUG
#define debug_assert(condition) assert(condition)
#else
#define debug_assert(condition) \
	((void)(0 && (condition))) /* not evaluated; its functions count as used */
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define CACHE_LINE 64

#endif

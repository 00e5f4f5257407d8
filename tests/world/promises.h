/* promises.h - what disk_seams.c needs of the program. */
#ifndef DARKROOM_TESTS_WORLD_PROMISES_H
#define DARKROOM_TESTS_WORLD_PROMISES_H

#include <stdbool.h>

extern bool promises_are_loud; /* the store's messages are printed */

/* Ends the run of a seed: a promise was broken. */
_Noreturn void promise_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

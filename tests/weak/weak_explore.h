/*
 * weak_explore.h - runs a scenario in every order of its threads' steps, with every choice of the
 * memory (weak_memory.h).
 *
 * A scenario calls the program's own functions. Their files are compiled with -fsanitize=thread and
 * linked with weak_tsan.c, so that every access to memory is a call of the checker.
 * tests/weak/check builds and runs all of it.
 */
#ifndef DARKROOM_TESTS_WEAK_EXPLORE_H
#define DARKROOM_TESTS_WEAK_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weak_scenario {
	const char *name;
	unsigned threads;
	bool checks_races;
	void (*start)(void); /* before each execution: prepares and shares the memory */
	void (*run)(unsigned thread);
	const char *(*check)(void); /* when nothing moves any more: NULL, or what is wrong */
};

/* Explores the scenario that argv names, or all of them. Returns the program's exit status: 0 if
 * they hold, 1 if one is violated. */
int weak_main(int argc, char **argv, const struct weak_scenario *scenarios, unsigned count);

/* ---- for scenarios ---- */

/* Ends the execution as a violation, unless the condition holds. */
void weak_expect(bool condition, const char *what);

/* Blocks the thread until the newest 64-bit value at the address is not 0. */
void weak_wait(const void *address);

/* Returns whether the thread is blocked. */
bool weak_is_waiting(unsigned thread);

/* Tells that the future of the thread depends only on the memory and on `state`, and not on
 * what it has read before. */
void weak_forget(uint64_t state);

/* ---- for weak_tsan.c and weak_memory.c ---- */

/* Returns the thread that runs, WEAK_FINAL during check(), or a larger number during start(). */
unsigned weak_current(void);

/* Gives the other threads their turn, before a step. */
void weak_yield(void);

/* Adds a step to the trace, and the value that it has read to the thread's history. */
void weak_note(const char *what, uintptr_t address, uint64_t value, int order);

/* Returns a number below n; the exploration tries all of them. */
unsigned weak_choose(unsigned n);

#endif

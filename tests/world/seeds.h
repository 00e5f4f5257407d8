/*
 * seeds.h - programs that run seeds: each draws what happens, with faults. Of a seed that breaks a
 * promise, those faults are left out without which it still does, and a line repeats the rest.
 *
 * Each seed has a process of its own, which ends with it.
 *
 * usage: NAME [--seed N] [--count N] [--only MASK] [--loud]
 * MASK has a bit for each fault of the seed.
 */
#ifndef DARKROOM_TESTS_WORLD_SEEDS_H
#define DARKROOM_TESTS_WORLD_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/random.h"

#define SEED_FAULTS_MAX 8

struct seed_fault {
	uint64_t at; /* number of the call at which it happens */
	unsigned kind;
	uint64_t seed; /* of what it decides */
};

/* Of the program. */
extern const struct seed_program {
	const char *name;
	const char *call;         /* what faults are counted by */
	const char *const *words; /* for the kinds of faults */
	/* Draws the faults of a seed, in their order. Returns their number. */
	unsigned (*draw)(uint64_t seed, struct seed_fault fault[SEED_FAULTS_MAX]);
	void (*run)(uint64_t seed, const struct seed_fault *fault, unsigned count);
	uint64_t (*calls)(void);
	uint64_t (*now_ns)(clockid_t id); /* for who asks */
	struct random *(*chance)(void);   /* behind getrandom() */
} seed_program;

extern bool seeds_are_loud; /* what happens is printed */

/* Ends the process: a promise was broken. */
_Noreturn void promise_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define FAIL promise_broken

/* Prints what happens, if somebody wants to read it. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

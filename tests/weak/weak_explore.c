/*
 * weak_explore.c - depth-first search over all executions of a scenario.
 *
 * An execution is determined by its choices. It is run again for each of them, from the start, and
 * cut when it comes to a state that was seen before. Threads are coroutines, so what they do
 * between two steps is a function of what they have read: the state is the memory, and a hash of
 * what each thread has read. Two states with one hash of 64 bits would be taken for one.
 */
#include "weak_explore.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/clock.h"
#include "weak_memory.h"

#define STACK_SIZE (64 << 10)
#define CHOICES 4096
#define STEPS_MAX 2000
#define NOBODY (WEAK_THREADS + 1)

struct fiber {
	ucontext_t first;  /* the first time */
	jmp_buf begin, at; /* later, and in the middle */
	bool is_made, is_started, has_ended;
	uintptr_t waits_for;
	uint64_t history;
	char stack[STACK_SIZE];
};

struct choice {
	uint8_t made, count;
};

struct step {
	unsigned thread;
	const char *what;
	uintptr_t address;
	uint64_t value;
	int order;
};

static const struct weak_scenario *scenario;
static struct fiber fibers[WEAK_THREADS];
static unsigned current = NOBODY;
static jmp_buf scheduler;
static const char *violation;

static struct choice choices[CHOICES];
static unsigned choice_count, choice_at, replayed;
static struct step steps[STEPS_MAX];
static unsigned step_count;

static uint64_t *seen; /* hashes of states; 0: free */
static size_t seen_size, seen_count;

/* ---- states seen ---- */

static void seen_grow(void)
{
	size_t size = seen_size ? seen_size * 2 : (size_t)1 << 16;
	uint64_t *table = calloc(size, sizeof *table);

	if (!table) {
		fprintf(stderr, "weak_explore: no memory for %zu states\n", size);
		exit(2);
	}
	for (size_t i = 0; i < seen_size; i++) {
		size_t at = seen[i] & (size - 1);

		if (!seen[i])
			continue;
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = seen[i];
	}
	free(seen);
	seen = table;
	seen_size = size;
}

/* Adds the hash. Returns whether it was there. */
static bool seen_before(uint64_t hash)
{
	if (seen_count * 2 >= seen_size)
		seen_grow();
	hash += !hash;
	for (size_t at = hash & (seen_size - 1);; at = (at + 1) & (seen_size - 1)) {
		if (seen[at] == hash)
			return true;
		if (!seen[at]) {
			seen[at] = hash;
			seen_count++;
			return false;
		}
	}
}

static uint64_t state_hash(void)
{
	uint64_t h = 1;

	for (unsigned t = 0; t < scenario->threads; t++) {
		h = weak_mix(h, fibers[t].history);
		h = weak_mix(h, fibers[t].waits_for * 2 + fibers[t].has_ended);
	}
	return weak_memory_hash(h);
}

/* ---- called by the scenario and the memory ---- */

unsigned weak_current(void)
{
	return current;
}

unsigned weak_choose(unsigned n)
{
	if (n <= 1 || current > WEAK_FINAL)
		return 0;
	if (choice_at == choice_count) {
		if (choice_count == CHOICES) {
			fprintf(stderr, "weak_explore: too many choices\n");
			exit(2);
		}
		choices[choice_count++] = (struct choice){ 0, (uint8_t)n };
	}
	return choices[choice_at++].made;
}

void weak_yield(void)
{
	struct fiber *f = &fibers[current];

	if (_setjmp(f->at) == 0)
		_longjmp(scheduler, 1);
}

void weak_note(const char *what, uintptr_t address, uint64_t value, int order)
{
	if (step_count < STEPS_MAX)
		steps[step_count++] = (struct step){ current, what, address, value, order };
	if (current < WEAK_THREADS)
		fibers[current].history = weak_mix(fibers[current].history + address, value + 1);
}

void weak_forget(uint64_t state)
{
	fibers[current].history = state;
}

void weak_expect(bool condition, const char *what)
{
	if (condition)
		return;
	violation = what;
	if (current < WEAK_THREADS)
		_longjmp(scheduler, 1);
}

void weak_wait(const void *address)
{
	fibers[current].waits_for = (uintptr_t)address;
	weak_yield();
	fibers[current].waits_for = 0;
}

bool weak_is_waiting(unsigned thread)
{
	return fibers[thread].waits_for != 0;
}

/* Time stands still. */
uint64_t clock_ns(void)
{
	return 0;
}

/* assert() of the program. */
void __assert_fail(const char *text, const char *file, unsigned line, const char *function);
void __assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
	(void)file;
	(void)line;
	(void)function;
	weak_expect(false, text);
	abort();
}

/* ---- executions ---- */

static void fiber_main(void)
{
	_setjmp(fibers[current].begin); /* each execution comes back here */
	fibers[current].is_started = true;
	scenario->run(current);
	fibers[current].has_ended = true;
	_longjmp(scheduler, 1);
}

static void fiber_prepare(struct fiber *f)
{
	f->is_started = f->has_ended = false;
	f->waits_for = f->history = 0;
}

static void fiber_make(struct fiber *f)
{
	f->is_made = true;
	getcontext(&f->first);
	f->first.uc_stack.ss_sp = f->stack;
	f->first.uc_stack.ss_size = sizeof f->stack;
	makecontext(&f->first, fiber_main, 0);
	setcontext(&f->first);
}

/* Runs the thread until its next step. */
static void resume(unsigned thread)
{
	struct fiber *f = &fibers[thread];

	current = thread;
	if (_setjmp(scheduler) == 0) {
		if (!f->is_made)
			fiber_make(f);
		_longjmp(f->is_started ? f->at : f->begin, 1);
	}
	current = NOBODY;
}

static unsigned alive(void)
{
	unsigned threads = 0;

	for (unsigned t = 0; t < scenario->threads; t++)
		threads |= (unsigned)!fibers[t].has_ended << t;
	return threads;
}

static unsigned list_enabled(unsigned list[WEAK_THREADS])
{
	unsigned n = 0;

	for (unsigned t = 0; t < scenario->threads; t++)
		if (!fibers[t].has_ended &&
		    (!fibers[t].waits_for || weak_newest(fibers[t].waits_for, 8)))
			list[n++] = t;
	return n;
}

/* Runs one execution, up to its end or to a state that was seen before. Returns whether it came to
 * the end. */
static bool execute(void)
{
	unsigned enabled[WEAK_THREADS], n;

	choice_at = step_count = 0;
	current = NOBODY;
	weak_share_nothing();
	weak_memory_reset(scenario->checks_races);
	scenario->start();
	for (unsigned t = 0; t < scenario->threads; t++) {
		fiber_prepare(&fibers[t]);
		resume(t); /* up to its first step */
	}
	while ((n = list_enabled(enabled)) > 0 && !violation) {
		weak_collect(alive());
		if (choice_at >= replayed && seen_before(state_hash()))
			return false;
		current = WEAK_FINAL; /* of no thread */
		unsigned i = weak_choose(n);

		resume(enabled[i]);
		if (step_count == STEPS_MAX)
			weak_expect(false, "the execution does not end");
	}
	if (!violation) {
		current = WEAK_FINAL;
		violation = scenario->check();
		current = NOBODY;
	}
	return true;
}

/* Sets the choices of the next execution. Returns false if there is none. */
static bool advance(void)
{
	while (choice_count &&
	       choices[choice_count - 1].made + 1 == choices[choice_count - 1].count)
		choice_count--;
	if (!choice_count)
		return false;
	choices[choice_count - 1].made++;
	replayed = choice_count;
	return true;
}

static void print_trace(void)
{
	static const char *const orders[] = { "relaxed", "consume", "acquire",
		                              "release", "acq_rel", "seq_cst" };

	for (unsigned i = 0; i < step_count; i++) {
		const struct step *s = &steps[i];
		size_t offset = 0;
		const char *name = weak_name(s->address, &offset);

		printf("    thread %u: %-8s %s+%zu = %llx %s\n", s->thread, s->what,
		       name ? name : "-", offset, (unsigned long long)s->value,
		       s->order >= 0 ? orders[s->order] : "");
	}
}

/* Returns whether the scenario holds. */
static bool explore(const struct weak_scenario *s)
{
	unsigned long executions = 0, ends = 0;

	scenario = s;
	violation = NULL;
	choice_count = replayed = 0;
	seen_count = 0;
	free(seen);
	seen = NULL;
	seen_size = 0;
	do {
		executions++;
		ends += execute();
	} while (!violation && advance());
	printf("%-10s %-24s %9zu states, %9lu executions, %7lu ends%s%s\n",
	       violation ? "VIOLATED" : "holds", s->name, seen_count, executions, ends,
	       violation ? ": " : "", violation ? violation : "");
	if (violation && !getenv("WEAK_QUIET"))
		print_trace();
	return !violation && ends > 0;
}

int weak_main(int argc, char **argv, const struct weak_scenario *scenarios, unsigned count)
{
	bool is_good = true, is_found = false;

	for (unsigned i = 0; i < count; i++)
		if (argc < 2 || strcmp(argv[1], scenarios[i].name) == 0) {
			is_found = true;
			is_good = explore(&scenarios[i]) && is_good;
			fflush(stdout);
		}
	return !is_found ? 2 : !is_good;
}

/*
 * coroutine.h - functions that are suspended and resumed, each on a stack of its own.
 *
 * All that switch to each other run on one thread. A page below each stack cannot be accessed, so
 * that an overflow ends the program. The sanitizers are told of each switch. ThreadSanitizer takes
 * each coroutine for a thread, and a switch does not order their accesses. x86-64 and arm64; on
 * other processors none is possible.
 */
#ifndef DARKROOM_BASE_COROUTINE_H
#define DARKROOM_BASE_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>

struct coroutine {
	void *place; /* the stack pointer while it is suspended */
	void (*run)(void *);
	void *arg;
	char *stack; /* the lowest byte that it may use; NULL: the thread's own, not known yet */
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer's */
	void *fiber;      /* ThreadSanitizer's */
};

/* Returns whether the calling thread may switch stacks. It may not while the processor keeps a
 * shadow stack of its return addresses. */
bool coroutine_is_possible(void);

/* Makes the calling thread a coroutine, which runs. */
void coroutine_init_self(struct coroutine *c);

/* Makes a coroutine that calls run(arg) when it is resumed for the first time. run() must not
 * return. stack_bytes: of its stack, a multiple of 64 KiB. Returns 0 or -ENOMEM. */
int coroutine_init(struct coroutine *c, size_t stack_bytes, void (*run)(void *), void *arg);

/* Frees the stack of a coroutine that is suspended. */
void coroutine_fini(struct coroutine *c);

/* Suspends `from`, which runs, and resumes `to`. Returns when `from` is resumed. is_last: it never
 * is. */
void coroutine_switch(struct coroutine *from, struct coroutine *to, bool is_last);

/* Tells ThreadSanitizer that what comes after coroutine_acquire() in one coroutine has seen what
 * came before coroutine_release() in another one, for the same address. */
void coroutine_release(void *address);
void coroutine_acquire(void *address);

/* Tells it that each coroutine has its own content of that memory. */
void coroutine_exchanges(void *place, size_t size);

#endif

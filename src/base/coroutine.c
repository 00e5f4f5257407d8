/* coroutine.c - the switch, the stacks, and the calls that sanitizers need. */
#include "coroutine.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* ---- sanitizers: gcc's, and the AddressSanitizer of clang ---- */

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER
#endif
#endif

#ifdef WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define LEAVE_STACK(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define ENTER_STACK(saved, bottom, size) __sanitizer_finish_switch_fiber(saved, bottom, size)
#define FORGET(place, size) __asan_unpoison_memory_region(place, size)
#else
#define LEAVE_STACK(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#define ENTER_STACK(saved, bottom, size) ((void)(saved), (void)(bottom), (void)(size))
#define FORGET(place, size) ((void)(place), (void)(size))
#endif

/* tests/world compiles this file itself without the sanitizer. */
#if defined(__SANITIZE_THREAD__) || defined(WITH_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#define OWN_FIBER() __tsan_get_current_fiber()
#define NEW_FIBER() __tsan_create_fiber(0)
#define FREE_FIBER(fiber) __tsan_destroy_fiber(fiber)
#define GO_TO_FIBER(fiber) __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync)
#define RELEASE(address) __tsan_release(address)
#define ACQUIRE(address) __tsan_acquire(address)
void AnnotateBenignRaceSized(const char *, int, const volatile void *, size_t, const char *);
#define IGNORE(place, size) AnnotateBenignRaceSized(__FILE__, __LINE__, place, size, "exchanged")
#else
#define OWN_FIBER() NULL
#define NEW_FIBER() NULL
#define FREE_FIBER(fiber) ((void)(fiber))
#define GO_TO_FIBER(fiber) ((void)(fiber))
#define RELEASE(address) ((void)(address))
#define ACQUIRE(address) ((void)(address))
#define IGNORE(place, size) ((void)(place), (void)(size))
#endif

void coroutine_release(void *address)
{
	RELEASE(address);
}

void coroutine_acquire(void *address)
{
	ACQUIRE(address);
}

void coroutine_exchanges(void *place, size_t size)
{
	IGNORE(place, size);
}

/* ---- the switch ---- */

/* Saves what a function must preserve on the stack, stores the stack pointer in *from, and takes
 * the same from the stack `to`. */
void switch_stacks(void **from, void *to);

#if defined(__x86_64__)
/* Control words, six registers, the address of the next instruction, and one that aligns the stack
 * as after a call. */
#define WORDS 9
__asm__(".text\n.globl switch_stacks\n.type switch_stacks,@function\n"
        "switch_stacks:\n"
        "	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
        "	pushq %r13\n	pushq %r14\n	pushq %r15\n"
        "	subq $8, %rsp\n	stmxcsr (%rsp)\n	fnstcw 4(%rsp)\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	ldmxcsr (%rsp)\n	fldcw 4(%rsp)\n	addq $8, %rsp\n"
        "	popq %r15\n	popq %r14\n	popq %r13\n"
        "	popq %r12\n	popq %rbx\n	popq %rbp\n"
        "	ret\n.size switch_stacks,.-switch_stacks\n");

/* Fills the words that the first switch to a stack takes. */
static void prepare(uint64_t *words, void (*begin)(void))
{
	words[0] = UINT64_C(0x037f00001f80); /* the control words of a new process */
	words[7] = (uint64_t)(uintptr_t)begin;
}
#elif defined(__aarch64__)
#define WORDS 20 /* x19 to x30, d8 to d15 */
__asm__(".text\n.globl switch_stacks\n.type switch_stacks,%function\n"
        "switch_stacks:\n"
        "	stp x19, x20, [sp, #-160]!\n	stp x21, x22, [sp, #16]\n"
        "	stp x23, x24, [sp, #32]\n	stp x25, x26, [sp, #48]\n"
        "	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
        "	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
        "	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
        "	mov x9, sp\n	str x9, [x0]\n"
        "	mov sp, x1\n"
        "	ldp x21, x22, [sp, #16]\n	ldp x23, x24, [sp, #32]\n"
        "	ldp x25, x26, [sp, #48]\n	ldp x27, x28, [sp, #64]\n"
        "	ldp x29, x30, [sp, #80]\n"
        "	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
        "	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
        "	ldp x19, x20, [sp], #160\n"
        "	ret\n.size switch_stacks,.-switch_stacks\n");

static void prepare(uint64_t *words, void (*begin)(void))
{
	words[11] = (uint64_t)(uintptr_t)begin;
}
#else
#define WORDS 1
#define NO_SWITCH
void switch_stacks(void **from, void *to)
{
	(void)from;
	(void)to;
	__builtin_trap();
}

static void prepare(uint64_t *words, void (*begin)(void))
{
	(void)words;
	(void)begin;
}
#endif

/* ---- coroutines ---- */

/* The switch that is under way: a coroutine that begins finds its own struct here. */
static _Thread_local struct {
	struct coroutine *from, *to;
} under_way;

/* The sanitizer would take what a switch writes for a race of two threads. */
#define UNSEEN __attribute__((no_sanitize("thread")))

static UNSEEN void begin(void)
{
	struct coroutine *c = under_way.to;
	const void *bottom = NULL;
	size_t size = 0;

	ENTER_STACK(NULL, &bottom, &size);
	if (!under_way.from->stack) { /* the thread's own */
		under_way.from->stack = (char *)(uintptr_t)bottom;
		under_way.from->stack_bytes = size;
	}
	coroutine_acquire(c);
	c->run(c->arg);
	__builtin_trap(); /* it must not return */
}

UNSEEN void coroutine_switch(struct coroutine *from, struct coroutine *to, bool is_last)
{
	under_way.from = from;
	under_way.to = to;
	LEAVE_STACK(is_last ? NULL : &from->fake_stack, to->stack, to->stack_bytes);
	GO_TO_FIBER(to->fiber);
	switch_stacks(&from->place, to->place);
	ENTER_STACK(from->fake_stack, NULL, NULL);
}

bool coroutine_is_possible(void)
{
#ifdef __x86_64__
	uint64_t place = 0;

	/* rdsspq, which does nothing without a shadow stack; older assemblers lack its name. */
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(place));
	return place == 0;
#elif defined NO_SWITCH
	return false;
#else
	return true;
#endif
}

/* ---- stacks ---- */

#define GUARD_BYTES (64u << 10) /* the largest page of arm64 */

void coroutine_init_self(struct coroutine *c)
{
	memset(c, 0, sizeof *c);
	c->fiber = OWN_FIBER();
}

int coroutine_init(struct coroutine *c, size_t stack_bytes, void (*run)(void *), void *arg)
{
	char *all = mmap(NULL, GUARD_BYTES + stack_bytes, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(all, GUARD_BYTES, PROT_NONE)) {
		munmap(all, GUARD_BYTES + stack_bytes);
		return -ENOMEM;
	}
	*c = (struct coroutine){
		.stack = all + GUARD_BYTES, .stack_bytes = stack_bytes, .run = run, .arg = arg
	};
	uint64_t *words = (uint64_t *)(void *)(c->stack + stack_bytes) - WORDS;

	prepare(words, begin);
	c->place = words;
	c->fiber = NEW_FIBER();
	coroutine_release(c);
	return 0;
}

void coroutine_fini(struct coroutine *c)
{
	FORGET(c->stack, c->stack_bytes); /* the variables of functions that have not returned */
	munmap(c->stack - GUARD_BYTES, GUARD_BYTES + c->stack_bytes);
	FREE_FIBER(c->fiber);
}

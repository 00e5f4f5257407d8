/*
 * weak_tsan.c - the calls that the compiler makes of each access to memory with -fsanitize=thread,
 * for the checker instead of ThreadSanitizer's library.
 *
 * Accesses to memory that is not shared, or outside of the explored threads, are made as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weak_explore.h"
#include "weak_memory.h"

/* Returns whether the checker makes this access. */
static bool is_ours(uintptr_t address)
{
	return weak_current() <= WEAK_FINAL && weak_is_shared(address);
}

/* A step of an explored thread: the others may come first. */
static unsigned begin_step(void)
{
	if (weak_current() < WEAK_THREADS)
		weak_yield();
	return weak_current();
}

/* ---- atomic operations ---- */

#define MODIFY(bits, type, name, native, change, value)                                            \
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order);                    \
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order)                     \
	{                                                                                          \
		if (!is_ours((uintptr_t)p))                                                        \
			return native(p, v, __ATOMIC_SEQ_CST);                                     \
		unsigned t = begin_step();                                                         \
		uint64_t old =                                                                     \
			weak_modify(t, (uintptr_t)p, sizeof *p, change, (uint64_t)(value), order); \
                                                                                                   \
		weak_note(#name, (uintptr_t)p, old, order);                                        \
		return (type)old;                                                                  \
	}

#define COMPARE(bits, type, name)                                                              \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile type *p, type *c, type v,   \
	                                                  int order, int failed);              \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile type *p, type *c, type v,   \
	                                                  int order, int failed)               \
	{                                                                                      \
		bool done;                                                                     \
                                                                                               \
		if (!is_ours((uintptr_t)p))                                                    \
			return __atomic_compare_exchange_n(p, c, v, 0, __ATOMIC_SEQ_CST,       \
			                                   __ATOMIC_SEQ_CST);                  \
		unsigned t = begin_step();                                                     \
		uint64_t old = weak_compare_exchange(t, (uintptr_t)p, sizeof *p, *c, v, order, \
		                                     failed, &done);                           \
                                                                                               \
		weak_note(done ? "cas" : "cas-no", (uintptr_t)p, old, order);                  \
		*c = (type)old;                                                                \
		return done;                                                                   \
	}

#define ATOMICS(bits, type)                                                       \
	type __tsan_atomic##bits##_load(const volatile type *p, int order);       \
	type __tsan_atomic##bits##_load(const volatile type *p, int order)        \
	{                                                                         \
		if (!is_ours((uintptr_t)p))                                       \
			return __atomic_load_n(p, __ATOMIC_SEQ_CST);              \
		unsigned t = begin_step();                                        \
		uint64_t v = weak_load(t, (uintptr_t)p, sizeof *p, order);        \
                                                                                  \
		weak_note("load", (uintptr_t)p, v, order);                        \
		return (type)v;                                                   \
	}                                                                         \
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order);    \
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order)     \
	{                                                                         \
		if (!is_ours((uintptr_t)p)) {                                     \
			__atomic_store_n(p, v, __ATOMIC_SEQ_CST);                 \
			return;                                                   \
		}                                                                 \
		weak_store(begin_step(), (uintptr_t)p, sizeof *p, v, order);      \
		weak_note("store", (uintptr_t)p, v, order);                       \
	}                                                                         \
	MODIFY(bits, type, exchange, __atomic_exchange_n, WEAK_SET, v)            \
	MODIFY(bits, type, fetch_add, __atomic_fetch_add, WEAK_ADD, v)            \
	MODIFY(bits, type, fetch_sub, __atomic_fetch_sub, WEAK_ADD, -(uint64_t)v) \
	MODIFY(bits, type, fetch_and, __atomic_fetch_and, WEAK_AND, v)            \
	MODIFY(bits, type, fetch_or, __atomic_fetch_or, WEAK_OR, v)               \
	COMPARE(bits, type, strong)                                               \
	COMPARE(bits, type, weak)

ATOMICS(8, uint8_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	if (weak_current() > WEAK_FINAL)
		return;
	weak_fence(begin_step(), order);
	weak_note("fence", 0, 0, order);
}

/* ---- plain accesses ---- */

static void plain(const void *p, bool is_write)
{
	unsigned t = weak_current();

	if (t >= WEAK_THREADS || !weak_is_shared((uintptr_t)p))
		return;
	/* Only pointers are read as plain memory: the history has their values. */
	uint64_t value = 0;

	if (!is_write && (uintptr_t)p % sizeof value == 0)
		memcpy(&value, p, sizeof value);
	weak_note(is_write ? "write" : "read", (uintptr_t)p, value, -1);
	weak_expect(weak_plain(t, (uintptr_t)p, is_write), "a data race");
}

#define PLAIN(name, is_write)       \
	void name(const void *p);   \
	void name(const void *p)    \
	{                           \
		plain(p, is_write); \
	}

PLAIN(__tsan_read1, false)
PLAIN(__tsan_read2, false)
PLAIN(__tsan_read4, false)
PLAIN(__tsan_read8, false)
PLAIN(__tsan_read16, false)
PLAIN(__tsan_write1, true)
PLAIN(__tsan_write2, true)
PLAIN(__tsan_write4, true)
PLAIN(__tsan_write8, true)
PLAIN(__tsan_write16, true)

void __tsan_func_entry(const void *caller);
void __tsan_func_entry(const void *caller)
{
	(void)caller;
}

void __tsan_read_range(const void *p, size_t size);
void __tsan_read_range(const void *p, size_t size)
{
	for (size_t i = 0; i < size; i += 8)
		plain((const char *)p + i, false);
}

void __tsan_write_range(const void *p, size_t size);
void __tsan_write_range(const void *p, size_t size)
{
	for (size_t i = 0; i < size; i += 8)
		plain((const char *)p + i, true);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/*
 * atomics.c - the calls that gcc makes of each access to memory with -fsanitize=thread, instead of
 * ThreadSanitizer's library: each atomic operation is a point at which other threads may come
 * first.
 *
 * The files that are compiled so run one operation at a time, in one order for all threads. Weak
 * memory orders are the business of tests/weak.
 */
#include <stddef.h>
#include <stdint.h>

#include "machine.h"

/* By priorities a step only takes its time. Otherwise one in four is delayed, some for long. */
static void step(void)
{
	if (!machine_is_on() || !machine.atomic)
		return;
	uint64_t delay = 0, random = machine_random();

	if (!machine.pct && random % 4 == 0)
		delay = (random >> 8) % (machine.atomic << (random >> 32) % 8);
	machine_charge(machine.atomic + delay);
}

/* Prototypes for -Wmissing-prototypes: only the compiler calls these. */
#define CALL(result, name, ...)   \
	result name(__VA_ARGS__); \
	result name(__VA_ARGS__)

#define MODIFY(bits, type, name)                                                      \
	CALL(type, __tsan_atomic##bits##_##name, volatile type *p, type v, int order) \
	{                                                                             \
		(void)order;                                                          \
		step();                                                               \
		return __atomic_##name(p, v, __ATOMIC_SEQ_CST);                       \
	}

#define COMPARE(bits, type, name)                                                             \
	CALL(int, __tsan_atomic##bits##_compare_exchange_##name, volatile type *p, type *was, \
	     type v, int order, int failed)                                                   \
	{                                                                                     \
		(void)order;                                                                  \
		(void)failed;                                                                 \
		step();                                                                       \
		return __atomic_compare_exchange_n(p, was, v, 0, __ATOMIC_SEQ_CST,            \
		                                   __ATOMIC_SEQ_CST);                         \
	}

#define ATOMICS(bits, type)                                                             \
	CALL(type, __tsan_atomic##bits##_load, const volatile type *p, int order)       \
	{                                                                               \
		(void)order;                                                            \
		step();                                                                 \
		return __atomic_load_n(p, __ATOMIC_SEQ_CST);                            \
	}                                                                               \
	CALL(void, __tsan_atomic##bits##_store, volatile type *p, type v, int order)    \
	{                                                                               \
		(void)order;                                                            \
		step();                                                                 \
		__atomic_store_n(p, v, __ATOMIC_SEQ_CST);                               \
	}                                                                               \
	CALL(type, __tsan_atomic##bits##_exchange, volatile type *p, type v, int order) \
	{                                                                               \
		(void)order;                                                            \
		step();                                                                 \
		return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                     \
	}                                                                               \
	MODIFY(bits, type, fetch_add)                                                   \
	MODIFY(bits, type, fetch_sub)                                                   \
	MODIFY(bits, type, fetch_and)                                                   \
	MODIFY(bits, type, fetch_or)                                                    \
	COMPARE(bits, type, strong)                                                     \
	COMPARE(bits, type, weak)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

CALL(void, __tsan_atomic_thread_fence, int order)
{
	(void)order;
	step();
}

/* ---- other accesses ---- */

#define PLAIN(name)               \
	CALL(void, name, void *p) \
	{                         \
		(void)p;          \
	}
#define PLAIN_SIZE(size)                   \
	PLAIN(__tsan_read##size)           \
	PLAIN(__tsan_write##size)          \
	PLAIN(__tsan_unaligned_read##size) \
	PLAIN(__tsan_unaligned_write##size)

PLAIN_SIZE(1)
PLAIN_SIZE(2)
PLAIN_SIZE(4)
PLAIN_SIZE(8)
PLAIN_SIZE(16)

#define RANGE(name)                            \
	CALL(void, name, void *p, size_t size) \
	{                                      \
		(void)p;                       \
		(void)size;                    \
	}

RANGE(__tsan_read_range)
RANGE(__tsan_write_range)

CALL(void, __tsan_init, void)
{
}

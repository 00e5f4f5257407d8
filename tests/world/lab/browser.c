/*
 * browser.c - what a browser does not have: stacks to switch, cores to bind to, a log, counters.
 *
 * A coroutine leaves its functions, and comes back to them, as wasm-opt --asyncify has compiled
 * them: run.js. All else of the program is the scheduler, the world, and tests/bench/synthetic.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/coroutine.h"
#include "layout/topology.h"
#include "log/log.h"
#include "telemetry/perf.h"

#define EXPORT(name) __attribute__((export_name(#name)))

/* Defines a function that only returns a value. */
#define NOTHING(type, name, value, ...) \
	type name(__VA_ARGS__)          \
	{                               \
		return value;           \
	}

/* ---- coroutines ---- */

#define FRAMES_BYTES (32u << 10) /* in which asyncify keeps what the functions had */

/* At coroutine.place, before the stack. run.js knows the order. */
struct frames {
	uint32_t next, end; /* asyncify's */
	uint32_t stack;     /* the stack pointer while the coroutine is suspended */
	uint32_t is_new;
};

__attribute__((import_module("lab"), import_name("switch"))) void lab_switch(struct frames *from,
                                                                             struct frames *to);

int coroutine_init(struct coroutine *c, size_t stack_bytes, void (*run)(void *), void *arg)
{
	struct frames *f = aligned_alloc(16, FRAMES_BYTES + stack_bytes);

	if (!f)
		return -ENOMEM;
	f->next = (uint32_t)(uintptr_t)(f + 1);
	f->end = (uint32_t)(uintptr_t)f + FRAMES_BYTES;
	f->stack = f->end + (uint32_t)stack_bytes;
	f->is_new = run != NULL;
	*c = (struct coroutine){ .place = f, .stack_bytes = stack_bytes, .run = run, .arg = arg };
	return 0;
}

void coroutine_init_self(struct coroutine *c)
{
	if (coroutine_init(c, 0, NULL, NULL))
		abort();
}

void coroutine_fini(struct coroutine *c)
{
	free(c->place);
}

static struct coroutine *running;

void coroutine_switch(struct coroutine *from, struct coroutine *to, bool is_last)
{
	(void)is_last;
	running = to;
	lab_switch(from->place, to->place);
}

EXPORT(lab_coroutine) void lab_coroutine(void)
{
	running->run(running->arg);
	__builtin_trap(); /* it must not return */
}

NOTHING(bool, coroutine_is_possible, true, void)
NOTHING(void, coroutine_release, , void *address)
NOTHING(void, coroutine_acquire, , void *address)
NOTHING(void, coroutine_exchanges, , void *place, size_t size)

/* wasi.h puts thread-local variables here. This file comes last, so their size is one of words. */
extern char __start_locals[], __stop_locals[];
_Thread_local uint64_t last_local;

int dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	size_t size = (size_t)(__stop_locals - __start_locals);
	void *initial = malloc(size);

	if (!initial)
		abort();
	memcpy(initial, __start_locals, size);
	ElfW(Phdr) part = { PT_TLS, (size_t)initial, size, size };
	struct dl_phdr_info info = { 0, &part, 1, __start_locals };

	return call(&info, sizeof info, arg);
}

/* ---- the program ---- */

#define WORDS_MAX 31

int __wrap_main(int argc, char **argv);

/* Runs the program with the words of the line. world: the variable WORLD. */
EXPORT(lab_run) int lab_run(const char *world, char *line)
{
	char *argv[WORDS_MAX + 1] = { 0 };
	int argc = 0;

	setenv("WORLD", world, 1);
	for (char *word = strtok(line, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
		argv[argc++] = word;
	int result = __wrap_main(argc, argv);

	fflush(NULL);
	return result;
}

EXPORT(lab_alloc) void *lab_alloc(size_t size)
{
	return malloc(size);
}

/* The only file is one that is written: the trace. */
FILE *__wrap_fopen(const char *name, const char *mode)
{
	(void)name;
	return mode[0] == 'w' ? fdopen(3, mode) : NULL;
}

/* ---- cores ---- */

int topology_new(struct topology **out)
{
	static char any;

	log_notice("topology: the world describes the machine; workers are not bound to cores");
	*out = (struct topology *)(void *)&any;
	return 0;
}

unsigned topology_core_count(const struct topology *t)
{
	(void)t;
	return (unsigned)atoi(getenv("HWLOC_SYNTHETIC") + strlen("core:"));
}

const struct topology_core *topology_core(const struct topology *t, unsigned core)
{
	static struct topology_core found[1024];
	const unsigned none = TOPOLOGY_NONE;

	(void)t;
	found[core] = (struct topology_core){ core, 1, none, 0, none, none };
	return &found[core];
}

NOTHING(void, topology_free, , struct topology *t)
NOTHING(unsigned, topology_node_count, 1, const struct topology *t)
NOTHING(bool, topology_is_here, false, const struct topology *t)
NOTHING(int, topology_bind, 0, const struct topology *t, struct topology_range range)

/* ---- messages, and counters of the processor ---- */

/* Reads the clock once, as log.c does. */
static void print(const char *format)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(stderr, "%s\n", format);
}

void log_write(enum log_level level, const char *format, ...)
{
	(void)level;
	print(format);
}

void log_write_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
{
	(void)limit;
	(void)level;
	print(format);
}

NOTHING(int, perf_open, -ENOSYS, struct perf_thread *t, const struct perf_caps *o)
NOTHING(void, perf_close, , struct perf_thread *t)
NOTHING(void, perf_read, , struct perf_thread *t, struct perf_total *to)

/* machine.c - clocks, the kernel's scheduler, timers and threads. One real thread. */
#include "machine.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/coroutine.h"
#include "base/round.h"

#define CPUS_MAX 1024
#define THREADS_MAX 512 /* at a time */
#define STACK_BYTES (256u << 10)
#define BEGIN_NS UINT64_C(1000000000)
/* With pct: then the thread becomes the last, because it may wait for another one. */
#define STEPS_IN_A_ROW 5000

enum state { RUNNING = 1, READY, BLOCKED, ENDED };

struct cpu {
	uint64_t now, slice_from;
	struct thread *thread; /* NULL: idle */
	unsigned id;
};

struct thread {
	struct coroutine coroutine;
	struct cpu *cpu; /* the last one */
	struct cpu own;  /* of the world outside, and with pct */
	enum state state;
	bool has_own, has_timer, timed_out;
	bool spins;       /* it waits on its CPU */
	uint64_t cpu_ns;  /* CPU time */
	uint64_t fair_ns; /* the same, raised to that of others when it wakes up */
	uint64_t ready_ns, until_ns, sequence;
	int64_t priority;
	struct thread *next, *joiner;
	void *(*run)(void *);
	void *arg, *result;
	int error;        /* errno */
	uint64_t *locals; /* thread-local memory, while it does not run */
};

/* CPUs or timers, the first one at the root. */
struct heap {
	bool (*is_before)(const void *a, const void *b);
	unsigned count;
	void *item[CPUS_MAX + THREADS_MAX];
};

struct machine_setting machine = {
#define X(name, value, meaning) .name = value,
	MACHINE_SETTINGS(X)
#undef X
};
struct machine_costs machine_costs = {
#define X(name, ns, meaning) .name = (uint64_t)(ns * 1e3),
	MACHINE_COSTS(X)
#undef X
};
struct machine_stats machine_stats;

static struct cpu cpus[CPUS_MAX];
static struct thread outside, *current, *ready, *unused;
static unsigned live_count;
static uint64_t sequence, fair_ns, all_cpu_ns, random_state, pct_now, pct_steps;
static int64_t pct_lowest;
static bool is_on;

/* ---- heaps ---- */

static void sift_up(struct heap *h, unsigned i, void *item)
{
	for (; i && h->is_before(item, h->item[(i - 1) / 2]); i = (i - 1) / 2)
		h->item[i] = h->item[(i - 1) / 2];
	h->item[i] = item;
}

static void sift_down(struct heap *h, unsigned i, void *item)
{
	for (unsigned k; (k = 2 * i + 1) < h->count; i = k) {
		if (k + 1 < h->count && h->is_before(h->item[k + 1], h->item[k]))
			k++;
		if (!h->is_before(h->item[k], item))
			break;
		h->item[i] = h->item[k];
	}
	h->item[i] = item;
}

static void heap_add(struct heap *h, void *item)
{
	sift_up(h, h->count++, item);
}

static void heap_remove(struct heap *h, const void *item)
{
	unsigned i = 0;

	while (h->item[i] != item)
		i++;
	void *last = h->item[--h->count];

	if (i == h->count)
		return;
	if (i && h->is_before(last, h->item[(i - 1) / 2]))
		sift_up(h, i, last);
	else
		sift_down(h, i, last);
}

static bool is_cpu_before(const void *left, const void *right)
{
	const struct cpu *a = left, *b = right;

	if (machine.pct)
		return a->thread->priority > b->thread->priority;
	return a->now < b->now || (a->now == b->now && a->id < b->id);
}

static bool is_timer_before(const void *left, const void *right)
{
	const struct thread *a = left, *b = right;

	return a->until_ns < b->until_ns ||
	       (a->until_ns == b->until_ns && a->sequence < b->sequence);
}

/* CPUs with a thread, except the one that runs; threads that wait for a time. */
static struct heap busy = { .is_before = is_cpu_before };
static struct heap timers = { .is_before = is_timer_before };

/* ---- thread-local memory ---- */

/* The coroutines share the thread-local memory of the real thread. So that of the program is
 * exchanged at each switch; that of libraries is not, but for errno. */
static struct {
	char *place;
	const char *initial;
	size_t size, initial_size;
} locals;

static int find_locals(struct dl_phdr_info *program, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &program->dlpi_phdr[i];

		if (part->p_type != PT_TLS)
			continue;
		locals.place = program->dlpi_tls_data;
		locals.initial = (const char *)(program->dlpi_addr + part->p_vaddr);
		locals.size = round_up(part->p_memsz, sizeof(uint64_t));
		locals.initial_size = part->p_filesz;
	}
	return 1; /* the first is the program */
}

static void init_locals(struct thread *t)
{
	t->locals = realloc(t->locals, locals.size + 1);
	if (!t->locals)
		abort();
	memset(t->locals, 0, locals.size);
	if (locals.size)
		memcpy(t->locals, locals.initial, locals.initial_size);
}

/* Without memcpy(), in which ThreadSanitizer would see races. */
static void exchange_locals(struct thread *from, const struct thread *to)
{
	volatile uint64_t *place = (uint64_t *)(void *)locals.place;

	for (size_t i = 0; i < locals.size / sizeof *place; i++) {
		from->locals[i] = place[i];
		place[i] = to->locals[i];
	}
}

static void go_to(struct thread *t)
{
	struct thread *from = current;

	if (t == from)
		return;
	machine_stats.switches++;
	from->error = errno;
	exchange_locals(from, t);
	current = t;
	errno = t->error;
	coroutine_switch(&from->coroutine, &t->coroutine, from->state == ENDED);
}

/* ---- the kernel's scheduler ---- */

static uint64_t now_of(const struct cpu *c)
{
	return machine.pct ? pct_now : c->now;
}

static void put_on(struct cpu *c, struct thread *t, uint64_t at_ns)
{
	c->now = c->now > at_ns ? c->now : at_ns;
	c->slice_from = c->now;
	c->thread = t;
	t->cpu = c;
	t->state = RUNNING;
}

/* The same, after another thread. */
static void change_to(struct cpu *c, struct thread *t, uint64_t at_ns)
{
	machine_stats.spent.context += machine_costs.context;
	put_on(c, t, at_ns + machine_costs.context / 1000);
}

/* Adds it to the threads that wait for a CPU, in the order of their CPU time. */
static void add_ready(struct thread *t, uint64_t at_ns)
{
	struct thread **at = &ready;

	t->state = READY;
	t->ready_ns = at_ns;
	while (*at && (*at)->fair_ns <= t->fair_ns)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
}

static struct thread *take_ready(void)
{
	struct thread *t = ready;

	ready = t->next;
	fair_ns = t->fair_ns > fair_ns ? t->fair_ns : fair_ns;
	return t;
}

/* Returns an idle CPU for the thread: the one that it had, or the first. NULL: there is none. */
static struct cpu *idle_cpu(const struct thread *t)
{
	if (t->cpu && !t->cpu->thread)
		return t->cpu;
	for (unsigned i = 0; i < machine.cpus; i++)
		if (!cpus[i].thread)
			return &cpus[i];
	return NULL;
}

/* Returns whether the thread gets a CPU that has been idle for long. */
static bool make_ready(struct thread *t, uint64_t at_ns)
{
	struct cpu *c = t->has_own ? &t->own : t->spins ? t->cpu : idle_cpu(t);

	if (t->has_timer) {
		t->has_timer = false;
		heap_remove(&timers, t);
	}
	machine_stats.wakes++;
	coroutine_release(t);
	if (c) {
		bool is_virtual = t->has_own || t->spins,
		     dozed = !is_virtual && at_ns > c->now + machine.doze;
		uint64_t wake_ps = is_virtual ? 0
		                   : dozed    ? machine_costs.doze_wake
		                              : machine_costs.wake;

		*(dozed ? &machine_stats.spent.doze_wake : &machine_stats.spent.wake) += wake_ps;
		put_on(c, t, at_ns + wake_ps / 1000);
		heap_add(&busy, c);
		return dozed;
	}
	if (t->fair_ns < fair_ns)
		t->fair_ns = fair_ns;
	add_ready(t, at_ns);
	return false;
}

static _Noreturn void fail_asleep(void)
{
	fprintf(stderr, "world: all threads wait for ever at %.6f s: a wake-up was lost\n",
	        (double)(machine_now() - BEGIN_NS) / 1e9);
	abort();
}

/* Runs the thread of the first CPU: of those in the heap and mine, which is not in it. NULL: the
 * running thread has left its CPU. Timers come before, if they are earlier. */
static void run_first(struct cpu *mine)
{
	for (;;) {
		struct cpu *c = mine;

		if (busy.count && (!c || is_cpu_before(busy.item[0], c)))
			c = busy.item[0];
		struct thread *t = timers.count ? timers.item[0] : NULL;

		if (t && (!c || t->until_ns < now_of(c))) {
			t->timed_out = true;
			pct_now = pct_now > t->until_ns ? pct_now : t->until_ns;
			make_ready(t, t->until_ns);
			continue;
		}
		if (!c)
			fail_asleep();
		if (c != mine) {
			heap_remove(&busy, c);
			if (mine)
				heap_add(&busy, mine);
		}
		go_to(c->thread);
		return;
	}
}

/* The running thread has left its CPU, and another one gets it. */
static void leave_cpu(struct cpu *c)
{
	c->thread = NULL;
	if (!ready || c == &current->own) {
		run_first(NULL);
		return;
	}
	struct thread *t = take_ready();

	change_to(c, t, c->now > t->ready_ns ? c->now : t->ready_ns);
	run_first(c);
}

/* Gives the CPU to a waiting thread, if that has had less CPU time, or the slice is over. */
static void maybe_preempt(struct cpu *c)
{
	if (!ready || current->has_own || ready->ready_ns > c->now ||
	    (c->now - c->slice_from < machine.slice &&
	     ready->fair_ns + machine.ahead >= current->fair_ns))
		return;
	machine_stats.preemptions++;
	struct thread *t = take_ready();

	add_ready(current, c->now);
	change_to(c, t, c->now);
	run_first(c);
}

/* ---- time ---- */

uint64_t machine_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void count_cpu(uint64_t ns)
{
	current->cpu_ns += ns;
	current->fair_ns += ns;
	all_cpu_ns += ns;
}

static void charge_by_priority(uint64_t ns)
{
	pct_now += ns;
	count_cpu(ns);
	if (++pct_steps >= STEPS_IN_A_ROW || machine_random() % machine.pct == 0) {
		current->priority = --pct_lowest;
		pct_steps = 0;
	}
	run_first(current->cpu);
}

static void charge_part(uint64_t ns)
{
	struct cpu *c = current->cpu;
	uint64_t away_ns = ns * machine_costs.away / 1000000;

	machine_stats.spent.away += away_ns * 1000;
	c->now += ns + away_ns;
	count_cpu(ns);
	maybe_preempt(c);
	c = current->cpu;
	if ((busy.count && is_cpu_before(busy.item[0], c)) ||
	    (timers.count && ((struct thread *)timers.item[0])->until_ns < c->now))
		run_first(c);
}

/* Returns the first part of that CPU time. Only if there are more threads than CPUs, the thread may
 * have to give its CPU away: to one that has waited long, or that a timer wakes. */
static uint64_t next_part(uint64_t ns)
{
	const struct thread *first = timers.count ? timers.item[0] : NULL;
	uint64_t now = current->cpu->now;

	if (live_count <= machine.cpus || current->has_own)
		return ns;
	if (ns > machine.chunk)
		ns = machine.chunk;
	if (first && first->until_ns >= now && first->until_ns - now < ns)
		ns = first->until_ns - now + 1;
	return ns;
}

void machine_charge(uint64_t ns)
{
	if (!is_on)
		return;
	machine_stats.charges++;
	if (machine.jitter)
		ns += machine_random() % machine.jitter;
	if (machine.pct) {
		charge_by_priority(ns);
		return;
	}
	while (ns) {
		uint64_t part = next_part(ns);

		ns -= part;
		charge_part(part);
	}
}

void machine_pay_to(uint64_t *account, uint64_t ps)
{
	*account += ps;
	machine_charge((ps + 500) / 1000);
}

static void begin_wait(struct thread *t, uint64_t until_ns)
{
	t->state = BLOCKED;
	t->timed_out = false;
	t->until_ns = until_ns;
	if (until_ns != MACHINE_FOREVER) {
		t->has_timer = true;
		t->sequence = sequence++;
		heap_add(&timers, t);
	}
}

bool machine_block(uint64_t until_ns)
{
	struct thread *t = current;

	begin_wait(t, until_ns);
	pct_steps = 0;
	leave_cpu(t->cpu);
	coroutine_acquire(t);
	return !t->timed_out;
}

bool machine_spin(uint64_t until_ns)
{
	struct thread *t = current;
	uint64_t from_ns = t->cpu->now;

	t->spins = true;
	begin_wait(t, until_ns);
	run_first(NULL);
	t->spins = false;
	count_cpu(t->cpu->now - from_ns);
	return !t->timed_out;
}

bool machine_wake(struct thread *t)
{
	bool has_woken = t->state == RUNNING || t->state == READY;

	return !has_woken && make_ready(t, machine_now());
}

bool machine_is_blocked(const struct thread *t)
{
	return t->state == BLOCKED;
}

bool machine_is_on(void)
{
	return is_on;
}

struct thread *machine_self(void)
{
	return current;
}

uint64_t machine_now(void)
{
	return now_of(current->cpu);
}

uint64_t machine_cpu_ns(bool is_of_all)
{
	return is_of_all ? all_cpu_ns : current->cpu_ns;
}

unsigned machine_cpu(void)
{
	return current->cpu->id;
}

/* ---- contended cache lines ---- */

#define LINES 4096u
static struct {
	const void *address;
	uint64_t free_ns;
	const struct cpu *owner;
} lines[LINES];

void machine_line(const void *address)
{
	if (!machine_costs.line || machine.pct || !is_on)
		return;
	size_t i = ((uintptr_t)address >> 6) % LINES;

	while (lines[i].address && lines[i].address != address)
		i = (i + 1) % LINES;
	const struct cpu *c = current->cpu;
	uint64_t wait = lines[i].free_ns > c->now ? lines[i].free_ns - c->now : 0;
	uint64_t take_ps = lines[i].owner == c ? machine_costs.line_local : machine_costs.line;

	lines[i].address = address;
	lines[i].owner = c;
	lines[i].free_ns = c->now + wait + take_ps / 1000;
	machine_pay_to(&machine_stats.spent.line, wait * 1000 + take_ps);
}

/* ---- threads ---- */

static void end_thread(struct thread *t)
{
	t->state = ENDED;
	live_count--;
	coroutine_release(&t->result);
	if (t->joiner)
		machine_wake(t->joiner);
	leave_cpu(t->cpu);
}

static void run_thread(void *arg)
{
	struct thread *t = arg;

	t->result = t->run(t->arg);
	end_thread(t);
}

struct thread *machine_thread_new(void *(*run)(void *), void *arg)
{
	struct thread *t = unused;
	uint64_t *old_locals = NULL;

	if (t) {
		unused = t->next;
		old_locals = t->locals;
	} else {
		t = malloc(sizeof *t);
	}
	if (!t || live_count == THREADS_MAX)
		abort();
	memset(t, 0, sizeof *t);
	t->locals = old_locals;
	init_locals(t);
	if (coroutine_init(&t->coroutine, STACK_BYTES, run_thread, t))
		abort();
	live_count++;
	t->run = run;
	t->arg = arg;
	t->fair_ns = fair_ns;
	t->has_own = machine.pct != 0;
	t->own.id = (unsigned)machine.cpus + 1;
	t->priority = machine.pct ? (int64_t)(machine_random() >> 2) : 0;
	machine_stats.threads++;
	machine_wake(t);
	return t;
}

void *machine_thread_join(struct thread *t)
{
	while (t->state != ENDED) {
		t->joiner = current;
		machine_block(MACHINE_FOREVER);
	}
	coroutine_acquire(&t->result);
	coroutine_fini(&t->coroutine);
	t->next = unused;
	unused = t;
	return t->result;
}

/* ---- lists ---- */

void thread_list_add(struct thread_list *l, struct thread *t)
{
	struct thread **at = &l->first;

	while (*at)
		at = &(*at)->next;
	t->next = NULL;
	*at = t;
}

struct thread *thread_list_take(struct thread_list *l)
{
	struct thread *t = l->first;

	if (t)
		l->first = t->next;
	return t;
}

/* ---- start ---- */

static void take_setting(const char *name, double value)
{
#define X(setting, initial, meaning)               \
	if (strcmp(name, #setting) == 0) {         \
		machine.setting = (uint64_t)value; \
		return;                            \
	}
	MACHINE_SETTINGS(X)
#undef X
#define X(cost, ns, meaning)                                  \
	if (strcmp(name, #cost) == 0) {                       \
		machine_costs.cost = (uint64_t)(value * 1e3); \
		return;                                       \
	}
	MACHINE_COSTS(X)
#undef X
	fprintf(stderr, "world: WORLD has no setting %s\n", name);
	exit(2);
}

static void take_settings(const char *text)
{
	char name[32];
	double value;
	int size;

	for (; sscanf(text, " %31[a-z_]=%lf%n", name, &value, &size) == 2 && value >= 0;
	     text += size)
		take_setting(name, value);
	if (text[strspn(text, " ")] || machine.cpus < 1 || machine.cpus > CPUS_MAX) {
		fprintf(stderr, "world: WORLD: expected NAME=VALUE at: %s\n", text);
		exit(2);
	}
}

void machine_start(void)
{
	const char *text = getenv("WORLD");

	take_settings(text ? text : "");
	dl_iterate_phdr(find_locals, NULL);
	coroutine_exchanges(locals.place, locals.size);
	for (unsigned i = 0; i < machine.cpus; i++)
		cpus[i] = (struct cpu){ .id = i, .now = BEGIN_NS };
	random_state = machine.seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (unsigned i = 0; i < 8; i++)
		machine_random();
	pct_now = BEGIN_NS;
	outside.has_own = true;
	outside.own = (struct cpu){ .id = (unsigned)machine.cpus, .now = BEGIN_NS };
	outside.priority = (int64_t)(machine_random() >> 2);
	init_locals(&outside);
	coroutine_init_self(&outside.coroutine);
	put_on(&outside.own, &outside, BEGIN_NS);
	current = &outside;
	is_on = true;
}

void machine_stop(void)
{
	is_on = false;
	free(outside.locals);
}

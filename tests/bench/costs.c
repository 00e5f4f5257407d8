/*
 * costs.c - measures the costs of tests/world/costs.h, but for `visit`, which is the rest of a
 * hand-over of tests/bench/synthetic.c (scripts/experiments/simulation.py).
 *
 * usage: costs [threads|model]
 * threads: those of user-level threads instead: a switch, the making and freeing of one that runs
 * once, and the same of a thread of the kernel.
 * model: those of the events of scripts/experiments/cost_model.py instead.
 *
 * Prints one JSON object, in ns of CPU time. Each is the least of some repetitions, so that other
 * programs matter little; times of waking another thread are medians. With `model` each is the
 * median of the repetitions, and its interval of 95 %.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/coroutine.h"
#include "base/pool.h"
#include "base/reactor.h"
#include "conf/conf.h"
#include "sched/core/graph.h"
#include "sched/core/push.h"
#include "sched/core/runtime.h"
#include "sched/core/stage_queue.h"
#include "sched/core/visit.h"
#include "sched/core/worker.h"

#define CALLS 2000 /* shorter than a time slice */
#define REPETITIONS 200
#define ROUND_TRIPS 1000
#define DOZE_NS NS_PER_MS /* an idle CPU sleeps as deep as it does */
#define NAP_NS 200000
#define AWAY_NS (100 * NS_PER_MS)
#define AWAYS 15
#define STAGES 5 /* of the ring of the validation */

/* ---- a graph whose workers sleep ---- */

static void handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		visit_park(v, batch[i]);
}

#define EACH_STAGE(X) X(0, 1) X(1, 2) X(2, 3) X(3, 4) X(4, 0)
#define CLASS(number, next)                                                                  \
	static const struct stage_class class_##number = {                                   \
		.name = "s" #number, .kind = STAGE_SHARED, .batch_max = 16, .handle = handle \
	};
EACH_STAGE(CLASS)
#define ROW(number, next) { &class_##number, GROUP_MAIN, { "s" #next } },
const struct graph_row graph_rows[] = { EACH_STAGE(ROW) };
const unsigned graph_row_count = STAGES;

static struct {
	struct graph *graph;
	struct worker *worker;
	struct stage_queue queue;
	struct event events[CALLS];
	pthread_mutex_t mutex;
	int fd;
	_Atomic uint64_t word;
} own = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static bool begin_graph(void)
{
	static struct conf conf;

	strcpy(conf.scheduler.policy, "drain");
	conf.scheduler.threads = 2;
	for (unsigned i = 0; i < STAGES; i++) {
		conf.stage[i].kind = STAGE_SHARED;
		conf.stage[i].pass_through = CONF_NO;
		conf.stage[i].threads = 1;
		conf.stage[i].threads_max = CONF_THREADS_MAX;
	}
	if (graph_new(&own.graph, &conf, NULL, CALLS, CALLS) != 0 || graph_start(own.graph) != 0)
		return false;
	struct group *g = &own.graph->group[GROUP_MAIN];

	while (__builtin_popcountll(atomic_load(&g->sleepers[0])) < 2)
		usleep(1000);
	own.worker = &g->workers[0];
	own.fd = eventfd(0, 0);
	for (unsigned i = 0; i < CALLS; i++)
		event_init(&own.events[i], NULL);
	return stage_queue_init(&own.queue, CALLS) == 0 && own.fd >= 0;
}

/* ---- costs of one thread ---- */

static void call_clock(unsigned i)
{
	(void)i;
	clock_ns();
}

static void call_thread_clock(unsigned i)
{
	(void)i;
	clock_thread_ns();
}

static void call_urgent(unsigned i)
{
	(void)i;
	waiting_urgent(own.worker);
}

static void call_ready(unsigned i)
{
	(void)i;
	waiting_ready(own.worker);
}

static void call_look(unsigned i)
{
	(void)i;
	worker_sees_work(own.worker);
}

static void call_scan(unsigned i)
{
	(void)i;
	waiting_on_stacks(own.worker);
}

static void call_push(unsigned i)
{
	stage_queue_push(&own.queue, &own.events[i], false);
}

static void call_pop(unsigned i)
{
	(void)i;
	stage_queue_pop(&own.queue, false, 0);
}

static void call_fence(unsigned i)
{
	atomic_fetch_or(&own.word, i);
	atomic_thread_fence(memory_order_seq_cst);
}

static void call_mutex(unsigned i)
{
	(void)i;
	pthread_mutex_lock(&own.mutex);
	pthread_mutex_unlock(&own.mutex);
}

static void call_syscall(unsigned i)
{
	uint64_t value = 1;

	if (i % 2 ? read(own.fd, &value, sizeof value) < 0
	          : write(own.fd, &value, sizeof value) < 0)
		abort();
}

static void call_line_local(unsigned i)
{
	atomic_fetch_add(&own.word, i);
}

static double once(void (*call)(unsigned))
{
	uint64_t begin_ns = clock_ns();

	for (unsigned i = 0; i < CALLS; i++)
		call(i);
	return (double)(clock_ns() - begin_ns) / CALLS;
}

/* Returns the least time of a call. The queue is emptied after pushes, and filled before pops. */
static double least(void (*call)(unsigned))
{
	double best = 1e9;

	for (unsigned i = 0; i < REPETITIONS; i++) {
		if (call == call_pop)
			once(call_push);
		double ns = once(call);

		best = ns < best ? ns : best;
		if (call == call_push)
			once(call_pop);
	}
	return best;
}

/* ---- costs of two threads ---- */

static void bind_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
		abort(); /* without two CPUs there are no costs between them */
}

struct pair {
	int ask, answer;
	unsigned cpu; /* of the other thread */
	_Atomic int turn;
	uint64_t ns; /* when its read() returned; the result of use_cpu() */
};

static void *answer(void *arg)
{
	struct pair *p = arg;
	uint64_t value;

	bind_to(p->cpu);
	for (unsigned i = 0; i < ROUND_TRIPS; i++) {
		if (read(p->ask, &value, sizeof value) < 0)
			abort();
		p->ns = clock_ns();
		if (write(p->answer, &(uint64_t){ 1 }, sizeof value) < 0)
			abort();
	}
	return NULL;
}

/* Returns the CPU time of a nap. */
static double nap(void)
{
	uint64_t begin_ns = clock_thread_ns();

	for (unsigned i = 0; i < ROUND_TRIPS; i++)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	return (double)(clock_thread_ns() - begin_ns) / ROUND_TRIPS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUND_TRIPS, sizeof *values, compare);
	return values[ROUND_TRIPS / 2];
}

static double writes[ROUND_TRIPS]; /* of the last hand_over() */

/* Returns the time from a write to the return of the other thread's read, on that CPU, which has
 * waited for that long. *write_ns: how long the write took. */
static double hand_over(unsigned cpu, uint64_t waited_ns, double *write_ns)
{
	static double whole[ROUND_TRIPS];
	struct pair p = { .ask = eventfd(0, 0), .answer = eventfd(0, 0), .cpu = cpu };
	pthread_t other;
	uint64_t value;

	if (pthread_create(&other, NULL, answer, &p) != 0)
		abort();
	for (unsigned i = 0; i < ROUND_TRIPS; i++) {
		for (uint64_t until_ns = clock_ns() + waited_ns; clock_ns() < until_ns;)
			continue;
		uint64_t begin_ns = clock_ns();

		if (write(p.ask, &(uint64_t){ 1 }, sizeof value) < 0)
			abort();
		writes[i] = (double)(clock_ns() - begin_ns);
		if (read(p.answer, &value, sizeof value) < 0)
			abort();
		whole[i] = (double)(p.ns - begin_ns);
	}
	pthread_join(other, NULL);
	close(p.ask);
	close(p.answer);
	*write_ns = median(writes);
	return median(whole);
}

static void *use_cpu(void *arg)
{
	struct pair *p = arg;
	uint64_t begin_ns = clock_ns(), begin_cpu_ns = clock_thread_ns(), cpu_ns;

	bind_to(p->cpu);
	while ((cpu_ns = clock_thread_ns() - begin_cpu_ns) < AWAY_NS)
		continue;
	p->ns = (clock_ns() - begin_ns - cpu_ns) / (AWAY_NS / 1000);
	return NULL;
}

/* Returns how many ns of each us two busy CPUs are away from their threads. */
static double away(void)
{
	double both[AWAYS];

	for (unsigned i = 0; i < AWAYS; i++) {
		struct pair p[2] = { { .cpu = 0 }, { .cpu = 1 } };
		pthread_t other;

		if (pthread_create(&other, NULL, use_cpu, &p[1]) != 0)
			abort();
		use_cpu(&p[0]);
		pthread_join(other, NULL);
		both[i] = (double)(p[0].ns + p[1].ns) / 2;
	}
	qsort(both, AWAYS, sizeof *both, compare);
	return both[AWAYS / 2];
}

static void *return_turns(void *arg)
{
	struct pair *p = arg;

	bind_to(p->cpu);
	for (unsigned i = 0; i < CALLS * REPETITIONS; i++) {
		while (atomic_load(&p->turn) != 1)
			continue;
		atomic_store(&p->turn, 0);
	}
	return NULL;
}

/* Returns the time of a cache line from one core to the other. */
static double line(void)
{
	static struct pair p = { .cpu = 1 };
	pthread_t other;

	if (pthread_create(&other, NULL, return_turns, &p) != 0)
		abort();
	double best = 1e9;

	for (unsigned i = 0; i < REPETITIONS; i++) {
		uint64_t begin_ns = clock_ns();

		for (unsigned k = 0; k < CALLS; k++) {
			while (atomic_load(&p.turn) != 0)
				continue;
			atomic_store(&p.turn, 1);
		}
		double ns = (double)(clock_ns() - begin_ns) / CALLS / 2;

		best = ns < best ? ns : best;
	}
	pthread_join(other, NULL);
	return best;
}

/* ---- user-level threads ---- */

static struct coroutine self, other;

static void bounce(void *arg)
{
	(void)arg;
	for (;;)
		coroutine_switch(&other, &self, false);
}

/* There and back. */
static void call_switch(unsigned i)
{
	(void)i;
	coroutine_switch(&self, &other, false);
}

static void call_coroutine(unsigned i)
{
	(void)i;
	if (coroutine_init(&other, 64 << 10, bounce, NULL))
		abort();
	call_switch(0);
	coroutine_fini(&other);
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void call_kernel_thread(unsigned i)
{
	pthread_t thread;

	(void)i;
	if (pthread_create(&thread, NULL, end_at_once, NULL) != 0)
		abort();
	pthread_join(thread, NULL);
}

static void print_thread_costs(void)
{
	coroutine_init_self(&self);
	printf("{\"coroutine\":%.0f,", least(call_coroutine));
	if (coroutine_init(&other, 64 << 10, bounce, NULL))
		abort();
	printf("\"switch\":%.1f,\"kernel_thread\":%.0f}\n", least(call_switch) / 2,
	       once(call_kernel_thread));
	coroutine_fini(&other);
}

/* ---- events of the cost model ---- */

#define WATCHED 50 /* descriptors, as many as the clients of the experiment */
#define PAGES 64
#define RESPONSE_BYTES (16 << 10)
#define SWITCHES 30

static struct {
	struct reactor *reactor;
	struct reactor_watch watch[WATCHED];
	int fd[WATCHED];
	char *pages;
	long page_size;
	struct stage_queue back;
} model;

static void on_readable(void *arg)
{
	(void)arg;
}

static bool begin_model(void)
{
	model.page_size = sysconf(_SC_PAGESIZE);
	model.pages = mmap(NULL, PAGES * (size_t)model.page_size, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	model.reactor = reactor_new();
	if (model.pages == MAP_FAILED || !model.reactor || stage_queue_init(&model.back, CALLS))
		return false;
	madvise(model.pages, PAGES * (size_t)model.page_size, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < WATCHED; i++) {
		model.fd[i] = eventfd(0, 0);
		if (model.fd[i] < 0 ||
		    reactor_watch_init(&model.watch[i], model.reactor, model.fd[i], false,
		                       on_readable, NULL) ||
		    reactor_watch_on(&model.watch[i]))
			return false;
	}
	coroutine_init_self(&self);
	return true;
}

static void call_page(unsigned i)
{
	if (i == 0)
		madvise(model.pages, PAGES * (size_t)model.page_size, MADV_DONTNEED);
	model.pages[i * (size_t)model.page_size] = 1;
}

static void call_buffer(unsigned i)
{
	(void)i;
	pool_put(pool_get(RESPONSE_BYTES));
}

static void call_poll(unsigned i)
{
	(void)i;
	reactor_run(model.reactor, false);
}

static void call_push_and_pop(unsigned i)
{
	call_push(i);
	call_pop(i);
}

static void *push_back(void *arg)
{
	struct event *ev;

	(void)arg;
	bind_to(1);
	for (unsigned i = 0; i < CALLS * REPETITIONS; i++) {
		while (!(ev = stage_queue_pop(&own.queue, false, 0)))
			continue;
		stage_queue_push(&model.back, ev, false);
	}
	return NULL;
}

/* There and back. */
static void call_hand_over(unsigned i)
{
	call_push(i);
	while (!stage_queue_pop(&model.back, false, 0))
		continue;
}

static void *keep_busy(void *arg)
{
	bind_to(1);
	while (!atomic_load((_Atomic bool *)arg))
		continue;
	return NULL;
}

/* Prints the median of the values and its interval of 95 %, whose ranks are those of a binomial
 * distribution. Returns the median. */
static double print_median(const char *name, double *values, unsigned n, double less, double share)
{
	unsigned half = (unsigned)ceil(0.98 * sqrt(n));

	qsort(values, n, sizeof *values, compare);
	printf("\"%s\":[%.1f,%.1f,%.1f]", name, share * (values[n / 2] - less),
	       share * (values[n / 2 - half] - less), share * (values[n / 2 + half] - less));
	return values[n / 2];
}

static uint64_t process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Prints the CPU time of all threads in a call. */
static double print_calls(const char *name, void (*call)(unsigned), unsigned calls, double less,
                          double share)
{
	double values[REPETITIONS];

	for (unsigned i = 0; i < REPETITIONS; i++) {
		uint64_t begin_ns = process_cpu_ns();

		for (unsigned k = 0; k < calls; k++)
			call(k);
		values[i] = (double)(process_cpu_ns() - begin_ns) / calls;
	}
	double ns = print_median(name, values, REPETITIONS, less, share);

	putchar(',');
	return ns;
}

/* A creation is that of Demsky 4.4: the making, the running, and the joining of a thread whose
 * function is empty. The one of a user-level thread lacks its two switches. */
static void print_creations(void)
{
	double switches_ns;

	print_calls("kernel_thread", call_kernel_thread, 50, 0, 1);
	if (coroutine_init(&other, 64 << 10, bounce, NULL))
		abort();
	switches_ns = print_calls("user_switch", call_switch, CALLS, 0, 0.5);
	coroutine_fini(&other);
	print_calls("user_thread", call_coroutine, 200, switches_ns, 1);
}

/* A wake-up is a write to the eventfd of a thread on another core, and that thread's read. The core
 * is busy, as under load. */
static void print_wake(double syscall_ns)
{
	static _Atomic bool is_over;
	pthread_t busy;
	double write_ns;

	if (pthread_create(&busy, NULL, keep_busy, &is_over) != 0)
		abort();
	hand_over(1, 0, &write_ns);
	atomic_store(&is_over, true);
	pthread_join(busy, NULL);
	print_median("wake", writes, ROUND_TRIPS, -syscall_ns, 1);
	putchar(',');
}

/* A switch is what a hand-over on one core takes beyond a write and a read. */
static void print_switch(double syscall_ns)
{
	double values[SWITCHES], write_ns;

	for (unsigned i = 0; i < SWITCHES; i++) {
		uint64_t begin_ns = process_cpu_ns();

		hand_over(0, 0, &write_ns);
		values[i] = (double)(process_cpu_ns() - begin_ns) / (2 * ROUND_TRIPS);
	}
	print_median("kernel_switch", values, SWITCHES, 2 * syscall_ns, 1);
	printf("}\n");
}

static void print_model_costs(void)
{
	pthread_t thread;
	double poll_ns;

	putchar('{');
	print_creations();
	print_calls("page", call_page, PAGES, 0, 1);
	print_calls("buffer", call_buffer, CALLS, 0, 1);
	print_calls("hand_over", call_push_and_pop, CALLS, 0, 1);
	if (pthread_create(&thread, NULL, push_back, NULL) != 0)
		abort();
	/* Both threads spin, there and back. */
	print_calls("hand_over_far", call_hand_over, CALLS, 0, 0.25);
	pthread_join(thread, NULL);
	poll_ns = print_calls("poll", call_poll, CALLS, 0, 1);
	for (unsigned i = 0; i < WATCHED; i++)
		if (write(model.fd[i], &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
			abort();
	print_calls("poll_ready", call_poll, CALLS / 10, poll_ns, 1.0 / WATCHED);
	double syscall_ns = print_calls("syscall", call_syscall, CALLS, 0, 1);

	print_wake(syscall_ns);
	print_switch(syscall_ns);
}

static const struct {
	const char *name;
	void (*call)(unsigned);
	double share; /* of a call */
} calls[] = {
	{ "clock", call_clock, 1 },
	{ "thread_clock", call_thread_clock, 1 },
	{ "urgent", call_urgent, 1.0 / STAGES },
	{ "ready", call_ready, 1.0 / STAGES },
	{ "push", call_push, 1 },
	{ "pop", call_pop, 1 },
	{ "fence", call_fence, 1 },
	{ "mutex", call_mutex, 1 },
	{ "line_local", call_line_local, 1 },
};

int main(int argc, char **argv)
{
	double write_ns, syscall_ns, scan_ns, wake_ns;

	if (argc == 2 && strcmp(argv[1], "threads") == 0) {
		print_thread_costs();
		return EXIT_SUCCESS;
	}
	if (!begin_graph())
		return EXIT_FAILURE;
	bind_to(0);
	if (argc == 2 && strcmp(argv[1], "model") == 0) {
		if (!begin_model())
			return EXIT_FAILURE;
		print_model_costs();
		return EXIT_SUCCESS;
	}
	for (size_t i = 0; i < COUNT_OF(calls); i++)
		printf("%s\"%s\":%.1f", i ? "," : "{", calls[i].name,
		       calls[i].share * least(calls[i].call));
	syscall_ns = least(call_syscall);
	scan_ns = least(call_scan);
	/* A look that finds nothing looks at both workers as well. */
	printf(",\"syscall\":%.1f,\"scan\":%.2f,\"look\":%.1f", syscall_ns, scan_ns / 2,
	       least(call_look) - scan_ns);
	wake_ns = hand_over(1, 0, &write_ns) - syscall_ns;
	printf(",\"nap\":%.0f,\"wake\":%.0f,\"wake_send\":%.0f", nap(), wake_ns,
	       write_ns - syscall_ns);
	wake_ns = hand_over(1, DOZE_NS, &write_ns) - syscall_ns;
	printf(",\"doze_wake\":%.0f,\"doze_send\":%.0f", wake_ns, write_ns - syscall_ns);
	/* On one CPU: write, read and the change of threads. Both calls can take less than others.
	 */
	printf(",\"context\":%.0f,\"line\":%.1f,\"away\":%.1f}\n",
	       fmax(0, hand_over(0, 0, &write_ns) - 2 * syscall_ns), line(), away());
	graph_stop(own.graph);
	graph_free(own.graph);
	stage_queue_fini(&own.queue);
	close(own.fd);
	return EXIT_SUCCESS;
}

/*
 * synthetic.c - the scheduler without images: events go round a graph of stages that only spin.
 *
 * In a ring each event is handled by stage 1, 2, ... and comes back to stage 1, which is one round.
 * One stage may be a bottleneck, or none spins, so that the cost of a hand-over remains (Welsh
 * 5.8.2). Each stage may read a table of its own, so that a cohort saves cache misses (Larus &
 * Parkes). The graph "paths" is Gordon's search engine (4.3, figure 4.16): three paths, of which
 * one meets the bottleneck. Stages that are not used, or passed through, have no queue.
 * scripts/experiment runs it.
 *
 * usage: synthetic POLICY STAGES PASSED THREADS POOL EVENTS BOTTLENECK_US IDLE_US SECONDS
 *                  [NAME=VALUE]...
 *   STAGES         stages of the ring, 1 to 15; the middle one is the bottleneck. Up to 100, if
 *                  it is built with -DSTAGE_COUNT_MAX=100 (make synthetic-wide)
 *   PASSED         1: stages other than the first, the bottleneck and the last are called directly
 *   THREADS        workers, and the threads of the bottleneck's pool with policy seda
 *   POOL           threads of the other pools with policy seda
 *   EVENTS         events that go round at a time
 *   BOTTLENECK_US, IDLE_US  CPU time of an event in the bottleneck and in each other stage
 *   random=SEED    CPU times are random, exponentially distributed, with these means
 *   trace=FILE     all visits, as in telemetry/trace_format.h: scripts/trace-draw draws them
 *   paths=1        the search engine, with 15 stages
 *   gate=N         most events of a visit
 *   quantum_us=N   after which a visit ends; without a gate
 *   table_kb=N     table that each stage reads for each event
 *   clocked=1      work is CPU time by the thread's clock, whatever speed the processor has
 *   rate=N         an open loop: N events arrive in a second, a Poisson process. At most EVENTS
 *                  are there, others are refused. Their work does not depend on the policy:
 *                  scripts/experiments/arrivals.py draws it again
 *   sources=N      threads from which they arrive
 *   records=FILE   the CPU times of a round are those of a line, chosen at random: the last STAGES
 *                  numbers of each line, in microseconds. Other text before them is ignored
 *   replicas=N     layout replicate, by load; steal=1: workers help other replicas
 *   parts=N        layout partition; profile=FILE: what the stages cost, as layout.profile
 *   groups=1       the bottleneck is a group of its own, with THREADS workers as well
 * Prints one JSON object about SECONDS, after a warm-up of a quarter of that.
 *
 * The same program runs in virtual time: tests/world.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "conf/conf.h"
#include "log/log.h"
#include "policy/policy.h"
#include "sched/core/graph.h"
#include "sched/core/push.h"
#include "sched/core/replicas.h"
#include "sched/core/runtime.h"
#include "sched/core/trace.h"
#include "sched/core/visit.h"
#include "spin.h"
#include "telemetry/trace_format.h"

#define EVENTS_MAX 4096
#define SOURCES_MAX 64
#define ROUNDS_MAX (1u << 20) /* of which the times are kept: the newest */
#define LINE 64               /* bytes of a cache line */
#define INTERVALS 20          /* of the measured time */
#define PATIENCE_MS 60000

/* The paths of Gordon's search engine: pages by their title, by one term, and by several terms,
 * whose sets of documents are combined by the bottleneck. He does not give their shares; most
 * queries were titles. The spell checker is never needed. */
enum path { TITLE, TERM, TERMS, PATH_COUNT };
enum {
	TITLE_INDEX = 2,
	TOKENIZER = 3,
	SPELLING = 5,
	STEMMER = 7,
	TERM_INDEX = 8,
	CACHE = 9,
	COMBINER = 11,
	CONTENT_INDEX = 12,
	SEARCH_STAGES = 15
};
#define TITLES_OF_TEN 6
#define TERM_OF_TEN 2

struct item {
	struct event event;
	uint64_t begun_ns; /* when its round began, or was due */
	double work_us;    /* CPU time of its round until now */
	const double *record;
	struct random random; /* its CPU times, unless they are fixed */
	struct random choice; /* the same paths with each policy */
	enum path path;
};

/* A round that has ended. slowdown: its time over its CPU time. */
struct round {
	float us, slowdown;
	enum path path;
};

static struct {
	unsigned stages, bottleneck;
	bool has_paths, is_random, is_clocked, is_open;
	double mean_us[STAGE_COUNT_MAX], spins_per_us;
	double *records; /* `stages` numbers each; NULL: CPU times have a distribution */
	size_t record_count, table_bytes;
	unsigned char *table; /* of all stages, one after the other */
	_Atomic uint64_t rounds, refused, round_count;
	_Atomic unsigned live;
	_Atomic bool is_measured, is_stopping;
	struct queue unused; /* items, in an open loop */
	struct round *ended; /* the first round_count, modulo ROUNDS_MAX */
	struct item items[EVENTS_MAX];
} ring;

/* ---- spinning ---- */

/* Returns the iterations that take a microsecond of CPU time, so that a busy machine does not
 * shorten the work. */
static double spins_per_us(void)
{
	const uint64_t n = 2000000;
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < 5; i++) {
		uint64_t start = clock_thread_ns(), spent;

		spin(n);
		spent = clock_thread_ns() - start;
		best = spent < best ? spent : best;
	}
	return (double)n * 1e3 / (double)best;
}

/* Returns a number in (0, 1]. */
static double uniform(struct random *r)
{
	return (double)((random_next(r) >> 11) + 1) * 0x1p-53;
}

/* Uses the event's CPU time in the stage. */
static void work(struct item *item, unsigned stage)
{
	double us = item->record ? item->record[stage] : ring.mean_us[stage];

	if (us <= 0)
		return;
	if (ring.is_random && !item->record)
		us *= -log(uniform(&item->random));
	item->work_us += us;
	if (ring.is_clocked)
		spin_for((uint64_t)(us * 1e3));
	else
		spin((uint64_t)(us * ring.spins_per_us));
}

/* ---- the stages ---- */

static void begin_round(struct item *item, uint64_t now_ns)
{
	int of_ten = random_range(&item->choice, 0, 9);

	item->begun_ns = now_ns;
	item->work_us = 0;
	item->record = ring.records ? ring.records + ring.stages * (random_next(&item->random) %
	                                                            ring.record_count)
	                            : NULL;
	item->path = !ring.has_paths || of_ten < TITLES_OF_TEN ? TITLE
	             : of_ten < TITLES_OF_TEN + TERM_OF_TEN    ? TERM
	                                                       : TERMS;
}

static void end_round(const struct item *item, uint64_t now_ns)
{
	double us = (double)(now_ns - item->begun_ns) / 1e3;

	atomic_fetch_add_explicit(&ring.rounds, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&ring.is_measured, memory_order_relaxed))
		return;
	uint64_t at = atomic_fetch_add_explicit(&ring.round_count, 1, memory_order_relaxed);

	ring.ended[at % ROUNDS_MAX] = (struct round){
		.us = (float)us,
		.slowdown = item->work_us > 0 ? (float)(us / item->work_us) : 0,
		.path = item->path,
	};
}

/* The last stage of an open loop. Afterwards the item is the generator's. */
static void leave(struct visit *v, struct item *item)
{
	end_round(item, clock_ns());
	graph_replica_give(v->worker->group->graph, item->event.replica, 1);
	visit_park(v, &item->event);
	atomic_fetch_sub(&ring.live, 1);
	queue_push(&ring.unused, item, 0);
}

static unsigned next_stage(unsigned me, enum path path)
{
	unsigned next = me + 1 < ring.stages ? me + 1 : 0;

	if (!ring.has_paths)
		return next;
	switch (me) {
	case TITLE_INDEX:
		return path == TITLE ? CONTENT_INDEX : TOKENIZER;
	case SPELLING:
		return STEMMER;
	case STEMMER:
		return path == TERM ? TERM_INDEX : CACHE;
	case TERM_INDEX:
		return CONTENT_INDEX;
	default:
		return next;
	}
}

static void read_table(unsigned stage)
{
	const volatile unsigned char *table = ring.table + stage * ring.table_bytes;

	for (size_t i = 0; i < ring.table_bytes; i += LINE)
		(void)table[i];
}

static void handle(struct visit *v, struct event *const *batch, unsigned n)
{
	unsigned me = v->stage->index;

	for (unsigned i = 0; i < n; i++) {
		struct item *item = (struct item *)(void *)batch[i];

		if (me == 0 && !ring.is_open) {
			if (atomic_load_explicit(&ring.is_stopping, memory_order_relaxed)) {
				visit_park(v, batch[i]);
				atomic_fetch_sub(&ring.live, 1);
				continue;
			}
			end_round(item, visit_now(v));
			begin_round(item, visit_now(v));
		}
		work(item, me);
		read_table(me);
		unsigned next = next_stage(me, item->path);

		if (ring.is_open && next == 0)
			leave(v, item);
		else
			visit_send(v, next, batch[i]);
	}
}

/* X(number, next): the names are s100, s101, and so on. */
/* clang-format off */
#define NINE(X, tens)                                                               \
	X(tens##0, tens##1) X(tens##1, tens##2) X(tens##2, tens##3) X(tens##3, tens##4) \
	X(tens##4, tens##5) X(tens##5, tens##6) X(tens##6, tens##7) X(tens##7, tens##8) \
	X(tens##8, tens##9)
#define TEN(X, tens, more) NINE(X, tens) X(tens##9, more##0)
#if STAGE_COUNT_MAX < 100
#define EACH_STAGE(X) \
	TEN(X, 10, 11) X(110, 111) X(111, 112) X(112, 113) X(113, 114) X(114, 100)
#else
#define EACH_STAGE(X)                                                               \
	TEN(X, 10, 11) TEN(X, 11, 12) TEN(X, 12, 13) TEN(X, 13, 14) TEN(X, 14, 15)      \
	TEN(X, 15, 16) TEN(X, 16, 17) TEN(X, 17, 18) TEN(X, 18, 19) NINE(X, 19) X(199, 100)
#endif
/* clang-format on */

#define CLASS(number, next)                                                                  \
	static const struct stage_class class_##number = {                                   \
		.name = "s" #number, .kind = STAGE_SHARED, .batch_max = 16, .handle = handle \
	};
EACH_STAGE(CLASS)

/* To the next stage and back to the first, and the jumps of the paths. */
#define ROW(number, next) \
	{ &class_##number, GROUP_MAIN, { "s" #next, "s100", "s107", "s109", "s112" } },
/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a name has two parts */
const struct graph_row graph_rows[] = { EACH_STAGE(ROW) };
enum { STAGES_MAX = COUNT_OF(graph_rows) };
const unsigned graph_row_count = STAGES_MAX;

/* ---- the run ---- */

/* The settings, with the values of the command line. */
struct setting {
	const char *policy;
	unsigned stages, threads, pool, events;
	bool is_passed;
	double bottleneck_us, idle_us, seconds;
	uint64_t random; /* seed; 0: CPU times are fixed */
	uint64_t gate, quantum_us, table_kb, rate, sources, replicas, parts;
	uint64_t paths, clocked, steal, groups; /* 0 or 1 */
	const char *profile;
	FILE *trace, *records; /* NULL: none */
};

static void fill_layout(struct conf *conf, const struct setting *s)
{
	struct conf_group *bottleneck = &conf->group[0];

	conf->layout.mode = s->replicas > 1 ? CONF_LAYOUT_REPLICATE
	                    : s->parts > 1  ? CONF_LAYOUT_PARTITION
	                                    : CONF_LAYOUT_SHARED;
	conf->layout.replicas = s->replicas;
	conf->layout.parts = s->parts;
	if (s->profile)
		snprintf(conf->layout.profile, sizeof conf->layout.profile, "%s", s->profile);
	conf->experiment.steal = s->steal ? CONF_YES : CONF_NO;
	conf->group_count = (unsigned)s->groups;
	bottleneck->threads = s->threads;
	snprintf(bottleneck->name, sizeof bottleneck->name, "bottleneck");
	snprintf(bottleneck->stages, sizeof bottleneck->stages, "%s",
	         graph_rows[ring.bottleneck].class->name);
	snprintf(bottleneck->policy, sizeof bottleneck->policy, "%s", s->policy);
}

static void fill_conf(struct conf *conf, const struct setting *s)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", s->policy);
	conf->scheduler.threads = s->threads;
	conf->experiment.spin_us = 10;
	conf->experiment.cutoff_us = 5000;
	conf->experiment.age_ms = 10;
	conf->scheduler.service = s->gate         ? SERVICE_N_GATED
	                          : s->quantum_us ? SERVICE_TIME_GATED
	                                          : 0; /* auto */
	conf->experiment.service_events = s->gate;
	conf->experiment.service_time_us = s->quantum_us;
	fill_layout(conf, s);
	for (unsigned i = 0; i < STAGES_MAX; i++) {
		bool is_queued = i < s->stages && (!s->is_passed || i == 0 ||
		                                   i == ring.bottleneck || i + 1 == s->stages);

		conf->stage[i].kind = STAGE_SHARED;
		conf->stage[i].pass_through = is_queued ? CONF_NO : CONF_YES;
		conf->stage[i].threads = i == ring.bottleneck ? s->threads : s->pool;
		conf->stage[i].threads_max = CONF_THREADS_MAX;
	}
}

struct sample {
	uint64_t visits, visits_empty, rounds, refused, cpu_ns;
};

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static struct sample take_sample(const struct graph *g)
{
	const struct group *group = &g->group[GROUP_MAIN];
	struct sample out = { .rounds = atomic_load(&ring.rounds),
		              .refused = atomic_load(&ring.refused),
		              .cpu_ns = cpu_ns() };

	for (unsigned w = 0; w < group_worker_count(group); w++)
		for (unsigned i = 0; i < STAGES_MAX; i++)
			for (unsigned p = 0; p < POLICY_COUNT; p++) {
				const struct stage_counters *c = &group->workers[w].stage[i];

				out.visits += counter_read(&c->visits[p]);
				out.visits_empty += counter_read(&c->visits_empty[p]);
			}
	return out;
}

static void wait_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		continue;
}

#define TRACE_INTERVAL_NS (5 * NS_PER_MS) /* the rings of the workers must not become full */

static bool begin_trace(struct graph *g, FILE *to)
{
	char header[TRACE_HEADER_MAX];
	size_t size = trace_header(g, header);

	return trace_start(g) == 0 && fwrite(header, size, 1, to) == 1;
}

static void write_trace(struct graph *g, FILE *to)
{
	char data[1 << 16];
	size_t size;

	while ((size = trace_read(g, data, sizeof data)) > 0)
		fwrite(data, size, 1, to);
}

static void end_trace(struct graph *g, FILE *to)
{
	const struct trace_record end = { .type = TRACE_END, .begin_ns = clock_ns() };

	trace_stop(g);
	write_trace(g, to);
	fwrite(&end, sizeof end, 1, to);
}

/* Waits, and writes the trace meanwhile. */
static void wait_traced(struct graph *g, const struct setting *s, uint64_t ns)
{
	for (uint64_t step; s->trace && ns; ns -= step) {
		step = ns < TRACE_INTERVAL_NS ? ns : TRACE_INTERVAL_NS;
		wait_ns(step);
		write_trace(g, s->trace);
	}
	wait_ns(ns);
}

/* ---- results ---- */

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static float quantile(const float *sorted, size_t count, double q)
{
	return count ? sorted[(size_t)(q * (double)(count - 1))] : 0;
}

/* Prints the number of rounds of a path, under that name, and their quantiles. PATH_COUNT: of all
 * paths. */
static void print_times(enum path path, const char *name, const char *end)
{
	uint64_t kept = atomic_load(&ring.round_count);
	size_t count = 0;

	kept = kept < ROUNDS_MAX ? kept : ROUNDS_MAX;
	float *us = malloc(kept * sizeof *us + 1), *slowdown = malloc(kept * sizeof *us + 1);

	for (size_t i = 0; us && slowdown && i < kept; i++)
		if (path == PATH_COUNT || ring.ended[i].path == path) {
			us[count] = ring.ended[i].us;
			slowdown[count++] = ring.ended[i].slowdown;
		}
	if (count) {
		qsort(us, count, sizeof *us, compare);
		qsort(slowdown, count, sizeof *us, compare);
	}
	printf("\"%s\":%zu,\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,"
	       "\"slowdown_p50\":%.3f,\"slowdown_p99\":%.3f%s",
	       name, count, (double)quantile(us, count, 0.5), (double)quantile(us, count, 0.9),
	       (double)quantile(us, count, 0.99), (double)quantile(slowdown, count, 0.5),
	       (double)quantile(slowdown, count, 0.99), end);
	free(us);
	free(slowdown);
}

/* Measures the graph, and prints the results but for the times of rounds, which may still end. */
static void measure(struct graph *g, const struct setting *s)
{
	uint64_t interval_ns = (uint64_t)(s->seconds * 1e9) / INTERVALS, most = 0, before, start_ns;
	struct sample from, to;
	double seconds;

	wait_traced(g, s, (uint64_t)(s->seconds * 0.25e9));
	atomic_store(&ring.is_measured, true);
	from = take_sample(g);
	start_ns = clock_ns();
	before = from.rounds;
	printf("{\"rounds_per_s_by_interval\":[");
	for (unsigned i = 0; i < INTERVALS; i++) {
		uint64_t begin_ns = clock_ns(), rounds;

		wait_traced(g, s, interval_ns);
		rounds = (atomic_load(&ring.rounds) - before) * NS_PER_S / (clock_ns() - begin_ns);
		before = atomic_load(&ring.rounds);
		most = rounds > most ? rounds : most;
		printf("%s%" PRIu64, i ? "," : "", rounds);
	}
	/* On a machine that is very busy no worker may have run. */
	for (unsigned i = 0; i < PATIENCE_MS && atomic_load(&ring.rounds) == from.rounds; i++)
		wait_ns(NS_PER_MS);
	to = take_sample(g);
	seconds = (double)(clock_ns() - start_ns) / 1e9;
	atomic_store(&ring.is_measured, false);
	printf("],\"interval_s\":%.3f,\"rounds\":%" PRIu64
	       ",\"seconds\":%.3f,\"rounds_per_s\":%.1f,"
	       "\"most_per_s\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"visits\":%" PRIu64
	       ",\"visits_empty\":%" PRIu64 ",\"refused\":%" PRIu64 ",",
	       (double)interval_ns / 1e9, to.rounds - from.rounds, seconds,
	       (double)(to.rounds - from.rounds) / seconds, most, to.cpu_ns - from.cpu_ns,
	       to.visits - from.visits, to.visits_empty - from.visits_empty,
	       to.refused - from.refused);
}

/* ---- arrivals ---- */

static void begin_item(struct graph *g, struct item *item, uint64_t now_ns)
{
	item->event.replica = graph_replica_take(g, 1);
	atomic_fetch_add(&ring.live, 1);
	begin_round(item, now_ns);
	stage_push(graph_stage(g, 0), 0, &item->event);
}

struct generator {
	struct graph *graph;
	const struct setting *setting;
	unsigned index;
	pthread_t thread;
};

/* Lets its share of the events arrive until it is stopped. It runs before all other threads if it
 * may, so that they come when they are due. */
static void *generate(void *arg)
{
	const struct generator *own = arg;
	const struct setting *s = own->setting;
	struct random gaps = random_stream(s->random, UINT64_MAX / 2 - own->index);
	double due_ns = (double)clock_ns();

	syscall(SYS_prctl, PR_SET_TIMERSLACK, 1);
	syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &(struct sched_param){ 50 });
	for (uint64_t number = own->index; !atomic_load(&ring.is_stopping); number += s->sources) {
		due_ns -= log(uniform(&gaps)) * 1e9 * (double)s->sources / (double)s->rate;
		for (uint64_t now; (now = clock_ns()) < (uint64_t)due_ns;)
			wait_ns((uint64_t)due_ns - now);
		struct item *item = queue_try_pop(&ring.unused);

		if (!item) {
			atomic_fetch_add(&ring.refused, 1);
			continue;
		}
		item->choice = random_stream(0, number);
		item->random = random_stream(s->random, number);
		begin_item(own->graph, item, (uint64_t)due_ns);
	}
	return NULL;
}

/* Starts the events of a closed loop, or those that arrive. Returns false without memory. */
static bool begin_arrivals(struct generator *sources, const struct setting *s, struct graph *g)
{
	bool is_done = true;

	if (queue_init(&ring.unused, EVENTS_MAX) != 0)
		return false;
	for (unsigned i = 0; i < s->events; i++) {
		struct item *item = &ring.items[i];

		event_init(&item->event, NULL);
		item->choice = random_stream(0, i);
		item->random = random_stream(s->random, i);
		if (ring.is_open)
			queue_push(&ring.unused, item, 0);
		else
			begin_item(g, item, clock_ns());
	}
	for (unsigned i = 0; ring.is_open && is_done && i < s->sources; i++) {
		sources[i] = (struct generator){ .graph = g, .setting = s, .index = i };
		is_done = pthread_create(&sources[i].thread, NULL, generate, &sources[i]) == 0;
	}
	return is_done;
}

static void end_arrivals(const struct generator *sources, const struct setting *s)
{
	atomic_store(&ring.is_stopping, true);
	for (unsigned i = 0; ring.is_open && i < s->sources; i++)
		pthread_join(sources[i].thread, NULL);
	while (atomic_load(&ring.live))
		wait_ns(NS_PER_MS);
	while (queue_try_pop(&ring.unused))
		continue;
	queue_fini(&ring.unused);
}

/* Reads the last `stages` numbers of each line. Returns false if a line has fewer. */
static bool read_records(FILE *file)
{
	char line[1024];

	while (fgets(line, sizeof line, file)) {
		char *at = line + strlen(line);
		double *more = realloc(ring.records, (ring.record_count + 1) * ring.stages *
		                                             sizeof *ring.records);

		if (!more)
			return false;
		ring.records = more;
		for (unsigned i = ring.stages; i-- > 0;) {
			while (at > line && strchr(" \n", at[-1]))
				*--at = '\0';
			while (at > line && at[-1] != ' ')
				at--;
			if (sscanf(at, "%lf", &more[ring.record_count * ring.stages + i]) != 1)
				return false;
		}
		ring.record_count++;
	}
	return ring.record_count > 0;
}

/* ---- the run ---- */

/* Takes what does not change during the run. Returns false without memory, or if the records are
 * wrong. */
static bool fill_ring(const struct setting *s)
{
	ring.stages = s->stages;
	ring.has_paths = s->paths > 0;
	ring.is_random = s->random > 0;
	ring.is_clocked = s->clocked > 0;
	ring.is_open = s->rate > 0;
	ring.bottleneck = s->paths ? COMBINER : s->stages / 2;
	ring.table_bytes = (size_t)s->table_kb << 10;
	ring.table = calloc(s->stages, ring.table_bytes + 1);
	ring.ended = calloc(ROUNDS_MAX, sizeof *ring.ended);
	if (!ring.table || !ring.ended || (s->records && !read_records(s->records)))
		return false;
	memset(ring.table, 1, s->stages * ring.table_bytes); /* pages of its own */
	ring.spins_per_us = spins_per_us();
	for (unsigned i = 0; i < s->stages; i++)
		ring.mean_us[i] = i == ring.bottleneck ? s->bottleneck_us : s->idle_us;
	return true;
}

static int run(const struct setting *s)
{
	struct conf conf;
	struct generator sources[SOURCES_MAX];
	struct graph *g;

	if (!fill_ring(s))
		return EXIT_FAILURE;
	fill_conf(&conf, s);
	if (graph_new(&g, &conf, NULL, EVENTS_MAX, EVENTS_MAX) != 0 || graph_start(g) != 0)
		return EXIT_FAILURE;
	if (s->trace && !begin_trace(g, s->trace))
		return EXIT_FAILURE;
	if (!begin_arrivals(sources, s, g))
		return EXIT_FAILURE;
	measure(g, s);
	if (s->trace)
		end_trace(g, s->trace);
	end_arrivals(sources, s);
	print_times(PATH_COUNT, "kept", ",\"paths\":[{");
	for (unsigned p = 0, count = s->paths ? PATH_COUNT : 1; p < count; p++)
		print_times((enum path)p, "rounds", p + 1 < count ? "},{" : "}]}\n");
	graph_stop(g);
	for (unsigned i = 0; i < s->events; i++)
		event_fini(&ring.items[i].event);
	graph_free(g);
	free(ring.table);
	free(ring.records);
	free(ring.ended);
	return s->trace && fclose(s->trace) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool take(const char *text, double low, double high, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return end != text && !*end && !errno && *out >= low && *out <= high;
}

/* Takes an optional argument NAME=VALUE. */
static bool take_option(const char *text, struct setting *s)
{
	const struct {
		const char *name;
		double low, high;
		uint64_t *to;
	} options[] = {
		{ "random=", 1, 1e9, &s->random },
		{ "paths=", 1, 1, &s->paths },
		{ "gate=", 1, 1e6, &s->gate },
		{ "quantum_us=", 1, 1e6, &s->quantum_us },
		{ "table_kb=", 1, 1e4, &s->table_kb },
		{ "clocked=", 1, 1, &s->clocked },
		{ "rate=", 1, 1e7, &s->rate },
		{ "sources=", 1, SOURCES_MAX, &s->sources },
		{ "replicas=", 1, CONF_THREADS_MAX, &s->replicas },
		{ "steal=", 1, 1, &s->steal },
		{ "parts=", 1, STAGE_COUNT_MAX, &s->parts },
		{ "groups=", 1, 1, &s->groups },
	};
	double value;

	if (strncmp(text, "trace=", 6) == 0)
		return (s->trace = fopen(text + 6, "wb"));
	if (strncmp(text, "profile=", 8) == 0) {
		s->profile = text + 8;
		return true;
	}
	if (strncmp(text, "records=", 8) == 0)
		return (s->records = fopen(text + 8, "r"));
	for (size_t i = 0; i < COUNT_OF(options); i++) {
		size_t length = strlen(options[i].name);

		if (strncmp(text, options[i].name, length) != 0)
			continue;
		if (!take(text + length, options[i].low, options[i].high, &value))
			return false;
		*options[i].to = (uint64_t)value;
		return !s->paths || s->stages == SEARCH_STAGES;
	}
	return false;
}

int main(int argc, char **argv)
{
	static const double low[] = { 1, 0, 1, 1, 1, 0, 0, 0.01 }, high[] = {
		STAGES_MAX, 1, CONF_THREADS_MAX, CONF_THREADS_MAX, EVENTS_MAX, 1e6, 1e6, 3600
	};
	double value[COUNT_OF(low)] = { 0 };
	bool is_right = argc >= 2 + (int)COUNT_OF(low) && policy_find(argv[1]) &&
	                policy_find(argv[1])->mechanism != POLICY_THREAD_PER_CONNECTION;

	for (size_t i = 0; is_right && i < COUNT_OF(low); i++)
		is_right = take(argv[i + 2], low[i], high[i], &value[i]);
	struct setting s = { .policy = argv[1],
		             .stages = (unsigned)value[0],
		             .is_passed = value[1] > 0,
		             .threads = (unsigned)value[2],
		             .pool = (unsigned)value[3],
		             .events = (unsigned)value[4],
		             .bottleneck_us = value[5],
		             .idle_us = value[6],
		             .seconds = value[7],
		             .sources = 1 };

	for (int i = 2 + (int)COUNT_OF(low); is_right && i < argc; i++)
		is_right = take_option(argv[i], &s);
	if (!is_right) {
		fputs("usage: synthetic POLICY STAGES PASSED THREADS POOL EVENTS BOTTLENECK_US "
		      "IDLE_US SECONDS [NAME=VALUE]...\n",
		      stderr);
		return 2;
	}
	return run(&s);
}

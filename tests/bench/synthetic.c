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
 *   trace=FILE     all visits, as in telemetry/trace_format.h, without a header
 *   paths=1        the search engine, with 15 stages
 *   gate=N         most events of a visit
 *   quantum_us=N   after which a visit ends; without a gate
 *   table_kb=N     table that each stage reads for each event
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
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "conf/conf.h"
#include "log/log.h"
#include "policy/policy.h"
#include "sched/core/graph.h"
#include "sched/core/push.h"
#include "sched/core/runtime.h"
#include "sched/core/trace.h"
#include "sched/core/visit.h"
#include "spin.h"
#include "telemetry/histogram.h"

#define EVENTS_MAX 1024
#define LINE 64      /* bytes of a cache line */
#define INTERVALS 20 /* of the measured time */
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
	uint64_t begun_ns;    /* of its round */
	struct random random; /* its CPU times, unless they are fixed */
	struct random choice; /* the same paths with each policy */
	enum path path;
	struct histogram rounds[PATH_COUNT];
};

static struct {
	unsigned stages, bottleneck;
	bool has_paths, is_random;
	uint64_t spins[STAGE_COUNT_MAX];
	size_t table_bytes;
	unsigned char *table; /* of all stages, one after the other */
	_Atomic uint64_t rounds;
	_Atomic unsigned live;
	_Atomic bool is_measured, is_stopping;
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

/* Spins for the event's CPU time in a stage, of which that is the mean. */
static void work(struct item *item, uint64_t mean)
{
	if (!ring.is_random) {
		spin(mean);
		return;
	}
	double uniform = (double)((random_next(&item->random) >> 11) + 1) * 0x1p-53; /* (0, 1] */

	spin((uint64_t)(-log(uniform) * (double)mean));
}

/* ---- the stages ---- */

static void end_round(struct item *item, uint64_t now_ns)
{
	int of_ten = random_range(&item->choice, 0, 9);

	atomic_fetch_add_explicit(&ring.rounds, 1, memory_order_relaxed);
	if (atomic_load_explicit(&ring.is_measured, memory_order_relaxed))
		histogram_add(&item->rounds[item->path], now_ns - item->begun_ns, 1);
	item->begun_ns = now_ns;
	item->path = !ring.has_paths || of_ten < TITLES_OF_TEN ? TITLE
	             : of_ten < TITLES_OF_TEN + TERM_OF_TEN    ? TERM
	                                                       : TERMS;
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

		if (me == 0) {
			if (atomic_load_explicit(&ring.is_stopping, memory_order_relaxed)) {
				visit_park(v, batch[i]);
				atomic_fetch_sub(&ring.live, 1);
				continue;
			}
			end_round(item, visit_now(v));
		}
		if (ring.spins[me])
			work(item, ring.spins[me]);
		read_table(me);
		visit_send(v, next_stage(me, item->path), batch[i]);
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
	bool is_passed, has_paths;
	double bottleneck_us, idle_us, seconds;
	uint64_t random; /* seed; 0: CPU times are fixed */
	uint64_t gate, quantum_us, table_kb;
	FILE *trace; /* NULL: none */
};

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
	uint64_t visits, visits_empty, rounds, cpu_ns;
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
	struct sample out = { .rounds = atomic_load(&ring.rounds), .cpu_ns = cpu_ns() };

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

/* Waits, and writes the trace meanwhile. */
static void wait_traced(struct graph *g, const struct setting *s, uint64_t ns)
{
	char data[1 << 16];
	size_t size;

	for (uint64_t step; s->trace && ns; ns -= step) {
		step = ns < TRACE_INTERVAL_NS ? ns : TRACE_INTERVAL_NS;
		wait_ns(step);
		while ((size = trace_read(g, data, sizeof data)) > 0)
			fwrite(data, size, 1, s->trace);
	}
	wait_ns(ns);
}

static void print_times(const struct histogram_sum *times, const char *end)
{
	printf("\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f%s",
	       histogram_quantile(times, 0.5) / 1e3, histogram_quantile(times, 0.9) / 1e3,
	       histogram_quantile(times, 0.99) / 1e3, end);
}

/* Measures the graph, and prints the results. */
static void measure(struct graph *g, const struct setting *s)
{
	uint64_t interval_ns = (uint64_t)(s->seconds * 1e9) / INTERVALS, most = 0, before, start_ns;
	struct histogram_sum times[PATH_COUNT] = { 0 }, all = { 0 };
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
	for (unsigned i = 0; i < s->events; i++)
		for (unsigned p = 0; p < PATH_COUNT; p++) {
			histogram_collect(&times[p], &ring.items[i].rounds[p]);
			histogram_collect(&all, &ring.items[i].rounds[p]);
		}
	printf("],\"interval_s\":%.3f,\"rounds\":%" PRIu64
	       ",\"seconds\":%.3f,\"rounds_per_s\":%.1f,"
	       "\"most_per_s\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"visits\":%" PRIu64
	       ",\"visits_empty\":%" PRIu64 ",",
	       (double)interval_ns / 1e9, to.rounds - from.rounds, seconds,
	       (double)(to.rounds - from.rounds) / seconds, most, to.cpu_ns - from.cpu_ns,
	       to.visits - from.visits, to.visits_empty - from.visits_empty);
	print_times(&all, ",\"paths\":[");
	for (unsigned p = 0, count = s->has_paths ? PATH_COUNT : 1; p < count; p++) {
		printf("{\"rounds\":%" PRIu64 ",", times[p].count);
		print_times(&times[p], p + 1 < count ? "}," : "}]}\n");
	}
}

static int run(const struct setting *s)
{
	struct conf conf;
	struct graph *g;
	double per_us = spins_per_us();

	ring.stages = s->stages;
	ring.has_paths = s->has_paths;
	ring.is_random = s->random > 0;
	ring.bottleneck = s->has_paths ? COMBINER : s->stages / 2;
	ring.table_bytes = (size_t)s->table_kb << 10;
	ring.table = calloc(s->stages, ring.table_bytes + 1);
	if (!ring.table)
		return EXIT_FAILURE;
	memset(ring.table, 1, s->stages * ring.table_bytes); /* pages of its own */
	for (unsigned i = 0; i < s->stages; i++)
		ring.spins[i] =
			(uint64_t)(per_us * (i == ring.bottleneck ? s->bottleneck_us : s->idle_us));
	fill_conf(&conf, s);
	if (graph_new(&g, &conf, NULL, EVENTS_MAX, EVENTS_MAX) != 0 || graph_start(g) != 0)
		return EXIT_FAILURE;
	if (s->trace && trace_start(g) != 0)
		return EXIT_FAILURE;
	atomic_store(&ring.live, s->events);
	for (unsigned i = 0; i < s->events; i++) {
		event_init(&ring.items[i].event, NULL);
		ring.items[i].begun_ns = clock_ns();
		ring.items[i].choice = random_stream(0, i);
		ring.items[i].random = random_stream(s->random, i);
		stage_push(graph_stage(g, 0), 0, &ring.items[i].event);
	}
	measure(g, s);
	atomic_store(&ring.is_stopping, true);
	while (atomic_load(&ring.live))
		wait_ns(NS_PER_MS);
	graph_stop(g);
	for (unsigned i = 0; i < s->events; i++)
		event_fini(&ring.items[i].event);
	graph_free(g);
	free(ring.table);
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
	uint64_t paths = 0;
	const struct {
		const char *name;
		double low, high;
		uint64_t *to;
	} options[] = {
		{ "random=", 1, 1e9, &s->random },     { "paths=", 1, 1, &paths },
		{ "gate=", 1, 1e6, &s->gate },         { "quantum_us=", 1, 1e6, &s->quantum_us },
		{ "table_kb=", 1, 1e4, &s->table_kb },
	};
	double value;

	if (strncmp(text, "trace=", 6) == 0)
		return (s->trace = fopen(text + 6, "wb"));
	for (size_t i = 0; i < COUNT_OF(options); i++) {
		size_t length = strlen(options[i].name);

		if (strncmp(text, options[i].name, length) != 0)
			continue;
		if (!take(text + length, options[i].low, options[i].high, &value))
			return false;
		*options[i].to = (uint64_t)value;
		s->has_paths |= paths == 1;
		return !s->has_paths || s->stages == SEARCH_STAGES;
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
		             .seconds = value[7] };

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

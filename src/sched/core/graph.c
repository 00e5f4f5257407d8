/*
 * graph.c - the construction of a graph from the declared table; the start, watch and end of its
 * threads; the life of its schedules.
 *
 * Knows no stage by name. Main thread.
 */
#include "graph.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/round.h"
#include "base/text.h"
#include "idle.h"
#include "layout/cores.h"
#include "log/log.h"
#include "mechanism.h"
#include "profile.h"
#include "runtime.h"
#include "schedule.h"
#include "trace.h"
#include "visit.h"
#include "worker.h"

struct stage *graph_stage(struct graph *g, unsigned index)
{
	assert(index < graph_row_count);
	return &g->stage[index];
}

unsigned graph_io_count(const struct graph *g)
{
	return g->io_count;
}

struct scarcity *graph_scarcity(struct graph *g)
{
	return &g->scarcity;
}

bool graph_is_growing(const struct graph *g)
{
	/* Relaxed: nothing that was written before it matters. */
	return atomic_load_explicit(&g->is_growing, memory_order_relaxed);
}

/* ---- enqueue predicates ---- */

#define BURST_NS (100 * NS_PER_MS) /* a token bucket's size: the events of this time, or one */

static bool has_token(const struct stage *s, const struct stage_schedule *rule, uint64_t now_ns)
{
	uint64_t full = atomic_load_explicit(&s->bucket_full_ns, memory_order_relaxed),
		 size = BURST_NS > rule->event_ns ? BURST_NS : rule->event_ns;

	return full + rule->event_ns <= now_ns + size;
}

static bool has_enough(const struct stage *s, const struct stage_schedule *rule, uint64_t now_ns)
{
	return (rule->queue_max && waiting_in_queues(s) >= rule->queue_max) ||
	       (rule->event_ns && !has_token(s, rule, now_ns));
}

int graph_full_stage(struct graph *g, uint64_t now_ns)
{
	int found = -1;
	unsigned slot = schedule_read_lock(g);
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);

	for (unsigned i = 0; schedule->has_predicates && i < graph_row_count && found < 0; i++)
		if (has_enough(&g->stage[i], &schedule->stage[i], now_ns))
			found = (int)i;
	schedule_read_unlock(g, slot);
	if (found >= 0)
		counter_add_shared(&g->stage[found].refusals);
	return found;
}

uint64_t graph_waiting(const struct graph *g, unsigned stage)
{
	return waiting_in_queues(&g->stage[stage]);
}

/* ---- threads ---- */

/* Worker threads run libjpeg and the kernels, nested in all pass-through stages: 2 MiB is ample. */
#define WORKER_STACK_BYTES (2u << 20)

static int group_init(struct group *grp, struct graph *g, enum group_id id)
{
	static const char *const name[GROUP_COUNT] = {
		[GROUP_IO] = "io", [GROUP_MAIN] = "main", [GROUP_DISK] = "disk"
	};

	grp->id = id;
	grp->name = name[id];
	grp->graph = g;
	grp->workers = aligned_alloc(CACHE_LINE, CONF_THREADS_MAX * sizeof *grp->workers);
	return grp->workers ? 0 : -ENOMEM;
}

static void group_fini(struct group *grp)
{
	unsigned count = group_worker_count(grp);

	for (unsigned i = 0; i < count; i++)
		close(grp->workers[i].wake_fd);
	color_fini(grp);
	free(grp->workers);
}

static _Thread_local jmp_buf *thread_end; /* of a worker's thread */

static void *worker_thread(void *arg)
{
	struct worker *const w = arg;
	char name[16];
	jmp_buf end;

	snprintf(name, sizeof name, "%s/%u", w->group->name, w->index);
	pthread_setname_np(pthread_self(), name);
	thread_end = &end;
	if (setjmp(end)) { /* another thread runs the worker */
		pool_thread_fini();
		return NULL;
	}
	if (w->has_former) { /* what belongs to a thread is made again */
		pthread_join(w->former, NULL);
		perf_close(&w->perf);
		worker_adopt(w, worker_schedule(w));
	}
	worker_run(w);
	/* Acquire: pairs with graph_stop(). The main thread may have prepared stages since. */
	(void)atomic_load_explicit(&w->group->is_stopping, memory_order_acquire);
	worker_fini(w);
	return NULL;
}

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, WORKER_STACK_BYTES);
	err = pthread_create(&thread, &attr, worker_thread, w);
	if (!err)
		w->thread = thread;
	pthread_attr_destroy(&attr);
	return -err;
}

void visit_renew_thread(struct visit *v)
{
	struct worker *w = v->worker;
	struct graph *g = w->group->graph;

	idle_retract(w);
	idle_time_off(&w->counters.idle, clock_ns());
	pthread_mutex_lock(&g->lock);
	w->former = pthread_self();
	w->has_former = true;
	bool is_renewed = !worker_is_stopping(w) && start_thread(w) == 0;

	pthread_mutex_unlock(&g->lock);
	if (is_renewed)
		longjmp(*thread_end, 1);
}

/* Makes the worker's queues of partitioned stages, unless an earlier attempt to start it has. */
static int init_inboxes(struct group *grp, unsigned index)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &grp->graph->stage[i];
		int err = 0;

		if (s->group == grp && s->kind == STAGE_PARTITIONED && !s->queue[index].fifo.cells)
			err = stage_queue_init(&s->queue[index], s->queue[index].capacity);
		if (err)
			return err;
	}
	return 0;
}

static int start_worker(struct group *grp, unsigned index)
{
	struct worker *w = &grp->workers[index];
	int err;

	assert(index < CONF_THREADS_MAX);
	memset(w, 0, sizeof *w);
	w->group = grp;
	w->index = index;
	/* A source waits for its descriptor together with others; other workers block in read. */
	w->wake_fd = eventfd(0, EFD_CLOEXEC | (grp->source ? EFD_NONBLOCK : 0));
	err = w->wake_fd < 0 ? -errno : init_inboxes(grp, index);
	trace_attach(w);
	if (!err)
		err = worker_prepare(
			w, atomic_load_explicit(&grp->graph->schedule, memory_order_relaxed));
	if (!err)
		err = start_thread(w);
	if (err) {
		log_error("worker %s/%u: cannot start: %s", grp->name, index, strerror(-err));
		worker_fini(w);
		if (w->wake_fd >= 0)
			close(w->wake_fd);
		return err;
	}
	/* Release: a thread that sees the count sees the worker. */
	atomic_store_explicit(&grp->worker_count, index + 1, memory_order_release);
	return 0;
}

/* ---- stages ---- */

/* Allocates a zeroed array. Its size is a multiple of the alignment, because that of the type
 * is. */
static void *new_array(size_t count, size_t size)
{
	void *array = aligned_alloc(CACHE_LINE, count * size);

	if (array)
		memset(array, 0, count * size);
	return array;
}

/* Makes the stage's queues. All events may be in one replica, so each queue has room for all.
 * Queues of a partitioned stage are made with their workers (start_worker()). */
static int queues_new(struct stage *s, size_t queue_capacity, size_t inbox_capacity)
{
	bool is_partitioned = s->kind == STAGE_PARTITIONED;
	int err = 0;

	s->queue_count = is_partitioned               ? CONF_THREADS_MAX
	                 : s->group->id == GROUP_MAIN ? s->graph->replica_count
	                                              : 1;
	s->queue = new_array(s->queue_count, sizeof *s->queue);
	s->gate = new_array(s->queue_count, sizeof *s->gate);
	if (!s->queue || !s->gate)
		return -ENOMEM;
	for (unsigned i = 0; i < s->queue_count && !err; i++) {
		if (is_partitioned)
			s->queue[i].capacity = inbox_capacity;
		else
			err = stage_queue_init(&s->queue[i], queue_capacity);
	}
	return err;
}

static int stage_new(struct graph *g, unsigned index, const struct conf *conf,
                     size_t inbox_capacity)
{
	const struct graph_row *row = &graph_rows[index];
	struct stage *s = &g->stage[index];

	s->class = row->class;
	s->graph = g;
	s->index = index;
	s->kind = graph_stage_kind(conf, index);
	s->group = &g->group[graph_stage_group(index)];
	if (row->class->poll)
		s->group->source = s;
	for (unsigned i = 0; i < COUNT_OF(row->targets) && row->targets[i]; i++) {
		int to = graph_stage_index(row->targets[i]);

		assert(to >= 0);
		s->targets |= stage_set_of((unsigned)to);
	}
	return queues_new(s, g->queue_capacity, inbox_capacity);
}

/* ---- schedules: made, published, adopted and freed ---- */

/*
 *	made ---> published ---> retired ---> freed
 *	          (current)      (a newer one is published)
 *
 * Nothing here waits. A worker adopts the current schedule between two visits, so a worker that
 *hangs in a system call may keep an old one for long. Others are published meanwhile. All retired
 *schedules are freed at the first tick at which every worker has adopted the current one.
 */
#define ADOPTION_TICK_MS 2 /* between checks for adoption */

static const struct schedule *current_of(const struct graph *g)
{
	return atomic_load_explicit(&g->schedule, memory_order_relaxed);
}

/* The pointer is to const for all other code. */
static void free_schedule(const struct schedule *schedule)
{
	free((void *)(uintptr_t)schedule);
}

/* Returns the number of the schedule that is published next. */
static uint32_t next_number(const struct graph *g)
{
	return current_of(g) ? current_of(g)->number + 1 : 1;
}

/* ---- making ---- */

/* Makes the queues that the schedule needs, before any worker uses it. */
static int prepare_queues(struct graph *g, const struct schedule *schedule)
{
	int err = 0;

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->stage[i];

		for (unsigned k = 0; k < s->queue_count && !err && schedule->stage[i].by_size &&
		                     s->kind != STAGE_PARTITIONED;
		     k++)
			err = stage_queue_make_classes(&s->queue[k]);
	}
	for (unsigned i = 0; i < schedule->group_count && !err; i++)
		if (schedule->group[i].mechanism->prepare)
			err = schedule->group[i].mechanism->prepare(&g->group[GROUP_MAIN], schedule,
			                                            i);
	return err;
}

/* Determines which performance counters exist when counting starts. All later schedules use the
 * same. */
static void set_perf(const struct graph *g, const struct conf *conf, struct perf_caps *caps)
{
	const struct schedule *old = current_of(g);

	if (conf->experiment.counters != CONF_YES)
		return;
	if (old && old->perf.is_on) {
		*caps = old->perf;
		return;
	}
	perf_probe(caps);
	perf_log(caps);
}

/* Returns the weights to make parts from: measured ones if the layout is online, otherwise the
 * profile. NULL: nothing is known. */
static const struct partition_weights *weights_for(const struct graph *g, const struct conf *conf,
                                                   struct partition_weights *measured)
{
	if (conf->layout.mode == CONF_LAYOUT_PARTITION && conf->layout.online == CONF_YES &&
	    current_of(g)) {
		stage_costs_collect(measured, g);
		if (partition_weights_suffice(measured))
			return measured;
	}
	return g->has_profile ? &g->weights : NULL;
}

static int complete(struct graph *g, const struct conf *conf, struct schedule *schedule)
{
	struct partition_weights measured;
	struct text error = TEXT_LOCAL(256);
	int err = schedule_build(schedule, conf, cores_usable(), weights_for(g, conf, &measured),
	                         &error);

	if (err) /* a reload combines live keys of one valid configuration with the rest of another
	          */
		log_error("%s", error.data);
	/* Listeners exist for the I/O threads of the first schedule. */
	if (!err && g->io_count && !schedule_is_thread_per_connection(schedule))
		schedule->io_count = g->io_count;
	if (!err)
		err = domains_place(g->topology, schedule);
	if (!err)
		err = prepare_queues(g, schedule);
	if (!err)
		set_perf(g, conf, &schedule->perf);
	schedule->number = next_number(g);
	return err;
}

/* Makes the schedule of a configuration, with all that it needs of the graph. Returns 0 or -errno,
 * with the reason logged. */
static int new_schedule(struct graph *g, const struct conf *conf, struct schedule **out)
{
	struct schedule *schedule = malloc(sizeof *schedule);

	if (!schedule)
		return -ENOMEM;
	int err = complete(g, conf, schedule);

	if (err) {
		free(schedule);
		return err;
	}
	if (schedule_is_thread_per_connection(schedule) &&
	    schedule->io_count < conf->limits.connections)
		log_notice("policy thread-per-connection: %u thread%s for up to %" PRIu64
		           " connections: scheduler.threads is less than limits.connections; "
		           "further connections wait until one of the first %u closes",
		           schedule->io_count, plural(schedule->io_count), conf->limits.connections,
		           schedule->io_count);
	*out = schedule;
	return 0;
}

/* Starts the threads that the schedule has work for. Threads of an earlier schedule that have no
 * work sleep. Returns 0 or -errno, with the reason logged. */
static int start_workers(struct graph *g, const struct schedule *schedule)
{
	const unsigned count[GROUP_COUNT] = { [GROUP_IO] = schedule->io_count,
		                              [GROUP_MAIN] = schedule->worker_count,
		                              [GROUP_DISK] = schedule->disk_count };
	int err = 0;

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		while (!err && group_worker_count(&g->group[i]) < count[i])
			err = start_worker(&g->group[i], group_worker_count(&g->group[i]));
	return err;
}

/* Lets the workers initialise all stages that the schedule gives them, or does it for those that
 * run already, so that each of them can adopt it. Stages that were initialised stay so. */
static int prepare_workers(struct graph *g, const struct schedule *schedule)
{
	int err = start_workers(g, schedule);

	for (struct worker *w = NULL; !err && (w = graph_next_worker(g, w));)
		err = worker_prepare(w, schedule);
	return err;
}

/* ---- publishing and adoption ---- */

static void wake_all(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		idle_wake_all(&g->group[i]);
}

/* Publishes the schedule, for which all workers are prepared. Waking all workers is also the fence
 * that schedule_read_lock() pairs with. */
static void publish(struct graph *g, const struct schedule *schedule)
{
	assert(g->retired_count < SCHEDULE_RETIRED_MAX);
	g->retired[g->retired_count++] = current_of(g);
	atomic_store_explicit(&g->schedule, schedule, memory_order_release);
	wake_all(g);
	g->readers.unseen = 3;
}

static bool has_adopted(const struct graph *g, const struct worker *w)
{
	return atomic_load_explicit(&w->schedule, memory_order_acquire) == current_of(g);
}

static bool have_workers_adopted(const struct graph *g)
{
	struct worker *w = NULL;

	while ((w = graph_next_worker(g, w)) && has_adopted(g, w))
		continue;
	return !w;
}

/* Returns whether every other thread that may read a retired schedule has ended. Such a thread has
 * counted itself before the last publication. So it has ended once each counter was zero since. A
 * later reader that is late to count itself reads the current schedule. */
static bool have_readers_ended(struct graph *g)
{
	struct schedule_readers *r = &g->readers;
	unsigned slot = atomic_load_explicit(&r->slot, memory_order_relaxed);

	for (unsigned i = 0; i < COUNT_OF(r->count); i++)
		/* Acquire: pairs with schedule_read_unlock(). */
		if (!atomic_load_explicit(&r->count[i], memory_order_acquire))
			r->unseen &= ~(1u << i);
	if (r->unseen == 1u << slot) /* new readers leave it, so that it becomes zero, too */
		atomic_store_explicit(&r->slot, 1 - slot, memory_order_relaxed);
	return r->unseen == 0;
}

static void stop_mechanisms(struct graph *g, const struct schedule *schedule)
{
	for (unsigned i = 0; i < schedule->group_count; i++)
		if (schedule->group[i].mechanism->stop)
			schedule->group[i].mechanism->stop(&g->group[GROUP_MAIN]);
}

/* Ends the use of the retired schedules, which all workers have replaced. A push under one of them
 * may have woken a worker that does not visit the stage any more, so all workers check once more.
 */
static void free_retired(struct graph *g)
{
	const struct schedule *schedule = current_of(g);

	for (unsigned i = 0; i < g->retired_count; i++)
		stop_mechanisms(g, g->retired[i]);
	for (unsigned i = 0; i < schedule->group_count; i++)
		if (schedule->group[i].mechanism->start)
			schedule->group[i].mechanism->start(&g->group[GROUP_MAIN], schedule, i);
	wake_all(g);
	for (; g->retired_count > 0; g->retired_count--)
		free_schedule(g->retired[g->retired_count - 1]);
}

/* Returns whether no retired schedule is left. */
static bool settle(struct graph *g)
{
	if (g->retired_count && have_workers_adopted(g) && have_readers_ended(g))
		free_retired(g);
	return g->retired_count == 0;
}

bool graph_is_settled(const struct graph *g)
{
	return g->retired_count == 0;
}

void graph_print_behind(const struct graph *g, struct text *to)
{
	const char *separator = "";

	for (struct worker *w = NULL; (w = graph_next_worker(g, w));) {
		if (has_adopted(g, w))
			continue;
		text_printf(to, "%s%s/%u", separator, w->group->name, w->index);
		separator = ", ";
	}
}

/* ---- switches ---- */

/* Logs the stages and cores of each part. Logs nothing in other layouts. */
static void log_parts(const struct schedule *schedule)
{
	const struct partition *p = &schedule->partition;
	struct text t = TEXT_LOCAL(1024);

	if (schedule->layout != CONF_LAYOUT_PARTITION)
		return;
	for (unsigned part = 0; part < p->part_count; part++) {
		text_printf(&t, "%s%u core%s for", part ? "; " : "", p->cores[part],
		            plural(p->cores[part]));
		for (unsigned i = 0; i < p->stage_count; i++)
			if (p->part[i] == part)
				text_printf(&t, " %s", graph_rows[i].class->name);
	}
	log_notice("layout partition: %s; imbalance %.2f, %llu event%s cut", t.data, p->imbalance,
	           (unsigned long long)p->cut, plural(p->cut));
}

int graph_prepare_switch(struct graph *g, const struct conf *conf, struct schedule **next)
{
	struct schedule *schedule;

	if (!settle(g) && g->retired_count == SCHEDULE_RETIRED_MAX)
		return -EBUSY;
	int err = new_schedule(g, conf, &schedule);

	if (err)
		return err;
	err = prepare_workers(g, schedule);
	if (err)
		free(schedule);
	else
		*next = schedule;
	return err;
}

void graph_switch(struct graph *g, struct schedule *next)
{
	publish(g, next);
	log_parts(next);
}

int graph_change(struct graph *g, struct schedule *schedule)
{
	const struct schedule *old = current_of(g);
	bool has_new_parts = memcmp(old->partition.part, schedule->partition.part,
	                            sizeof old->partition.part) != 0;
	int err = domains_place(g->topology, schedule);

	if (!err)
		err = prepare_workers(g, schedule);
	if (err)
		return err;
	schedule->number = next_number(g);
	publish(g, schedule);
	if (has_new_parts)
		log_parts(schedule);
	return 0;
}

int graph_tick(struct graph *g)
{
	return settle(g) ? -1 : ADOPTION_TICK_MS;
}

/* ---- the graph ---- */

/* Reads the stages' weights, if the layout needs them and has a profile. */
static int read_profile(struct graph *g, const struct conf *conf)
{
	struct text errors;

	g->has_profile = conf->layout.mode == CONF_LAYOUT_PARTITION && conf->layout.profile[0];
	if (!g->has_profile)
		return 0;
	text_init_growable(&errors, 64 << 10);
	int err = profile_read(&g->weights, conf->layout.profile, &errors);

	if (err)
		log_error("layout.profile: %s", errors.data);
	text_fini(&errors);
	return err;
}

/* Fills a zeroed graph. On an error graph_free() releases what was made. */
static int build(struct graph *g, const struct conf *conf, size_t inbox_capacity)
{
	struct schedule *schedule = NULL;
	int err = topology_new(&g->topology);

	if (!err)
		err = read_profile(g, conf);
	for (unsigned i = 1; i < GROUP_COUNT && !err; i++)
		err = group_init(&g->group[i], g, (enum group_id)i);
	for (unsigned i = 0; i < graph_row_count && !err; i++)
		err = stage_new(g, i, conf, inbox_capacity);
	if (!err)
		err = new_schedule(g, conf, &schedule);
	if (!err)
		g->io_count = schedule->listener_count;
	atomic_init(&g->schedule, schedule);
	return err;
}

int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity)
{
	struct graph *g = new_array(1, round_up(sizeof *g, CACHE_LINE));

	if (!g)
		return -ENOMEM;
	pthread_cond_init(&g->urgent_over, NULL);
	g->app = app;
	g->queue_capacity = queue_capacity;
	g->replica_count =
		conf->layout.mode == CONF_LAYOUT_REPLICATE ? (unsigned)conf->layout.replicas : 1;
	pthread_mutex_init(&g->lock, NULL);
	int err = build(g, conf, inbox_capacity);

	if (err)
		graph_free(g);
	else
		*out = g;
	return err;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		group_fini(&g->group[i]);
	for (struct stage *s = g->stage; s < g->stage + graph_row_count; s++) {
		for (unsigned i = 0; s->queue && i < s->queue_count; i++)
			stage_queue_fini(&s->queue[i]);
		free(s->queue);
		free(s->gate);
	}
	free_schedule(current_of(g));
	for (unsigned i = 0; i < g->retired_count; i++)
		free_schedule(g->retired[i]);
	trace_free(g->tracer);
	free(g->controllers);
	topology_free(g->topology);
	pthread_cond_destroy(&g->urgent_over);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* ---- startup, watch and stop ---- */

int graph_start(struct graph *g)
{
	int err = start_workers(g, current_of(g));

	if (err)
		graph_stop(g);
	else
		log_parts(current_of(g));
	return err;
}

/* ---- the watchdog ---- */

/* A worker only counts its steps, without a clock. The main thread checks the count several times
 * within the limit, and so knows how long one step takes. A sleeping worker is known by its bit. */

static bool is_asleep(const struct worker *w)
{
	/* A snapshot. For a worker that is being woken, the time restarted at the previous check.
	 */
	return worker_words_have(w->group->sleepers, w->index);
}

static bool is_stuck(struct worker *w, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t progress = counter_read(&w->progress);

	/* Disk threads may wait for the disk. A restart would not make it faster, and would lose
	 * the images that wait. */
	if (w->group->id == GROUP_DISK)
		return false;
	if (progress != w->seen_progress || w->seen_ns == 0 || is_asleep(w)) {
		w->seen_progress = progress;
		w->seen_ns = now_ns;
	}
	return now_ns - w->seen_ns > limit_ns;
}

bool graph_is_alive(struct graph *g, uint64_t now_ns, uint64_t limit_ns)
{
	for (struct worker *w = NULL; (w = graph_next_worker(g, w));)
		if (is_stuck(w, now_ns, limit_ns)) {
			log_error("worker %s/%u: stuck in one piece of work for %.1f s",
			          w->group->name, w->index,
			          (double)(now_ns - w->seen_ns) / (double)NS_PER_S);
			return false;
		}
	return true;
}

void graph_stop(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		atomic_store_explicit(&g->group[i].is_stopping, true, memory_order_release);
	wake_all(g);
	/* Whoever takes the lock later sees that the group stops, and starts no thread. */
	pthread_mutex_lock(&g->lock);
	pthread_mutex_unlock(&g->lock);
	for (struct worker *w = NULL; (w = graph_next_worker(g, w));)
		pthread_join(w->thread, NULL);
}

/*
 * graph.c - builds stages, queues and groups from the declared table, starts and stops the workers,
 * and switches schedules. Knows no stage by name. Main thread.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/round.h"
#include "base/text.h"
#include "conf/conf.h"
#include "graph_stats.h"
#include "idle.h"
#include "layout/placement.h"
#include "layout/topology.h"
#include "layout_report.h"
#include "log/log.h"
#include "profile.h"
#include "stage_costs.h"
#include "telemetry/perf.h"
#include "worker.h"

#define ADOPTION_POLL_NS 200000 /* between looks whether all workers have adopted a schedule */
#define ADOPTION_TICK_MS 10     /* the same, if nobody waits for it */

int graph_stage_index(const char *name)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (strcmp(graph_rows[i].class->name, name) == 0)
			return (int)i;
	return -1;
}

enum stage_kind graph_stage_kind(const struct conf *conf, unsigned index)
{
	uint64_t asked = conf->stage[index].kind;

	return asked ? (enum stage_kind)asked : graph_rows[index].class->kind;
}

enum group_id graph_stage_group(unsigned index)
{
	const struct graph_row *row = &graph_rows[index];

	return row->group == GROUP_IO && !row->class->poll ? GROUP_MAIN : row->group;
}

struct stage *graph_stage(struct graph *g, unsigned index)
{
	assert(index < graph_row_count);
	return &g->stage[index];
}

unsigned graph_port_count(const struct graph *g)
{
	return g->port_count;
}

/* ---- making ---- */

/* Zeroed; the room is a multiple of the alignment, since the type is. */
static void *new_array(size_t count, size_t size)
{
	void *array = aligned_alloc(CACHE_LINE, count * size);

	if (array)
		memset(array, 0, count * size);
	return array;
}

/* Any event may be in any replica: each queue holds all. */
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
	for (unsigned i = 0; i < s->queue_count && is_partitioned; i++)
		s->queue[i].capacity = inbox_capacity; /* made with its worker */
	for (unsigned i = 0; i < s->queue_count && !is_partitioned && !err; i++)
		err = stage_queue_init(&s->queue[i], queue_capacity);
	return err;
}

static int stage_setup(struct graph *g, unsigned index, const struct conf *conf,
                       size_t queue_capacity, size_t inbox_capacity)
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
		s->targets |= UINT32_C(1) << to;
	}
	return queues_new(s, queue_capacity, inbox_capacity);
}

static int group_setup(struct graph *g, enum group_id id)
{
	static const char *const name[GROUP_COUNT] = {
		[GROUP_IO] = "port", [GROUP_MAIN] = "main", [GROUP_DISK] = "disk"
	};
	struct group *grp = &g->group[id];

	grp->id = id;
	grp->name = name[id];
	grp->graph = g;
	grp->workers = aligned_alloc(CACHE_LINE, CONF_THREADS_MAX * sizeof *grp->workers);
	return grp->workers ? 0 : -ENOMEM;
}

/* ---- schedules ---- */

/* Makes what the schedule needs of queues before anybody goes by it. */
static int prepare_queues(struct graph *g, const struct schedule *schedule)
{
	struct queue *tokens = g->group[GROUP_MAIN].tokens;
	int err = 0;

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->stage[i];

		for (unsigned k = 0; k < s->queue_count && !err && schedule->stage[i].by_size &&
		                     s->kind != STAGE_PARTITIONED;
		     k++)
			err = stage_queue_make_classes(&s->queue[k]);
	}
	/* A token for every event of every stage, and as many again after a switch. */
	for (unsigned i = 0;
	     i < schedule->domain_count && !err && schedule->policy->mechanism == POLICY_CENTRAL;
	     i++)
		if (!tokens[i].cells)
			err = queue_init(&tokens[i], 2 * g->queue_capacity * graph_row_count);
	return err;
}

/* Workers that are bound get cores near those of their domain. A quota grants CPU time and no
 * cores: there may be others like us on the machine, and we would all be bound to the first of its
 * cores.
 */
static int place_workers(const struct graph *g, struct schedule *schedule)
{
	struct placement place;

	if (topology_cpu_quota(g->topology) < topology_core_count(g->topology))
		schedule->is_bound = false;
	if (!schedule->is_bound)
		return 0;
	int err = placement_domains(&place, g->topology, schedule->domain_cores,
	                            schedule->domain_count);

	if (err)
		return err;
	memcpy(schedule->domain_range, place.domain, sizeof place.domain);
	for (unsigned i = 0;
	     i < schedule->worker_count && schedule->policy->mechanism != POLICY_POOL; i++) {
		assert(place.worker[i].domain == schedule->domain[i]);
		schedule->core[i] = place.worker[i].core;
	}
	return 0;
}

/* Finds out what can be counted when counting begins; from then on all workers go by the same. */
static void offer_counters(const struct graph *g, const struct conf *conf, struct perf_caps *o)
{
	const struct schedule *old = atomic_load_explicit(&g->schedule, memory_order_relaxed);

	if (conf->scheduler.counters != CONF_YES)
		return;
	if (old && old->counters.is_on) {
		*o = old->counters;
		return;
	}
	perf_probe(o);
	perf_log(o);
}

static int add_workers(struct group *grp, unsigned count)
{
	int err = 0;

	while (!err && group_worker_count(grp) < count)
		err = group_add_worker(grp);
	return err;
}

/* What parts are to be made by: what was measured, if they are cut anew by that anyhow, else the
 * profile. NULL: nothing is known. */
static const struct partition_weights *weights_for(struct graph *g, const struct conf *conf,
                                                   struct partition_weights *measured)
{
	if (conf->layout.mode == CONF_LAYOUT_PARTITION && conf->layout.online == CONF_YES &&
	    atomic_load_explicit(&g->schedule, memory_order_relaxed)) {
		stage_costs_collect(measured, g);
		if (repartition_knows_enough(measured))
			return measured;
	}
	return g->has_profile ? &g->weights : NULL;
}

/* Makes the schedule of a configuration. After the first, the number of ports that stay open is
 * given. */
static int schedule_new(struct graph *g, const struct conf *conf, struct schedule **out)
{
	struct schedule *schedule = malloc(sizeof *schedule);
	struct partition_weights measured;
	char data[256];
	struct text error;
	int err;

	if (!schedule)
		return -ENOMEM;
	text_init(&error, data, sizeof data);
	err = schedule_build(schedule, conf, topology_cpu_quota(g->topology),
	                     weights_for(g, conf, &measured), &error);
	if (err) /* of valid configurations only what a reload makes of two: what is live of one,
	            and the rest of the other */
		log_error("%s", data);
	if (!err && g->port_count && !schedule->thread_per_connection)
		schedule->port_count = g->port_count;
	if (!err)
		err = place_workers(g, schedule);
	if (!err)
		err = prepare_queues(g, schedule);
	if (err) {
		free(schedule);
		return err;
	}
	offer_counters(g, conf, &schedule->counters);
	*out = schedule;
	return 0;
}

/* What the stages weigh, if the layout wants to know and there is a profile. */
static int take_profile(struct graph *g, const struct conf *conf)
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

int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity)
{
	struct graph *g = aligned_alloc(CACHE_LINE, round_up(sizeof *g, CACHE_LINE));
	int err;

	if (!g)
		return -ENOMEM;
	memset(g, 0, sizeof *g);
	g->app = app;
	g->queue_capacity = queue_capacity;
	g->replica_count =
		conf->layout.mode == CONF_LAYOUT_REPLICATE ? (unsigned)conf->layout.replicas : 1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	err = topology_new(&g->topology);
	if (!err)
		err = take_profile(g, conf);
	for (unsigned i = 1; i < GROUP_COUNT && !err; i++)
		err = group_setup(g, (enum group_id)i);
	for (unsigned i = 0; i < graph_row_count && !err; i++)
		err = stage_setup(g, i, conf, queue_capacity, inbox_capacity);
	struct schedule *schedule = NULL;

	if (!err)
		err = schedule_new(g, conf, &schedule);
	if (!err)
		g->port_count = schedule->listener_count;
	atomic_init(&g->schedule, schedule);
	if (err) {
		graph_free(g);
		return err;
	}
	*out = g;
	return 0;
}

/* The pointer is to const for everybody else. */
static void free_schedule(const struct schedule *schedule)
{
	free((void *)(uintptr_t)schedule);
}

static void queues_free(struct stage *s)
{
	for (unsigned i = 0; s->queue && i < s->queue_count; i++)
		stage_queue_fini(&s->queue[i]);
	free(s->queue);
	free(s->gate);
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			close(g->group[i].workers[k].wake_fd);
		central_drop(&g->group[i]);
		for (unsigned k = 0; k < COUNT_OF(g->group[i].tokens); k++)
			queue_fini(&g->group[i].tokens[k]);
		free(g->group[i].workers);
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		queues_free(&g->stage[i]);
	free_schedule(atomic_load_explicit(&g->schedule, memory_order_relaxed));
	free_schedule(g->retired);
	topology_free(g->topology);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* Starts the threads that the schedule has work for. Those of an earlier schedule that it has none
 * for sleep. */
static int add_workers_for(struct graph *g, const struct schedule *schedule)
{
	const unsigned count[GROUP_COUNT] = { [GROUP_IO] = schedule->port_count,
		                              [GROUP_MAIN] = schedule->worker_count,
		                              [GROUP_DISK] = schedule->disk_count };
	int err = 0;

	for (unsigned i = 1; i < GROUP_COUNT && !err; i++)
		err = add_workers(&g->group[i], count[i]);
	return err;
}

static void wake_everybody(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		idle_wake_all(&g->group[i]);
}

/* Nothing is retired: there are never more than two that anybody may go by. Waking everybody is a
 * fence, too: see schedule_read_lock(). */
static void publish(struct graph *g, const struct schedule *schedule)
{
	assert(!g->retired);
	g->retired = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	atomic_store_explicit(&g->schedule, schedule, memory_order_release);
	wake_everybody(g);
}

/* And nobody else goes by the one before. A worker in the middle of a long piece of work adopts
 * after it. */
static bool is_adopted(const struct graph *g)
{
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_relaxed);

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			if (atomic_load_explicit(&g->group[i].workers[k].schedule,
			                         memory_order_acquire) != schedule)
				return false;
	}
	/* Acquire: with schedule_read_unlock(). */
	return atomic_load_explicit(&g->readers, memory_order_acquire) == 0;
}

static void wait_for_adoption(const struct graph *g)
{
	const struct timespec pause = { .tv_nsec = ADOPTION_POLL_NS };

	while (!is_adopted(g))
		nanosleep(&pause, NULL);
}

/* When all have adopted. Whoever pushed by the old schedule may have woken a worker that does not
 * visit the stage by the new one: all look once more. */
static void retire(struct graph *g)
{
	central_renew(&g->group[GROUP_MAIN],
	              atomic_load_explicit(&g->schedule, memory_order_relaxed));
	wake_everybody(g);
	free_schedule(g->retired);
	g->retired = NULL;
}

/* Begins anew whatever changes schedules by itself. */
static void start_controls(struct graph *g)
{
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	struct partition_weights seen;

	control_start(&g->control, g, schedule, clock_ns());
	stage_costs_collect(&seen, g);
	if (schedule->is_online)
		repartition_start(&g->repartition, schedule->online_interval_ns,
		                  schedule->online_imbalance, &seen, clock_ns());
	else
		repartition_stop(&g->repartition);
	layout_report_log(schedule);
}

int graph_switch(struct graph *g, const struct conf *conf)
{
	struct schedule *schedule;
	int err = schedule_new(g, conf, &schedule);

	if (err)
		return err;
	err = add_workers_for(g, schedule);
	if (err) {
		free(schedule);
		return err;
	}
	if (g->retired) { /* a controller has changed something just now */
		wait_for_adoption(g);
		retire(g);
	}
	publish(g, schedule);
	wait_for_adoption(g);
	retire(g);
	start_controls(g);
	return 0;
}

/* Lets the controllers look, and goes by what they want. */
static int control(struct graph *g, uint64_t now_ns)
{
	const struct schedule *old = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	struct schedule *schedule = malloc(sizeof *schedule);
	bool has_changed;
	int err = 0;

	if (!schedule)
		return -ENOMEM;
	has_changed = control_step(&g->control, g, old, schedule, now_ns);
	if (has_changed)
		err = add_workers_for(g, schedule);
	if (has_changed && !err)
		publish(g, schedule);
	else
		free(schedule);
	return err;
}

/* Goes by other parts if those that there are have lost their balance. */
static int repartition(struct graph *g, uint64_t now_ns)
{
	const struct schedule *old = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	struct partition_weights done;
	struct partition p = old->partition;
	struct schedule *schedule;

	stage_costs_collect(&done, g);
	if (!repartition_look(&g->repartition, &p, &done, schedule_core_count(old), now_ns))
		return 0;
	schedule = malloc(sizeof *schedule);
	if (!schedule)
		return -ENOMEM;
	*schedule = *old;
	schedule_repartition(schedule, &p);
	int err = place_workers(g, schedule);

	if (err) {
		free(schedule);
		return err;
	}
	publish(g, schedule);
	layout_report_log(schedule);
	return 0;
}

int graph_tick(struct graph *g)
{
	bool is_controlled = control_is_on(&g->control);

	if (!is_controlled && !repartition_is_on(&g->repartition))
		return -1;
	if (g->retired) {
		if (!is_adopted(g))
			return ADOPTION_TICK_MS;
		retire(g);
	}
	uint64_t now_ns = clock_ns();
	uint64_t control_ns = is_controlled ? control_due_ns(&g->control) : UINT64_MAX;
	uint64_t repartition_ns =
		repartition_is_on(&g->repartition) ? g->repartition.due_ns : UINT64_MAX;
	bool is_control =
		control_ns <= repartition_ns; /* whose turn it is: one schedule at a time */
	uint64_t due_ns = is_control ? control_ns : repartition_ns;

	if (now_ns < due_ns)
		return (int)((due_ns - now_ns) / NS_PER_MS) + 1;
	int err = is_control ? control(g, now_ns) : repartition(g, now_ns);

	if (!err)
		return ADOPTION_TICK_MS;
	log_error("%s: %s",
	          is_control ? "the controllers of policy seda stop, and all sizes stay as they are"
	                     : "stages are not divided anew any more (layout.online)",
	          strerror(-err));
	if (is_control)
		control_stop(&g->control);
	else
		repartition_stop(&g->repartition);
	return ADOPTION_TICK_MS;
}

/* ---- watching ---- */

bool graph_is_alive(struct graph *g, uint64_t now_ns, uint64_t limit_ns)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		struct group *grp = &g->group[i];
		unsigned count = group_worker_count(grp);

		for (unsigned k = 0; k < count; k++) {
			if (!watchdog_is_stuck(&grp->workers[k], now_ns, limit_ns))
				continue;
			log_error("worker %s/%u is stuck in one piece of work for %.1f s",
			          grp->name, k,
			          (double)(now_ns - grp->workers[k].seen_ns) / (double)NS_PER_S);
			return false;
		}
	}
	return true;
}

/* ---- starting and stopping ---- */

int graph_start(struct graph *g)
{
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	int err = add_workers_for(g, schedule);

	if (err)
		graph_stop(g);
	else
		start_controls(g);
	return err;
}

void graph_stop(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		atomic_store_explicit(&g->group[i].is_stopping, true, memory_order_relaxed);
	wake_everybody(g);
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			pthread_join(g->group[i].workers[k].thread, NULL);
	}
}

/* ---- statistics ---- */

void graph_stats_json(struct graph *g, struct json *j)
{
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);

	json_object(j, "scheduler");
	json_string(j, "policy", schedule->policy->name);
	json_bool(j, "dynamic", schedule->is_dynamic);
	json_array(j, "policies");
	for (size_t i = 0; policy_at(i); i++)
		json_string(j, NULL, policy_at(i)->name);
	json_array_end(j);
	json_array(j, "groups");
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		if (group_worker_count(&g->group[i]))
			stats_group_json(j, &g->group[i]);
	json_array_end(j);
	if (schedule->counters.is_on)
		stats_counters_json(j, g, &schedule->counters);
	json_object_end(j);
	layout_report_json(j, g, schedule);
	json_array(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		stats_stage_json(j, &g->stage[i], schedule);
	json_array_end(j);
}

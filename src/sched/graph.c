/*
 * graph.c - the construction of a graph from the declared table.
 *
 * Stages and queues are made here, threads in group.c, and the schedule in schedule_switch.c. Knows
 * no stage by name. Main thread.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/round.h"
#include "base/text.h"
#include "controllers.h"
#include "group.h"
#include "idle.h"
#include "log/log.h"
#include "profile.h"
#include "replicas.h"
#include "runtime.h"
#include "schedule_switch.h"
#include "trace.h"
#include "watchdog.h"

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
	return controllers_are_growing(g->controllers);
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
 * Queues of a partitioned stage are made with their workers (group.c). */
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

static void stage_free(struct stage *s)
{
	for (unsigned i = 0; s->queue && i < s->queue_count; i++)
		stage_queue_fini(&s->queue[i]);
	free(s->queue);
	free(s->gate);
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
	if (!err)
		err = replicas_new(&g->replicas, g->replica_count);
	if (!err)
		err = controllers_new(&g->controllers);
	for (unsigned i = 1; i < GROUP_COUNT && !err; i++)
		err = group_init(&g->group[i], g, (enum group_id)i);
	for (unsigned i = 0; i < graph_row_count && !err; i++)
		err = stage_new(g, i, conf, inbox_capacity);
	if (!err)
		err = switch_new_schedule(g, conf, &schedule);
	if (!err)
		g->io_count = schedule->listener_count;
	atomic_init(&g->schedule, schedule);
	return err;
}

int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity)
{
	struct graph *g = aligned_alloc(CACHE_LINE, round_up(sizeof *g, CACHE_LINE));

	if (!g)
		return -ENOMEM;
	memset(g, 0, sizeof *g);
	int err = urgent_init(&g->urgent);

	if (err) {
		free(g);
		return err;
	}
	g->app = app;
	g->queue_capacity = queue_capacity;
	g->replica_count =
		conf->layout.mode == CONF_LAYOUT_REPLICATE ? (unsigned)conf->layout.replicas : 1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	err = build(g, conf, inbox_capacity);
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
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_free(&g->stage[i]);
	switch_free_schedules(g);
	trace_free(g->tracer);
	controllers_free(g->controllers);
	replicas_free(g->replicas);
	topology_free(g->topology);
	urgent_fini(&g->urgent);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* ---- startup, watch and stop ---- */

int graph_start(struct graph *g)
{
	int err = switch_start_workers(g, atomic_load_explicit(&g->schedule, memory_order_relaxed));

	if (err)
		graph_stop(g);
	else
		switch_start_controllers(g);
	return err;
}

bool graph_is_alive(struct graph *g, uint64_t now_ns, uint64_t limit_ns)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		struct group *grp = &g->group[i];
		unsigned count = group_worker_count(grp);

		for (unsigned k = 0; k < count; k++) {
			if (!watchdog_is_stuck(&grp->workers[k], now_ns, limit_ns))
				continue;
			log_error("worker %s/%u: stuck in one piece of work for %.1f s", grp->name,
			          k, (double)(now_ns - grp->workers[k].seen_ns) / (double)NS_PER_S);
			return false;
		}
	}
	return true;
}

void graph_stop(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		group_stop(&g->group[i]);
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		idle_wake_all(&g->group[i]);
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		group_join(&g->group[i]);
}

/*
 * graph.c - builds stages, queues, groups and workers from the declared table and the configuration, and starts and stops
 * the workers. Knows no stage by name.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "conf.h"
#include "group/group.h"
#include "group/idle.h"
#include "layout/topology.h"
#include "log.h"
#include "mem/pool.h"
#include "telemetry/stats_json.h"
#include "text.h"

/* Worker threads run libjpeg and our kernels, nested through every pass-through stage: 2 MiB is ample. */
#define WORKER_STACK_BYTES (2u << 20)

struct graph {
	const struct conf *conf;
	void *app;
	size_t queue_capacity;
	struct topology *topology;
	const struct policy_class *policy;
	struct stage stage[STAGE_COUNT_MAX];
	struct group group[GRAPH_GROUP_COUNT];
	/* start-up: workers report when they are initialised */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned reported;
	int start_error; /* the first worker_init that failed */
	bool may_run;
};

int graph_stage_index(const char *name)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (strcmp(graph_rows[i].class->name, name) == 0)
			return (int)i;
	return -1;
}

struct stage *graph_stage(struct graph *g, unsigned index)
{
	assert(index < graph_row_count);
	return &g->stage[index];
}

void *graph_app(const struct graph *g)
{
	return g->app;
}

unsigned graph_stage_instance_count(const struct graph *g, unsigned index)
{
	return g->stage[index].group->worker_count;
}

/* ---- making --------------------------------------------------------------------------------------- */

/* Which group's workers serve the stage: with an inline policy the ports' threads serve all. */
static struct group *group_of_row(struct graph *g, const struct graph_row *row)
{
	return &g->group[g->policy->is_inline ? GRAPH_GROUP_PORT : row->group];
}

static void stage_setup(struct graph *g, unsigned index)
{
	const struct graph_row *row = &graph_rows[index];
	const struct conf_stage *conf = &g->conf->stage[index];
	struct stage *s = &g->stage[index];
	bool is_inline = g->policy->is_inline && !row->class->poll;

	s->class = row->class;
	s->graph = g;
	s->index = index;
	s->kind = conf->kind ? (enum stage_kind)conf->kind : row->class->kind;
	s->is_pass_through = is_inline || (conf->pass_through == CONF_DEFAULT ? row->class->pass_through
	                                                                      : conf->pass_through == CONF_YES);
	s->group = group_of_row(g, row);
	for (unsigned i = 0; i < COUNT_OF(row->targets) && row->targets[i]; i++) {
		int to = graph_stage_index(row->targets[i]);

		assert(to >= 0);
		s->targets |= UINT32_C(1) << to;
	}
}

static unsigned thread_count(const struct graph *g, enum graph_group id)
{
	unsigned cores = topology_cpu_quota(g->topology);
	uint64_t asked = CONF_AUTO;
	unsigned n = cores;

	/* The first stage of a group with threads of its own carries their number. */
	for (unsigned i = 0; i < graph_row_count && id != GRAPH_GROUP_MAIN && asked == CONF_AUTO; i++)
		if (graph_rows[i].group == id)
			asked = g->conf->stage[i].threads;
	if (id == GRAPH_GROUP_MAIN || (g->policy->is_inline && g->conf->scheduler.threads != CONF_AUTO))
		asked = g->conf->scheduler.threads;
	/* Reading, parsing and small answers take a few per cent of the image work: one port for four cores is ample. */
	if (id == GRAPH_GROUP_PORT && !g->policy->is_inline)
		n = (cores + 3) / 4;
	else if (id == GRAPH_GROUP_DISK)
		n = cores / 4 > 2 ? cores / 4 : 2;
	if (asked != CONF_AUTO)
		n = (unsigned)asked;
	return n > CONF_THREADS_MAX ? CONF_THREADS_MAX : n;
}

static int worker_setup(struct group *grp, unsigned index, bool is_bound)
{
	struct worker *w = &grp->workers[index];

	memset(w, 0, sizeof *w);
	w->group = grp;
	w->index = index;
	w->core = is_bound ? (int)(index % topology_core_count(grp->graph->topology)) : -1;
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd < 0) {
		int err = -errno;

		log_error("eventfd: %s", strerror(errno));
		return err;
	}
	grp->worker_count = index + 1;
	return 0;
}

static int group_setup(struct graph *g, enum graph_group id)
{
	static const char *const name[GRAPH_GROUP_COUNT] = { [GRAPH_GROUP_PORT] = "port", [GRAPH_GROUP_MAIN] = "main",
		                                             [GRAPH_GROUP_DISK] = "disk" };
	struct group *grp = &g->group[id];

	grp->name = name[id];
	grp->graph = g;
	/* Ports and disk threads have one stage or few: they walk them in the wavefront's order. */
	grp->policy = id == GRAPH_GROUP_MAIN ? g->policy : &policy_cohort;
	grp->spin_ns = id == GRAPH_GROUP_MAIN ? g->conf->scheduler.spin_us * 1000 : 0;
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->stage[i];

		if (s->group != grp || (s->is_pass_through && !s->class->returns_later))
			continue;
		grp->visit_set[grp->visit_set_count++] = s;
		if (s->class->poll)
			grp->source = s;
	}
	if (grp->visit_set_count == 0)
		return 0;
	unsigned count = thread_count(g, id);

	grp->workers = aligned_alloc(CACHE_LINE, count * sizeof *grp->workers);
	if (!grp->workers)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		int err = worker_setup(grp, i, id == GRAPH_GROUP_MAIN);

		if (err)
			return err;
	}
	return 0;
}

static int stage_queues(struct graph *g, struct stage *s)
{
	if (s->is_pass_through && !s->class->returns_later)
		return 0;
	s->queue_count = s->kind == STAGE_PARTITIONED ? s->group->worker_count : 1;
	s->queue = aligned_alloc(CACHE_LINE, s->queue_count * sizeof *s->queue);
	if (!s->queue)
		return -ENOMEM;
	memset(s->queue, 0, s->queue_count * sizeof *s->queue);
	for (unsigned i = 0; i < s->queue_count; i++) {
		int err = queue_init(&s->queue[i], g->queue_capacity);

		if (err)
			return err;
	}
	return 0;
}

int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity)
{
	struct graph *g = aligned_alloc(CACHE_LINE, (sizeof *g + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	int err;

	if (!g)
		return -ENOMEM;
	memset(g, 0, sizeof *g);
	g->conf = conf;
	g->app = app;
	g->queue_capacity = queue_capacity;
	g->policy = policy_find(conf->scheduler.policy);
	assert(g->policy); /* validated with the configuration */
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	err = topology_new(&g->topology);
	for (unsigned i = 0; i < graph_row_count && !err; i++)
		stage_setup(g, i);
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT && !err; i++)
		err = group_setup(g, (enum graph_group)i);
	for (unsigned i = 0; i < graph_row_count && !err; i++)
		err = stage_queues(g, &g->stage[i]);
	if (err) {
		graph_free(g);
		return err;
	}
	*out = g;
	return 0;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < graph_row_count; i++) {
		for (unsigned k = 0; g->stage[i].queue && k < g->stage[i].queue_count; k++)
			queue_fini(&g->stage[i].queue[k]);
		free(g->stage[i].queue);
	}
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++) {
		for (unsigned k = 0; k < g->group[i].worker_count; k++)
			close(g->group[i].workers[k].wake_fd);
		free(g->group[i].workers);
	}
	topology_free(g->topology);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* ---- a worker's thread ---------------------------------------------------------------------------- */

/* The stages whose handlers this group's workers may run: its visit set, and what that reaches by direct calls. */
static uint32_t reachable(const struct graph *g, const struct group *grp)
{
	uint32_t set = 0, before;

	for (unsigned i = 0; i < grp->visit_set_count; i++)
		set |= UINT32_C(1) << grp->visit_set[i]->index;
	do {
		before = set;
		for (unsigned i = 0; i < graph_row_count; i++)
			for (unsigned k = 0; k < graph_row_count; k++)
				if (set >> i & 1 && g->stage[i].targets >> k & 1 && g->stage[k].is_pass_through)
					set |= UINT32_C(1) << k;
	} while (set != before);
	return set;
}

static int worker_init_stages(struct worker *w)
{
	struct graph *g = w->group->graph;
	uint32_t set = reachable(g, w->group);
	int err = 0;

	for (unsigned i = 0; i < graph_row_count && !err; i++) {
		struct visit v = { .worker = w, .stage = &g->stage[i] };
		const struct stage_class *class = g->stage[i].class;
		size_t size = (class->scratch_size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

		if (!(set >> i & 1))
			continue;
		if (size) {
			w->scratch[i] = aligned_alloc(CACHE_LINE, size);
			if (!w->scratch[i])
				return -ENOMEM;
			memset(w->scratch[i], 0, size);
		}
		if (class->worker_init)
			err = class->worker_init(&v, w->scratch[i]);
		if (err)
			log_error("stage %s cannot start on worker %s/%u: %s", class->name, w->group->name, w->index,
			          strerror(-err));
		else
			w->initialised |= 1u << i;
	}
	return err;
}

static void worker_fini_stages(struct worker *w)
{
	struct graph *g = w->group->graph;

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct visit v = { .worker = w, .stage = &g->stage[i] };

		if (w->initialised >> i & 1 && v.stage->class->worker_fini)
			v.stage->class->worker_fini(&v, w->scratch[i]);
		free(w->scratch[i]);
		w->scratch[i] = NULL;
	}
}

/* Tells graph_start() how the initialisation went; waits until all workers have; true if all went well. */
static bool report_and_wait(struct graph *g, int err)
{
	bool ok;

	pthread_mutex_lock(&g->lock);
	g->reported++;
	if (err && !g->start_error)
		g->start_error = err;
	pthread_cond_broadcast(&g->changed);
	while (!g->may_run && !g->start_error)
		pthread_cond_wait(&g->changed, &g->lock);
	ok = !g->start_error;
	pthread_mutex_unlock(&g->lock);
	return ok;
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct graph *g = w->group->graph;
	char name[16];

	snprintf(name, sizeof name, "%s/%u", w->group->name, w->index);
	pthread_setname_np(pthread_self(), name);
	if (w->core >= 0) {
		int err = topology_bind(g->topology, (unsigned)w->core);

		if (err)
			log_warning("worker %s cannot be bound to core %d (%s): it runs on any", name, w->core, strerror(-err));
	}
	if (report_and_wait(g, worker_init_stages(w)))
		worker_run(w);
	worker_fini_stages(w);
	pool_thread_fini();
	return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------------ */

static int create_threads(struct graph *g, unsigned *created)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, WORKER_STACK_BYTES);
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT && !err; i++)
		for (unsigned k = 0; k < g->group[i].worker_count && !err; k++) {
			struct worker *w = &g->group[i].workers[k];

			err = -pthread_create(&w->thread, &attr, worker_thread, w);
			if (err)
				log_error("cannot start worker %s/%u: %s", w->group->name, k, strerror(-err));
			else
				(*created)++;
		}
	pthread_attr_destroy(&attr);
	return err;
}

static void join_threads(struct graph *g, unsigned created)
{
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++)
		for (unsigned k = 0; k < g->group[i].worker_count && created; k++, created--)
			pthread_join(g->group[i].workers[k].thread, NULL);
}

int graph_start(struct graph *g)
{
	unsigned created = 0;
	int err = create_threads(g, &created);

	pthread_mutex_lock(&g->lock);
	if (err && !g->start_error)
		g->start_error = err;
	pthread_cond_broadcast(&g->changed);
	while (g->reported < created && !g->start_error)
		pthread_cond_wait(&g->changed, &g->lock);
	err = g->start_error;
	g->may_run = !err;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	if (err)
		join_threads(g, created);
	return err;
}

void graph_stop(struct graph *g)
{
	unsigned count = 0;

	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++) {
		atomic_store_explicit(&g->group[i].is_stopping, true, memory_order_relaxed);
		idle_wake_all(&g->group[i]);
		count += g->group[i].worker_count;
	}
	join_threads(g, count);
}

/* ---- statistics ----------------------------------------------------------------------------------- */

void graph_stats_json(struct graph *g, struct json *j)
{
	json_object(j, "scheduler");
	json_string(j, "policy", g->policy->name);
	json_array(j, "groups");
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++)
		if (g->group[i].worker_count)
			stats_group_json(j, &g->group[i]);
	json_array_end(j);
	json_object_end(j);
	json_array(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		stats_stage_json(j, &g->stage[i], g->group, GRAPH_GROUP_COUNT);
	json_array_end(j);
}

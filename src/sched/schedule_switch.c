/*
 * schedule_switch.c - the life of schedules: made, published, adopted and retired.
 *
 * At most two schedules are in use, the published one and the one before. Main thread.
 */
#include "schedule_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "base/clock.h"
#include "base/text.h"
#include "controllers.h"
#include "group.h"
#include "idle.h"
#include "layout_report.h"
#include "log/log.h"
#include "mechanism.h"
#include "repartition.h"
#include "runtime.h"
#include "schedule_build.h"
#include "stage_costs.h"

#define ADOPTION_POLL_NS 200000 /* between checks for adoption, while the caller waits */
#define ADOPTION_TICK_MS 10     /* the same, while no caller waits */

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

	if (conf->scheduler.counters != CONF_YES)
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
		if (repartition_knows_enough(measured))
			return measured;
	}
	return g->has_profile ? &g->weights : NULL;
}

static int complete(struct graph *g, const struct conf *conf, struct schedule *schedule)
{
	struct partition_weights measured;
	char data[256];
	struct text error;

	text_init(&error, data, sizeof data);
	int err = schedule_build(schedule, conf, topology_cpu_quota(g->topology),
	                         weights_for(g, conf, &measured), &error);

	if (err) /* a reload combines live keys of one valid configuration with the rest of another
	          */
		log_error("%s", data);
	/* Listeners exist for the I/O threads of the first schedule. */
	if (!err && g->io_count && !schedule_is_thread_per_connection(schedule))
		schedule->io_count = g->io_count;
	if (!err)
		err = affinity_place(g->topology, schedule);
	if (!err)
		err = prepare_queues(g, schedule);
	if (!err)
		set_perf(g, conf, &schedule->perf);
	schedule->number = next_number(g);
	return err;
}

int switch_new_schedule(struct graph *g, const struct conf *conf, struct schedule **out)
{
	struct schedule *schedule = malloc(sizeof *schedule);

	if (!schedule)
		return -ENOMEM;
	int err = complete(g, conf, schedule);

	if (err)
		free(schedule);
	else
		*out = schedule;
	return err;
}

int switch_start_workers(struct graph *g, const struct schedule *schedule)
{
	const unsigned count[GROUP_COUNT] = { [GROUP_IO] = schedule->io_count,
		                              [GROUP_MAIN] = schedule->worker_count,
		                              [GROUP_DISK] = schedule->disk_count };
	int err = 0;

	for (unsigned i = 1; i < GROUP_COUNT && !err; i++)
		err = group_start_workers(&g->group[i], count[i]);
	return err;
}

/* ---- publishing and adoption ---- */

static void wake_all(struct graph *g)
{
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		idle_wake_all(&g->group[i]);
}

/* Publishes the schedule. There must be no retired one, so that threads use at most two. Waking
 * all workers is also the fence that schedule_read_lock() pairs with. */
static void publish(struct graph *g, const struct schedule *schedule)
{
	assert(!g->retired);
	g->retired = current_of(g);
	atomic_store_explicit(&g->schedule, schedule, memory_order_release);
	wake_all(g);
}

/* Returns whether all workers have adopted the schedule and no other thread reads the previous
 * one. A worker in a long piece of work adopts after it. */
static bool is_adopted(const struct graph *g)
{
	const struct schedule *schedule = current_of(g);

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			if (atomic_load_explicit(&g->group[i].workers[k].schedule,
			                         memory_order_acquire) != schedule)
				return false;
	}
	/* Acquire: pairs with schedule_read_unlock(). */
	return atomic_load_explicit(&g->readers, memory_order_acquire) == 0;
}

/* Ends the use of the previous schedule, which all workers have replaced. A push under the
 * previous schedule may have woken a worker that does not visit the stage any more, so all
 * workers check once more. */
static void retire(struct graph *g)
{
	const struct schedule *schedule = current_of(g);
	struct group *main_group = &g->group[GROUP_MAIN];

	for (unsigned i = 0; i < g->retired->group_count; i++)
		if (g->retired->group[i].mechanism->stop)
			g->retired->group[i].mechanism->stop(main_group);
	for (unsigned i = 0; i < schedule->group_count; i++)
		if (schedule->group[i].mechanism->start)
			schedule->group[i].mechanism->start(main_group, schedule, i);
	wake_all(g);
	free_schedule(g->retired);
	g->retired = NULL;
}

static void await_adoption(struct graph *g)
{
	const struct timespec pause = { .tv_nsec = ADOPTION_POLL_NS };

	while (!is_adopted(g))
		nanosleep(&pause, NULL);
	retire(g);
}

void switch_free_schedules(struct graph *g)
{
	free_schedule(current_of(g));
	free_schedule(g->retired);
}

/* ---- switches by configuration ---- */

void switch_start_controllers(struct graph *g)
{
	controllers_start(g->controllers, g, current_of(g));
	layout_report_log(current_of(g));
}

int graph_switch(struct graph *g, const struct conf *conf)
{
	struct schedule *schedule;
	int err = switch_new_schedule(g, conf, &schedule);

	if (err)
		return err;
	err = switch_start_workers(g, schedule);
	if (err) {
		free(schedule);
		return err;
	}
	if (g->retired) /* by a controller, just before */
		await_adoption(g);
	publish(g, schedule);
	await_adoption(g);
	switch_start_controllers(g);
	return 0;
}

/* ---- switches by controllers ---- */

static int publish_changed(struct graph *g, struct schedule *schedule)
{
	const struct schedule *old = current_of(g);
	bool has_new_parts = memcmp(old->partition.part, schedule->partition.part,
	                            sizeof old->partition.part) != 0;
	int err = affinity_place(g->topology, schedule);

	if (!err)
		err = switch_start_workers(g, schedule);
	if (err)
		return err;
	schedule->number = next_number(g);
	publish(g, schedule);
	if (has_new_parts)
		layout_report_log(schedule);
	return 0;
}

static int step_controllers(struct graph *g)
{
	struct schedule *schedule = malloc(sizeof *schedule);

	if (!schedule)
		return -ENOMEM;
	bool has_changed = controllers_step(g->controllers, g, current_of(g), schedule);
	int err = has_changed ? publish_changed(g, schedule) : 0;

	if (!has_changed || err)
		free(schedule);
	return err;
}

int graph_tick(struct graph *g)
{
	uint64_t due_ns = controllers_due_ns(g->controllers), now_ns = clock_ns();

	if (due_ns == UINT64_MAX)
		return -1;
	if (g->retired) {
		if (!is_adopted(g))
			return ADOPTION_TICK_MS;
		retire(g);
	}
	if (now_ns < due_ns)
		return (int)((due_ns - now_ns) / NS_PER_MS) + 1;
	const struct schedule *before = current_of(g); /* kept until it is retired */
	int err = step_controllers(g);

	controllers_finish(g->controllers, before, err);
	return ADOPTION_TICK_MS;
}

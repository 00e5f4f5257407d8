/*
 * group.c - the startup and the end of a group's threads.
 *
 * Does not know what the threads do. Main thread.
 */
#include "group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/time_slice.h"
#include "log/log.h"
#include "mechanism_color.h"
#include "runtime.h"
#include "trace.h"
#include "worker.h"
#include "worker_loop.h"

/* Worker threads run libjpeg and the kernels, nested in all pass-through stages: 2 MiB is ample. */
#define WORKER_STACK_BYTES (2u << 20)

int group_init(struct group *grp, struct graph *g, enum group_id id)
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

void group_fini(struct group *grp)
{
	unsigned count = group_worker_count(grp);

	for (unsigned i = 0; i < count; i++)
		close(grp->workers[i].wake_fd);
	color_fini(grp);
	free(grp->workers);
}

/* ---- the thread ---- */

/* Reports the result of the first adoption to the starting thread. */
static void report(struct worker *w, int err)
{
	struct graph *g = w->group->graph;

	pthread_mutex_lock(&g->lock);
	w->has_reported = true;
	w->start_error = err;
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* I/O and disk threads work for microseconds at a time. Without a short slice, each step of a small
 * upload waits for milliseconds behind the image work on all cores. */
static void shorten_slice(const struct worker *w)
{
	int err = time_slice_set(TIME_SLICE_MIN_NS);

	if (err)
		log_debug("worker %s/%u: cannot shorten its time slice: %s; it keeps the usual one",
		          w->group->name, w->index, strerror(-err));
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct graph *g = w->group->graph;
	char name[16];

	snprintf(name, sizeof name, "%s/%u", w->group->name, w->index);
	pthread_setname_np(pthread_self(), name);
	if (w->group->id != GROUP_MAIN)
		shorten_slice(w);
	int err = worker_adopt(w, atomic_load_explicit(&g->schedule, memory_order_acquire));

	report(w, err);
	if (!err)
		worker_run(w);
	worker_fini(w);
	return NULL;
}

/* ---- startup ---- */

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, WORKER_STACK_BYTES);
	err = pthread_create(&w->thread, &attr, worker_thread, w);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Returns the result of the thread's first adoption. If that failed, the thread is joined. */
static int await_report(struct worker *w)
{
	struct graph *g = w->group->graph;

	pthread_mutex_lock(&g->lock);
	while (!w->has_reported)
		pthread_cond_wait(&g->changed, &g->lock);
	int err = w->start_error;

	pthread_mutex_unlock(&g->lock);
	if (err)
		pthread_join(w->thread, NULL);
	return err;
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
		err = start_thread(w);
	if (!err)
		err = await_report(w);
	if (err) {
		log_error("worker %s/%u: cannot start: %s", grp->name, index, strerror(-err));
		if (w->wake_fd >= 0)
			close(w->wake_fd);
		return err;
	}
	/* Release: a thread that sees the count sees the worker. */
	atomic_store_explicit(&grp->worker_count, index + 1, memory_order_release);
	return 0;
}

int group_start_workers(struct group *grp, unsigned count)
{
	int err = 0;

	while (!err && group_worker_count(grp) < count)
		err = start_worker(grp, group_worker_count(grp));
	return err;
}

/* ---- end ---- */

void group_stop(struct group *grp)
{
	atomic_store_explicit(&grp->is_stopping, true, memory_order_relaxed);
}

void group_join(struct group *grp)
{
	unsigned count = group_worker_count(grp);

	for (unsigned i = 0; i < count; i++)
		pthread_join(grp->workers[i].thread, NULL);
}

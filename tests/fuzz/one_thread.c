/* one_thread.c - builds the daemon's graph without threads, and serves it. */
#include "app.c" /* NOLINT(bugprone-suspicious-include): for struct app */

#include "one_thread.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/conn_steps.h"
#include "sched/core/runtime.h"
#include "sched/core/worker.h"
#include "stage_ids.h"
#include "support/fake_clock.h"

static char root[] = "/tmp/darkroom-fuzz-XXXXXX";
static char access_log[64];
static uint64_t stored; /* images that one_thread_check_idle() has seen */

/* ---- start ---- */

static void start_worker(struct group *g)
{
	struct worker *w = &g->workers[0];
	struct schedule *schedule = (struct schedule *)(uintptr_t)atomic_load(&g->graph->schedule);

	memset(w, 0, sizeof *w);
	w->group = g;
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(w->wake_fd >= 0);
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->graph->stage[i];

		if (s->group == g && s->kind == STAGE_PARTITIONED)
			assert(stage_queue_init(&s->queue[0], s->queue[0].capacity) == 0);
	}
	schedule->is_bound = false;
	assert(worker_prepare(w, schedule) == 0);
	worker_adopt(w, schedule);
	atomic_store(&g->worker_count, 1);
}

static int remove_path(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_path, 16, FTW_DEPTH | FTW_PHYS);
}

void one_thread_start(const char *const *settings, size_t count)
{
	static struct conf conf;
	char where[64];
	const char *all[32] = { where,
		                "server.listen=127.0.0.1:0",
		                "server.admin_listen=no",
		                "scheduler.threads=1",
		                "stage.accept_read.threads=1",
		                "stage.disk_write.threads=1" };
	struct text errors;

	assert(mkdtemp(root));
	atexit(remove_root);
	snprintf(where, sizeof where, "server.root=%s", root);
	snprintf(access_log, sizeof access_log, "%s/access.log", root);
	assert(count <= COUNT_OF(all) - 6);
	memcpy(all + 6, settings, count * sizeof *settings);
	text_init_growable(&errors, 1 << 16);
	int err = conf_load(&conf, NULL, NULL, all, 6 + count, &errors);

	if (err)
		fprintf(stderr, "%s", errors.data);
	assert(!err);
	text_fini(&errors);
	log_set_level(LOG_LEVEL_ERROR);
	log_set_access(LOG_ACCESS_TEXT);
	assert(log_access_open(access_log, "") == 0);
	fake_clock_stop();
	err = program_init(&conf);
	assert(!err);
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		start_worker(&own.graph->group[i]);
	atomic_store(&own.http.is_ready, true);
}

/* ---- serving ---- */

static struct io_loop *io(void)
{
	return own.graph->group[GROUP_IO].workers[0].scratch[STAGE_ACCEPT_READ];
}

int one_thread_connect(void)
{
	static const struct client_key key;
	const int room = 4096; /* so that answers do not fit */
	int fd[2];

	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0);
	assert(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
	assert(conn_new(io(), fd[0], &key, CONN_COUNTED));
	io()->count[CONN_COUNTED]++;
	atomic_fetch_add(&own.http.connections, 1);
	return fd[1];
}

static bool serve_group(struct worker *w)
{
	bool has_served = false;

	for (unsigned i = 0; i < w->visit_set_count; i++)
		has_served |= serve_stage(w, w->visit_set[i]);
	if (w->group->source)
		has_served |= serve_source(w, false) > 0;
	return has_served;
}

void one_thread_run(void)
{
	for (bool has_served = true; has_served;) {
		has_served = false;
		for (unsigned i = 1; i < GROUP_COUNT; i++)
			has_served |= serve_group(&own.graph->group[i].workers[0]);
	}
}

bool one_thread_pass_time(void)
{
	struct conn *c = LIST_FIRST(&io()->conns);

	if (!c)
		return false;
	uint64_t now = clock_ns();

	assert(c->place == CONN_IN_LOOP || c->place == CONN_WAITING);
	assert(c->timeout.deadline_ns != UINT64_MAX); /* every wait ends */
	if (c->timeout.deadline_ns > now)
		fake_clock_advance(c->timeout.deadline_ns - now);
	struct worker *w = &own.graph->group[GROUP_IO].workers[0];
	struct visit v = { .worker = w, .stage = w->group->source };

	io()->visit = &v;
	c->timeout.timer.ready(c->timeout.timer.arg);
	io()->visit = NULL;
	one_thread_run();
	return true;
}

/* ---- the end of an input ---- */

/* Removes the directories of stored images. */
static int remove_image(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type;
	if (where->level >= 2 && !strstr(path, "/."))
		remove(path);
	return 0;
}

void one_thread_check_idle(void)
{
	struct budget_usage usage;

	assert(LIST_EMPTY(&io()->conns) && io()->count[CONN_COUNTED] == 0);
	assert(atomic_load(&own.http.connections) == 0);
	assert(admission_in_flight(&own.images.admission) == 0);
	budget_usage(&own.images.budget, &usage);
	assert(usage.used[BUDGET_BODY] == 0 && usage.used[BUDGET_IMAGE] == 0);
	assert(truncate(access_log, 0) == 0);
	if (atomic_load(&own.counters.images_stored) == stored)
		return;
	stored = atomic_load(&own.counters.images_stored);
	nftw(root, remove_image, 16, FTW_DEPTH | FTW_PHYS);
}

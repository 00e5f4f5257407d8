/* cluster.c - timers, tasks, and what a process gets of the system. */
#define XXH_STATIC_LINKING_ONLY /* the size of a state */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/round.h"
#include "seam.h"
#include "seeds.h"

#define BEGIN_NS (UINT64_C(1790000000) * NS_PER_S)
#define STACK_BYTES ((size_t)256 << 10)
#define FILES_MAX 64

struct cluster cluster;

static struct {
	struct coroutine main;
	struct task *task; /* that runs */
	struct {
		int fd; /* 0: free */
		struct node *node;
	} file[FILES_MAX];
} own;

/* ---- timers ---- */

void timer_set(struct timer *t, struct node *node, uint64_t after_ns, void (*run)(struct timer *t))
{
	struct timer **at = &cluster.timers;

	assert(!t->is_set);
	*t = (struct timer){
		.at_ns = cluster.now_ns + after_ns, .node = node, .run = run, .is_set = true
	};
	while (*at && (*at)->at_ns <= t->at_ns)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
}

void timer_clear(struct timer *t)
{
	struct timer **at = &cluster.timers;

	if (!t->is_set)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->is_set = false;
}

void cluster_run(void)
{
	struct timer *t;

	while ((t = cluster.timers)) {
		struct node *n = t->node;

		timer_clear(t);
		cluster.now_ns = t->at_ns;
		if (n && n->still_until_ns > t->at_ns) {
			timer_set(t, n, n->still_until_ns - t->at_ns, t->run);
			continue;
		}
		cluster.current = n;
		t->run(t);
		cluster.current = NULL;
	}
}

/* ---- tasks ---- */

static void run_task(void *arg)
{
	struct task *t = arg;

	t->run(t);
	own.task = NULL;
	coroutine_switch(&t->coroutine, &own.main, true);
}

static void resume(struct timer *timer)
{
	struct task *t = CONTAINER_OF(timer, struct task, timer);

	own.task = t;
	coroutine_switch(&own.main, &t->coroutine, false);
	own.task = NULL;
}

void task_start(struct node *n, unsigned i, void (*run)(struct task *t))
{
	struct task *t = &n->task[i];

	if (t->has_stack)
		coroutine_fini(&t->coroutine);
	*t = (struct task){ .node = n, .run = run, .has_stack = true };
	if (coroutine_init(&t->coroutine, STACK_BYTES, run_task, t))
		abort();
	task_go(t);
}

struct task *task_self(void)
{
	return own.task;
}

void task_go(struct task *t)
{
	timer_set(&t->timer, t->node, 0, resume);
}

void task_stop(void)
{
	coroutine_switch(&own.task->coroutine, &own.main, false);
}

void task_sleep(uint64_t ns)
{
	timer_set(&own.task->timer, own.task->node, ns, resume);
	task_stop();
}

void task_move(struct node *n)
{
	own.task->node = cluster.current = n;
}

/* ---- memory ---- */

struct memory {
	struct memory *next, **at;
};

static void *get(size_t size)
{
	struct memory **list = cluster.current ? &cluster.current->memory : &cluster.memory;
	struct memory *m =
		aligned_alloc(CACHE_LINE, CACHE_LINE + round_up(size + POOL_SLACK, CACHE_LINE));

	if (!m)
		abort();
	*m = (struct memory){ .next = *list, .at = list };
	if (m->next)
		m->next->at = &m->next;
	*list = m;
	return memset((char *)m + CACHE_LINE, 0xa5, size < 4096 ? size : 4096);
}

static void put(void *data)
{
	if (!data)
		return;
	struct memory *m = (void *)((char *)data - CACHE_LINE);

	*m->at = m->next;
	if (m->next)
		m->next->at = m->at;
	free(m);
}

SEAM(void *, pool_get, size_t size)
{
	CALLED(pool_get);
	return get(size);
}

SEAM(void *, pool_get_sized, size_t size, size_t *got)
{
	CALLED(pool_get_sized);
	*got = size;
	return get(size);
}

SEAM(void, pool_put, void *data)
{
	CALLED(pool_put);
	put(data);
}

SEAM(XXH3_state_t *, XXH3_createState, void)
{
	CALLED(XXH3_createState);
	XXH3_state_t *state = get(sizeof *state);

	XXH3_INITSTATE(state);
	return state;
}

SEAM(XXH_errorcode, XXH3_freeState, XXH3_state_t *state)
{
	CALLED(XXH3_freeState);
	put(state);
	return XXH_OK;
}

/* ---- files in memory ---- */

/* Returns the place of a file; 0: a free one. */
static unsigned place_of(int fd)
{
	unsigned i = 0;

	while (i < FILES_MAX && own.file[i].fd != fd)
		i++;
	assert(fd || i < FILES_MAX);
	return i;
}

SEAM(int, memfd_create, const char *name, unsigned flags)
{
	CALLED(memfd_create);
	unsigned i = place_of(0);

	own.file[i].fd = __real_memfd_create(name, flags);
	own.file[i].node = cluster.current;
	return own.file[i].fd;
}

SEAM(int, close, int fd)
{
	CALLED(close);
	unsigned i = place_of(fd);

	if (i < FILES_MAX)
		own.file[i].fd = 0;
	return __real_close(fd);
}

/* ---- nodes ---- */

uint64_t cluster_clock(clockid_t id)
{
	int64_t ahead = cluster.current && id == CLOCK_REALTIME ? cluster.current->ahead_ns : 0;

	return cluster.now_ns + (uint64_t)ahead;
}

struct random *cluster_chance(void)
{
	return &cluster.chance;
}

void node_end(struct node *n)
{
	for (unsigned i = 0; i < TASKS_MAX; i++) {
		timer_clear(&n->task[i].timer);
		if (n->task[i].has_stack)
			coroutine_fini(&n->task[i].coroutine);
		n->task[i].has_stack = false;
	}
	for (struct memory *m = n->memory, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	n->memory = NULL;
	for (unsigned i = 0; i < FILES_MAX; i++)
		if (own.file[i].fd && own.file[i].node == n)
			close(own.file[i].fd);
}

unsigned node_uses(const struct node *n)
{
	unsigned uses = 0;

	for (const struct memory *m = n->memory; m; m = m->next)
		uses++;
	for (unsigned i = 0; i < FILES_MAX; i++)
		uses += own.file[i].fd && own.file[i].node == n;
	return uses;
}

void cluster_begin(uint64_t seed)
{
	cluster.now_ns = BEGIN_NS + seed % NS_PER_S;
	cluster.chance = random_stream(seed, 0);
	coroutine_init_self(&own.main);
}

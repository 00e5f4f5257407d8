/*
 * store_remake.c - darkroomd store remake: adds images to the daemon's queue, some at a time, and
 * waits until they have left it.
 *
 * There is no other state: an image that is remade lacks nothing. So the command continues when it
 * is run again. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "remake_plan.h"
#include "remake_queue.h"
#include "store_commands.h"
#include "store_progress.h"
#include "store_query.h"

#define AT_ONCE 64 /* in the queue: more than the daemon works on */
#define LOOK_NS (10 * NS_PER_MS)
#define CALL_NS NS_PER_S

struct remaking {
	struct remake_plan plan;
	char waiting[AT_ONCE][ULID_LENGTH + 1];
	unsigned waiting_count;
	uint64_t made, gone, failed, called_ns;
	struct store_progress progress;
};

/* ---- the queue ---- */

/* Wakes the daemon. Returns 0 or the exit status. */
static int call(struct remaking *r, struct store_query *q)
{
	char data[1024];
	struct text answer;

	r->called_ns = clock_ns();
	text_init(&answer, data, sizeof data);
	if (q->ask(q->conf, "remake", &answer) == 0)
		return 0;
	fputs("darkroomd store: the daemon does not answer: start it; remake continues when it is "
	      "run again\n",
	      stderr);
	return EXIT_FAILURE;
}

/* The image has left the queue. */
static void settle(struct remaking *r, struct store_query *q, const char *id)
{
	struct stored_lack lack;

	r->progress.ended++;
	switch (remake_plan_look(&r->plan, q, id, &lack)) {
	case REMAKE_COMPLETE:
		r->made++;
		return;
	case REMAKE_ABSENT:
		r->gone++;
		return;
	default:
		r->failed++;
		fprintf(stderr, "darkroomd store: %s: not remade; the daemon's log has the cause\n",
		        id);
	}
}

static void settle_all(struct remaking *r, struct store_query *q)
{
	unsigned left = 0;

	for (unsigned i = 0; i < r->waiting_count; i++)
		if (remake_queue_has(&q->store, r->waiting[i]))
			memmove(r->waiting[left++], r->waiting[i], sizeof r->waiting[i]);
		else
			settle(r, q, r->waiting[i]);
	r->waiting_count = left;
}

/* Waits until at most max images are in the queue. Returns 0 or the exit status. */
static int await(struct remaking *r, struct store_query *q, unsigned max)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };
	int status = 0;

	for (;;) {
		if (r->waiting_count > max)
			settle_all(r, q);
		store_progress_show(&r->progress, false);
		if (r->waiting_count <= max || status)
			return status;
		if (clock_ns() - r->called_ns >= CALL_NS)
			status = call(r, q);
		nanosleep(&look, NULL);
	}
}

/* ---- images ---- */

static int remake_one(struct store_query *q, const char *id, void *arg)
{
	struct remaking *r = arg;
	struct stored_lack lack;

	if (remake_plan_look(&r->plan, q, id, &lack) != REMAKE_POSSIBLE)
		return 0;
	if (q->is_dry) {
		puts(id);
		return 0;
	}
	int status = await(r, q, AT_ONCE - 1);

	if (status)
		return status;
	int err = remake_queue_put(&q->store, id, &r->plan.entry);

	if (err)
		return store_query_fail(id, err);
	memcpy(r->waiting[r->waiting_count++], id, sizeof r->waiting[0]);
	return 0;
}

int store_remake(struct store_query *q)
{
	static struct remaking r;

	memset(&r, 0, sizeof r);
	if (q->ids_path && strcmp(q->ids_path, "-") == 0)
		return store_query_usage("--ids -: expected a file, which can be read twice");
	int status = remake_plan_open(&r.plan, q);

	if (status)
		return status;
	if (q->is_dry)
		return store_query_each(q, remake_one, &r);
	status = call(&r, q);
	if (!status)
		status = remake_plan_sum(&r.plan, q);
	store_progress_start(&r.progress, r.plan.remade);
	if (!status)
		status = store_query_each(q, remake_one, &r);
	if (!status)
		status = await(&r, q, 0);
	store_progress_show(&r.progress, true);
	fprintf(stderr,
	        "darkroomd store: %" PRIu64 " images remade, %" PRIu64 " not, %" PRIu64
	        " removed meanwhile; %" PRIu64 " have no original\n",
	        r.made, r.failed, r.gone, r.plan.without_original);
	return status                                        ? status
	       : r.failed || r.plan.damaged || r.plan.absent ? EXIT_FAILURE
	                                                     : EXIT_SUCCESS;
}

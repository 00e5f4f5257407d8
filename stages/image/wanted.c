/* wanted.c - drops work whose client has gone, or whose time is over. */
#include "wanted.h"

#include "base/clock.h"
#include "image.h"
#include "image_service.h"
#include "sched/visit.h"
#include "telemetry/counter.h"

/* Returns whether the client waits for the image. An acknowledged image is stored in any case. */
static bool is_awaited(const struct upload *u, bool is_decoded)
{
	return u->waiter && !(is_decoded && u->respond_after_decode);
}

static bool has_gone(const struct upload *u, struct problem *problem)
{
	/* Relaxed: only the flag matters. */
	if (!u->client_gone || !atomic_load_explicit(u->client_gone, memory_order_relaxed))
		return false;
	counter_add_shared(&u->service->client_gone);
	problem_set(problem, 503, "client-gone", "the client has reset the connection");
	return true;
}

static bool is_late(const struct upload *u, uint64_t now_ns, struct problem *problem)
{
	if (u->deadline_ns == 0 || now_ns < u->deadline_ns)
		return false;
	counter_add_shared(&u->service->too_late);
	problem_set(problem, 503, "too-late", "the time of X-Request-Deadline is over");
	return true;
}

static bool has_waited_too_long(const struct upload *u, uint64_t now_ns, struct problem *problem)
{
	uint64_t max_ms = u->epoch->conf.overload.max_queue_time_ms;

	if (max_ms == 0 || now_ns - u->begun_ns < max_ms * NS_PER_MS)
		return false;
	counter_add_shared(&u->service->too_late);
	problem_set(problem, 503, "too-late",
	            "the image has waited longer than overload.max_queue_time");
	return true;
}

bool image_is_wanted(struct visit *v, const struct image *image, struct problem *problem)
{
	const struct upload *u = image->upload;
	uint64_t now_ns = visit_now(v);

	return !is_awaited(u, false) || !(has_gone(u, problem) || is_late(u, now_ns, problem) ||
	                                  has_waited_too_long(u, now_ns, problem));
}

bool files_are_wanted(struct visit *v, const struct image *image, struct problem *problem)
{
	const struct upload *u = image->upload;

	return !is_awaited(u, true) || !(has_gone(u, problem) || is_late(u, visit_now(v), problem));
}

bool step_is_wanted(struct visit *v, struct step *s)
{
	struct problem problem;

	if (files_are_wanted(v, s->image, &problem))
		return true;
	step_failed(v, s, &problem);
	return false;
}

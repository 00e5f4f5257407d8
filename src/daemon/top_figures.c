/* top_figures.c - computes rates, shares and percentiles. Main thread. */
#include "top_figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define IDLE 0.02 /* a thread with less than this share of its time is in no stage */

/* ---- history ---- */

struct top_document *top_history_place(struct top_history *h)
{
	return &h->document[h->next];
}

/* Returns the document that came back steps before the last one, or the oldest. */
static const struct top_document *earlier(const struct top_history *h, unsigned back)
{
	unsigned all = COUNT_OF(h->document);

	if (back >= h->count)
		back = h->count - 1;
	return &h->document[(h->next + all - 1 - back) % all];
}

/* Returns whether both documents have the same stages. */
static bool is_same_daemon(const struct top_document *a, const struct top_document *b)
{
	bool is_same = a->uptime_s <= b->uptime_s && a->stage_count == b->stage_count;

	for (unsigned i = 0; is_same && i < a->stage_count; i++)
		is_same = strcmp(a->stage[i].name, b->stage[i].name) == 0;
	return is_same;
}

void top_history_add(struct top_history *h)
{
	unsigned all = COUNT_OF(h->document);

	h->next = (h->next + 1) % all;
	h->count += h->count < all;
	if (h->count > 1 && !is_same_daemon(earlier(h, 1), earlier(h, 0)))
		h->count = 1;
}

/* ---- figures ---- */

/* What a sum has grown by; sums of threads become less when threads end. */
static double growth(double now, double then)
{
	return now > then ? now - then : 0;
}

static double per_s(uint64_t now, uint64_t then, double s)
{
	return s > 0 ? growth((double)now, (double)then) / s : 0;
}

/* Returns the uploads of a bucket; other documents may have others. */
static uint64_t uploads_below(const struct top_document *d, double ms)
{
	for (unsigned i = 0; i < d->bucket_count; i++)
		if (d->upload_ms[i] >= ms)
			return d->upload_ms[i] > ms ? 0 : d->uploads[i];
	return 0;
}

/* Returns a quantile of the uploads between two documents. */
static double quantile(const struct top_document *now, const struct top_document *then, double q)
{
	uint64_t count[HISTOGRAM_BUCKETS];
	double left = 0;

	for (unsigned i = 0; i < now->bucket_count; i++) {
		uint64_t old = now == then ? 0 : uploads_below(then, now->upload_ms[i]);

		count[i] = now->uploads[i] > old ? now->uploads[i] - old : 0;
		left += (double)count[i] * q;
	}
	if (left <= 0)
		return -1;
	for (unsigned i = 0; i < now->bucket_count; i++) {
		left -= (double)count[i];
		if (left <= 0)
			return now->upload_ms[i] * 0.92; /* the middle of the bucket */
	}
	return -1;
}

/* Returns the thread of the same name, which is mostly at the same place; or NULL. */
static const struct top_thread *same_thread(const struct top_document *d,
                                            const struct top_thread *wanted, unsigned index)
{
	if (index < d->thread_count && strcmp(d->thread[index].name, wanted->name) == 0)
		return &d->thread[index];
	for (unsigned i = 0; i < d->thread_count; i++)
		if (strcmp(d->thread[i].name, wanted->name) == 0)
			return &d->thread[i];
	return NULL;
}

static void thread_figures(struct top_figures *f, const struct top_document *then, double s)
{
	const struct top_document *now = f->now;

	for (unsigned i = 0; i < now->thread_count; i++) {
		const struct top_thread *t = &now->thread[i], *old = same_thread(then, t, i);
		struct top_thread_figures *to = &f->thread[i];
		unsigned most = 0;
		double busy = 0, longest = 0;

		for (unsigned k = 0; k < now->stage_count; k++) {
			double ms = growth(t->busy_ms[k], old ? old->busy_ms[k] : 0);

			busy += ms;
			most = ms > longest ? k : most;
			longest = ms > longest ? ms : longest;
		}
		busy = s > 0 && busy < 1000 * s ? busy / 1000 / s : s > 0;
		*to = (struct top_thread_figures){ t->name, busy, "" };
		if (busy > IDLE) {
			struct top_stage_figures *stage = &f->stage[most];

			to->most = stage->name;
			stage->thread[stage->thread_count++] = t->name;
		}
	}
}

static void stage_figures(struct top_stage_figures *f, const struct top_stage *now,
                          const struct top_stage *then, double s)
{
	double arrived = (double)now->events + (double)now->queued,
	       had = (double)then->events + (double)then->queued,
	       ms = growth(now->served_ms, then->served_ms);
	uint64_t threads = now->threads ? now->threads : 1;

	*f = (struct top_stage_figures){ .name = now->name,
		                         .queued = now->queued,
		                         .events = now->events };
	f->out_per_s = per_s(now->events, then->events, s);
	f->in_per_s = s > 0 ? growth(arrived, had) / s : 0;
	if (now->served > then->served)
		f->service_ms = ms / (double)(now->served - then->served);
	else if (now->served)
		f->service_ms = now->served_ms / (double)now->served;
	f->busy = s > 0 ? ms / 1000 / s / (double)threads : 0;
	f->busy = f->busy > 1 ? 1 : f->busy;
}

static double sort_key(const struct top_stage_figures *f, enum top_order order)
{
	switch (order) {
	case TOP_BY_QUEUE:
		return (double)f->queued;
	case TOP_BY_IN:
		return f->in_per_s;
	case TOP_BY_OUT:
		return f->out_per_s;
	case TOP_BY_SERVICE:
		return f->service_ms;
	case TOP_BY_BUSY:
		return f->busy;
	case TOP_BY_EVENTS:
		return (double)f->events;
	default:
		return -(double)f->position;
	}
}

/* Sorts by insertion: the stages are few, and equal ones keep the order of the pipeline. */
static void sort(struct top_stage_figures *stage, unsigned count, enum top_order order,
                 bool is_reversed)
{
	static struct top_stage_figures moved;

	for (unsigned i = 1; i < count; i++) {
		unsigned at = i;

		moved = stage[i];
		double key = sort_key(&moved, order);

		for (; at > 0; at--) {
			double before = sort_key(&stage[at - 1], order);

			if (is_reversed ? before <= key : before >= key)
				break;
			stage[at] = stage[at - 1];
		}
		stage[at] = moved;
	}
}

void top_figures(const struct top_history *h, enum top_order order, bool is_reversed,
                 struct top_figures *f)
{
	const struct top_document *now = earlier(h, 0), *then = earlier(h, TOP_RATE_DOCUMENTS),
				  *first = earlier(h, TOP_UPLOAD_DOCUMENTS);
	double s = now->uptime_s - then->uptime_s;

	*f = (struct top_figures){ .now = now };
	f->images_per_s = per_s(now->stored, then->stored, s);
	f->rejected_per_s = per_s(now->rejected, then->rejected, s);
	f->p50_ms = quantile(now, first, 0.5);
	f->p90_ms = quantile(now, first, 0.9);
	f->p99_ms = quantile(now, first, 0.99);
	for (unsigned i = 0; i < now->stage_count; i++) {
		stage_figures(&f->stage[i], &now->stage[i], &then->stage[i], s);
		f->stage[i].position = i;
	}
	thread_figures(f, then, s);
	sort(f->stage, now->stage_count, order, is_reversed);
}

const char *top_order_name(enum top_order order)
{
	static const char *const names[TOP_ORDER_COUNT] = { "pipeline", "queue", "in/s",  "out/s",
		                                            "ms",       "busy",  "events" };

	assert(order < TOP_ORDER_COUNT);
	return names[order];
}

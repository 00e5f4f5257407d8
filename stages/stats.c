/*
 * stats.c - the last stage of every image, stored or failed: counts it, and ends it.
 *
 * Knows nothing of pixels or sockets. Any worker, STAGE_SHARED; pass-through, so it usually runs on
 * the thread of the stage before.
 */
#include "app.h"
#include "base/clock.h"
#include "image/image.h"
#include "log/log.h"
#include "stages.h"

static void count(struct server_counters *c, const struct image *image)
{
	if (image->remade) /* remake.h counts it */
		return;
	/* Acquire: pairs with image_set_problem(). */
	if (atomic_load_explicit(&image->has_failed, memory_order_acquire)) {
		counter_add_shared(&c->images_failed);
		counter_add_shared(&c->failed_by[image->format]);
		log_debug("image %s of request %s failed: %u %s: %s", image->id,
		          image_request(image), image->problem.status, image->problem.slug,
		          image->problem.detail);
		return;
	}
	atomic_store_explicit(&c->last_stored_ns, clock_ns(), memory_order_relaxed);
	counter_add_shared(&c->images_stored);
	counter_add_shared(&c->stored_by[image->format]);
	if (image->is_damaged)
		counter_add_shared(&c->images_damaged);
	atomic_fetch_add_explicit(&c->input_bytes_stored, image->source_size, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->output_bytes_stored, image_files_bytes(image),
	                          memory_order_relaxed);
}

static void stats_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct image *image = image_of(batch[i]);

		count(app(v)->counters, image);
		image_end(v, image);
	}
}

const struct stage_class stage_stats = {
	.name = "stats",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.pass_through = true,
	.handle = stats_handle,
};

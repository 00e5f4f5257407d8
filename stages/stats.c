/*
 * stats.c - where every image ends, stored or failed: counts it, gives back what it held, and tells
 * whoever waits.
 *
 * Knows nothing of pixels or sockets. Any worker, STAGE_SHARED; pass-through, so usually on the
 * thread that was last.
 */
#include <inttypes.h>

#include "app.h"
#include "image/image.h"
#include "log/log.h"
#include "stages.h"

static void add(_Atomic uint64_t *total, uint64_t n)
{
	atomic_fetch_add_explicit(total, n, memory_order_relaxed);
}

static void count(struct server *s, const struct image *image)
{
	if (atomic_load_explicit(&image->has_failed, memory_order_acquire)) {
		add(&s->images_failed, 1);
		log_debug("image %s of request %s failed: %u %s: %s", image->id,
		          image_request(image), image->problem.status, image->problem.slug,
		          image->problem.detail);
		return;
	}
	add(&s->images_stored, 1);
	if (image->is_damaged)
		add(&s->images_damaged, 1);
	add(&s->input_bytes_stored, image->source_size);
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++)
		add(&s->output_bytes_stored, image->variant[i].size);
}

static void stats_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct image *image = image_of(batch[i]);

		count(visit_app(v), image);
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

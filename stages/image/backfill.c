/* backfill.c - puts images that lack variants into the queue of remake.h. Any thread. */
#include "backfill.h"

#include <string.h>

#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "plan.h"
#include "store/remake_queue.h"

/* Lists the variants that the image's level skips. Returns their number. */
static unsigned list_skipped(const struct image *image, char *names, size_t size)
{
	const struct conf *conf = image_conf(image);
	struct text t;
	unsigned n = 0;

	text_init(&t, names, size);
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (!plan_makes(image_plan(image), i))
			text_printf(&t, "%s%s", n++ ? " " : "", conf->variant[i].name);
	return n;
}

bool backfill_begin(struct image_service *s, const struct image *image)
{
	struct remake_entry entry = { .only_missing = true };

	if (image_conf(image)->overload.backfill != CONF_YES || image->remade ||
	    list_skipped(image, entry.names, sizeof entry.names) == 0)
		return false;
	pthread_mutex_lock(&s->remake.counting);
	int err = remake_queue_put(&s->store, image->id, &entry);

	if (!err)
		atomic_fetch_add_explicit(&s->remake.waiting, 1, memory_order_relaxed);
	pthread_mutex_unlock(&s->remake.counting);
	if (!err)
		return true;
	log_warning("image %s: cannot note the variants that it lacks: %s; they are made only by "
	            "darkroomd store remake",
	            image->id, strerror(-err));
	return false;
}

void backfill_end(struct image_service *s, const struct image *image, int err)
{
	if (err)
		(void)remake_queue_drop(&s->store, image->id);
	else
		atomic_fetch_add_explicit(&s->remake.backfilled, 1, memory_order_relaxed);
	remake_call(&s->remake);
}

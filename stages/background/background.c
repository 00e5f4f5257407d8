/* background.c - makes, starts and stops the parts. */
#include "background.h"

#include <string.h>

#include "image/image_service.h"
#include "log/log.h"

int background_init(struct background *b, struct image_service *s, const _Atomic bool *has_quotas)
{
	int err = recovery_init(&b->recovery, s);

	if (!err)
		err = sweep_init(&b->sweep, s, has_quotas);
	if (!err)
		err = remake_init(&b->remake, s);
	if (!err)
		return 0;
	log_error("background: cannot initialise it: %s", strerror(-err));
	background_fini(b);
	return err;
}

void background_fini(struct background *b)
{
	remake_fini(&b->remake);
	feeder_fini(&b->sweep.feeder);
	feeder_fini(&b->recovery);
}

int background_start(struct background *b)
{
	const struct storage *st = &b->recovery.service->storage;
	int err = st->spooling.is_on ? feeder_start(&b->recovery) : 0;

	if (!err && !st->class->is_shared)
		err = feeder_start(&b->remake.feeder);
	if (!err)
		err = feeder_start(&b->sweep.feeder);
	if (err)
		background_stop(b);
	return err;
}

void background_stop(struct background *b)
{
	remake_stop(&b->remake);
	feeder_stop(&b->recovery);
	feeder_stop(&b->sweep.feeder);
}

/* image_service.c - makes and releases what uploads and images share. Main thread. */
#include "image_service.h"

#include <errno.h>
#include <string.h>

#include "http/problem.h"
#include "layout/cores.h"
#include "log/log.h"
#include "s3/s3_client.h"
#include "sched/core/schedule.h"
#include "stage_ids.h"

unsigned image_service_reads_max(const struct conf *conf)
{
	if (conf->store.kind == CONF_STORE_S3)
		return (unsigned)conf->experiment.s3_connections;
	return schedule_disk_threads(conf, STAGE_DISK_READ, cores_usable());
}

int image_service_init(struct image_service *s, const struct conf *conf, const struct plan *plan)
{
	int err = conf_epochs_init(&s->epochs, conf, plan);

	if (err) {
		log_error("configuration: cannot allocate it: %s", strerror(-err));
		return err;
	}
	err = storage_open(&s->storage, &s->store, conf, &s->leftovers_cleared);
	if (err)
		goto fail_epochs;
	err = inflight_init(&s->inflight, (size_t)conf->limits.images_in_flight);
	if (err) {
		log_error("images in flight: cannot allocate the table: %s", strerror(-err));
		goto fail_store;
	}
	admission_init(&s->admission, conf);
	/* Images of a client that keep all cores busy. Another client's image waits for those that
	 * have begun, under most policies. */
	client_turns_init(&s->turns, cores_usable() > 2 ? cores_usable() : 2);
	disk_reads_init(&s->reads, image_service_reads_max(conf));
	budget_init(&s->budget, conf->limits.memory_budget);
	return 0;

fail_store:
	storage_close(&s->storage);
fail_epochs:
	conf_epochs_fini(&s->epochs);
	return err;
}

void image_service_fini(struct image_service *s)
{
	usage_save(&s->store.usage, &s->store);
	budget_fini(&s->budget);
	admission_fini(&s->admission);
	disk_reads_fini(&s->reads);
	client_turns_fini(&s->turns);
	inflight_fini(&s->inflight);
	storage_close(&s->storage);
	conf_epochs_fini(&s->epochs);
}

/* Returns why a store cannot be used now; NULL: the error is another one. */
static const char *reason_of(int err)
{
	switch (err) {
	case S3_AWAY:
	case -ECANCELED:
		return "the store does not answer";
	case S3_DAMAGED:
		return "the store's answers are damaged";
	case -EAGAIN:
		return "other nodes change the same object";
	case -EBUSY:
		return "too many requests wait for the store";
	case SPOOLING_FULL:
		return "the spool has store.s3_spool_bytes";
	default:
		return NULL;
	}
}

bool image_service_set_problem(int err, struct problem *p)
{
	const char *why = reason_of(err);

	if (why)
		problem_set(p, 503, "storage-unavailable", "%s", why);
	return why != NULL;
}

/* image_service.c - makes and releases what uploads and images share. Main thread. */
#include "image_service.h"

#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "storage.h"

/* Images of a client that keep all cores busy. Another client's image waits for those that
 * have begun, under most policies. */
static unsigned turns_window(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 2 ? (unsigned)cores : 2;
}

/* One less than the disk threads by default, or one for each connection to the store. */
static unsigned reads_at_once(const struct conf *conf)
{
	if (conf->store.kind == CONF_STORE_S3)
		return (unsigned)conf->store.s3_connections;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores / 4 > 2 ? (unsigned)cores / 4 - 1 : 1;
}

/* Initialises what has a thread of its own. */
static int init_threads(struct image_service *s)
{
	const char *what = "recovery";
	int err = recovery_init(&s->recovery, s);

	if (err)
		goto fail;
	what = "expire";
	err = sweep_init(&s->sweep, s);
	if (err)
		goto fail_recovery;
	what = "remake";
	err = remake_init(&s->remake, s);
	if (err)
		goto fail_sweep;
	what = "make_missing";
	err = missing_init(&s->missing, s);
	if (!err)
		return 0;
	remake_fini(&s->remake);
fail_sweep:
	sweep_fini(&s->sweep);
fail_recovery:
	recovery_fini(&s->recovery);
fail:
	log_error("%s: cannot initialise it: %s", what, strerror(-err));
	return err;
}

/* What cannot fail. */
static void init_tables(struct image_service *s, const struct conf *conf)
{
	admission_init(&s->admission, conf);
	client_turns_init(&s->turns, turns_window());
	disk_reads_init(&s->reads, reads_at_once(conf));
	client_counts_init(&s->clients);
	client_rates_init(&s->rates);
	upload_keys_init(&s->keys);
	budget_init(&s->budget, conf->limits.memory_budget);
}

int image_service_init(struct image_service *s, const struct conf *conf, const struct plan *plan)
{
	int err = conf_epochs_init(&s->epochs, conf, plan);

	if (err) {
		log_error("configuration: cannot allocate it: %s", strerror(-err));
		return err;
	}
	err = storage_open(s, conf);
	if (err)
		goto fail_epochs;
	err = inflight_init(&s->inflight, (size_t)conf->limits.images_in_flight);
	if (err) {
		log_error("images in flight: cannot allocate the table: %s", strerror(-err));
		goto fail_store;
	}
	err = init_threads(s);
	if (err)
		goto fail_inflight;
	init_tables(s, conf);
	return 0;

fail_inflight:
	inflight_fini(&s->inflight);
fail_store:
	storage_close(s);
fail_epochs:
	conf_epochs_fini(&s->epochs);
	return err;
}

void image_service_fini(struct image_service *s)
{
	missing_fini(&s->missing);
	remake_fini(&s->remake);
	sweep_fini(&s->sweep);
	recovery_fini(&s->recovery);
	usage_save(&s->store.usage, &s->store);
	budget_fini(&s->budget);
	admission_fini(&s->admission);
	disk_reads_fini(&s->reads);
	client_turns_fini(&s->turns);
	client_rates_fini(&s->rates);
	upload_keys_fini(&s->keys);
	client_counts_fini(&s->clients);
	inflight_fini(&s->inflight);
	storage_close(s);
	conf_epochs_fini(&s->epochs);
}

/*
 * recovery.c - feeds spooled images back into the graph.
 *
 * A pass walks the spool at startup, and whenever an acknowledged image failed.
 */
#include "background.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "image/image.h"
#include "image/image_service.h"
#include "log/log.h"
#include "storage/storage.h"
#include "store/spool.h"
#include "telemetry/counter.h"

#define AT_ONCE 4
#define AWAY_POLL_MS 200 /* interval between checks whether the store is back */

/* ---- results ---- */

static void quarantine(struct feeder *f, const char *id, const char *why)
{
	int err = spooling_quarantine(&f->service->storage, id, why);

	if (err == -ENOENT)
		return; /* the client removed it */
	if (!err)
		counter_add_shared(&f->failed);
	/* Not rate-limited: an operator needs every id. */
	log_write(LOG_LEVEL_ERROR, "recovery: cannot process acknowledged image %s: %s; %s%s", id,
	          why, err ? "it stays in the spool: " : "its original is in .quarantine",
	          err ? strerror(-err) : "");
}

static void recovery_ended(struct feeder *f, const struct feeder_slot *slot)
{
	if (slot->result == FEEDER_MADE)
		log_info("recovery: image %s is stored", slot->item.id);
	else if (slot->result == FEEDER_REFUSED)
		quarantine(f, slot->item.id, slot->why);
}

static int recovery_set_attempts(struct feeder *f, const char *id, unsigned attempts)
{
	return spool_set_attempts(&f->service->store, id, attempts);
}

/* ---- images that stay in the spool ---- */

/* The pass of an image of recovery's own knows that it has failed. */
static void end_spooled(struct visit *v, struct image *image)
{
	const struct upload *u = image->upload;

	(void)v;
	if (image->stays_spooled || (!u->slot && feeder_result_of(image) != FEEDER_MADE))
		feeder_call(u->service->recovery);
}

void recovery_watch(struct image *image)
{
	image->is_spooled = true;
	image_hold(image, end_spooled);
}

/* ---- starting ---- */

/* Reads the original and starts it. Owns fd. Returns 0 or -errno. */
static int feed(struct feeder_slot *slot, int fd, uint64_t size, const struct spool_names *names)
{
	struct upload *u;
	int err = feeder_upload_new(slot, size, names->file, fd, &u);

	close(fd);
	if (err)
		return err == -EBADMSG ? -EINVAL : err;
	memcpy(u->token_name, names->token, sizeof u->token_name);
	u->expires = names->expires;
	u->metadata = names->metadata;
	memcpy(u->focus, names->focus, sizeof u->focus);
	recovery_watch(u->image[0]);
	return feeder_upload_start(slot, u);
}

static int recovery_start(struct feeder *f, struct feeder_slot *slot)
{
	struct storage *st = &f->service->storage;
	struct spool_names names;
	uint64_t size = 0;
	int is_stored = storage_has(st, slot->item.id);

	/* The daemon ended between storing and unspooling an image, or unspooling failed. */
	if (is_stored > 0) {
		is_stored = spooling_remove(st, slot->item.id);
		return is_stored && is_stored != -ENOENT ? -EBUSY : -ENOENT;
	}
	int fd = is_stored < 0 ? -EBUSY
	                       : spool_open(&f->service->store, slot->item.id, &size, &names);

	return fd < 0 ? fd : feed(slot, fd, size, &names);
}

/* ---- passes ---- */

/* Leaves out the images that are in flight. */
static int recovery_attempts(struct feeder *f, const char *id)
{
	return inflight_find(&f->service->inflight, id, NULL)
	               ? -1
	               : spool_attempts(&f->service->store, id);
}

/* Begins no pass while an S3 store does not answer. */
static int recovery_next(struct feeder *f)
{
	return !f->is_in_pass && storage_is_away(&f->service->storage) ? AWAY_POLL_MS
	                                                               : feeder_feed(f);
}

static const struct feeder_class recovery_class = {
	.name = "recovery",
	.directory = STORE_SPOOL_DIRECTORY,
	.noun = "acknowledged image",
	.task = "to be recovered",
	.made = "made again",
	.gone = "had been stored",
	.failed = "set aside",
	.damaged = "its spooled files are damaged",
	.at_once = AT_ONCE,
	.more = FEEDER_LIST_MAX,
	.next = recovery_next,
	.attempts = recovery_attempts,
	.start = recovery_start,
	.set_attempts = recovery_set_attempts,
	.ended = recovery_ended,
};

int recovery_init(struct feeder *f, struct image_service *s)
{
	s->recovery = f;
	return feeder_init(f, &recovery_class, s);
}

/*
 * remake.c - takes images from the queue while little else is to do.
 *
 * An entry leaves the store's queue when its image is remade, or cannot be. If the daemon is killed
 * before that, the next start finds the entry, and only what is still missing is made.
 */
#include "remake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/remade.h"
#include "jail/jail.h"
#include "layout/cores.h"
#include "log/log.h"
#include "store/directory.h"
#include "store/remake_queue.h"
#include "store/store_find.h"
#include "store/store_verify.h"
#include "store/stored_image.h"
#include "telemetry/counter.h"

#define TURN_POLL_MS 2   /* interval between checks whether other images are in flight */
#define CALM_POLL_MS 200 /* the same, whether images are made in cheaper ways */
#define QUIET_NS NS_PER_S
#define SHARE_NS (250 * NS_PER_MS) /* one image that is asked for begins in this time */
#define RETRY_NS (20 * NS_PER_MS)  /* without room, or while the image is in flight */
#define FAILED_NS (60 * NS_PER_S)

static_assert(FEEDER_SLOTS >= FEEDER_AT_ONCE_MAX + MISSING_MAX, "a slot for each image");

/* ---- images that clients ask for ---- */

/* Returns its clients, to be sent without the lock. Under the lock. */
static struct waiter *forget(struct remake *r, struct asked_image *a)
{
	a->is_taken = false;
	return inflight_remove(&r->asked, &a->known);
}

/* Ends the wait for an image that has begun. MISSING_WAITS lets it begin once more. */
static void end_asked(struct remake *r, struct asked_image *a, enum missing result)
{
	struct waiter *list = NULL;

	pthread_mutex_lock(&r->feeder.lock);
	if (result == MISSING_WAITS && !r->feeder.is_stopping) {
		a->is_begun = false;
		a->retry_ns = clock_ns() + RETRY_NS;
	} else {
		list = forget(r, a);
	}
	if (result == MISSING_IMPOSSIBLE) {
		unsigned i = r->failure_at++ % MISSING_FAILED_MAX;

		memcpy(r->failure[i].id, a->id, sizeof a->id);
		r->failure[i].until_ns = clock_ns() + FAILED_NS;
	}
	feeder_wake(&r->feeder);
	pthread_mutex_unlock(&r->feeder.lock);
	images_send_waiters(r->feeder.service, list,
	                    result == MISSING_WAITS ? MISSING_LATER : result);
}

static void asked_ended(struct remake *r, const struct feeder_slot *slot)
{
	struct asked_image *a = slot->item.asked;

	if (slot->result == FEEDER_MADE)
		counter_add_shared(&r->missing_made);
	if (slot->result == FEEDER_MADE || slot->result == FEEDER_GONE) {
		end_asked(r, a, MISSING_ENDED);
	} else if (slot->why[0]) {
		counter_add_shared(&r->missing_failed);
		log_warning("make_missing: cannot make what image %s lacks: %s; trying again after "
		            "a minute if it is asked for",
		            a->id, slot->why);
		end_asked(r, a, MISSING_IMPOSSIBLE);
	} else {
		end_asked(r, a, slot->result == FEEDER_AGAIN ? MISSING_WAITS : MISSING_LATER);
	}
}

static bool has_failed(const struct remake *r, const char *id)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < MISSING_FAILED_MAX; i++)
		if (now < r->failure[i].until_ns && strcmp(r->failure[i].id, id) == 0)
			return true;
	return false;
}

/* Forgets images that have not begun, and whose clients have gone. Under the lock. */
static void forget_unasked(struct remake *r)
{
	for (struct asked_image *a = r->image; a < r->image + MISSING_MAX; a++)
		if (a->is_taken && !a->is_begun && !inflight_is_awaited(&r->asked, &a->known))
			(void)forget(r, a);
}

/* Finds the image, or adds it. Under the lock. */
static enum missing add_asked(struct remake *r, const char *id, const struct client_key *client)
{
	struct asked_image *empty = NULL;
	unsigned of_client = 0;

	forget_unasked(r);
	for (struct asked_image *a = r->image; a < r->image + MISSING_MAX; a++) {
		if (!a->is_taken)
			empty = a;
		else if (strcmp(a->id, id) == 0)
			return MISSING_WAITS;
		else
			of_client += client && a->has_client &&
			             memcmp(&a->client, client, sizeof *client) == 0;
	}
	if (has_failed(r, id))
		return MISSING_IMPOSSIBLE;
	if (of_client >= MISSING_PER_CLIENT)
		return MISSING_CLIENT_FULL;
	if (!empty || r->feeder.is_stopping)
		return MISSING_FULL;
	*empty = (struct asked_image){ .is_taken = true,
		                       .turn = r->turn++,
		                       .has_client = client != NULL };
	memcpy(empty->id, id, sizeof empty->id);
	if (client)
		empty->client = *client;
	empty->known.id = empty->id;
	inflight_add(&r->asked, &empty->known);
	return MISSING_WAITS;
}

enum missing remake_ask(struct remake *r, const char *id, const struct client_key *client,
                        struct waiter *w)
{
	pthread_mutex_lock(&r->feeder.lock);
	enum missing answer = add_asked(r, id, client);

	if (answer == MISSING_WAITS)
		inflight_wait(&r->asked, id, w);
	else
		counter_add_shared(&r->missing_refused);
	feeder_wake(&r->feeder);
	pthread_mutex_unlock(&r->feeder.lock);
	return answer;
}

/* Returns how many images are in flight beside those of others. */
static unsigned at_once(const struct remake *r)
{
	return r->cores > 3 ? r->cores / 2 : 1;
}

/* Returns whether one more image may begin beside `mine` that were asked for. */
static bool may_begin(const struct remake *r, unsigned mine)
{
	uint64_t all = admission_in_flight(&r->feeder.service->admission);

	return mine < at_once(r) &&
	       (all <= mine || all < at_once(r) || clock_ns() - r->begun_ns >= SHARE_NS);
}

static int remake_front(struct feeder *f, struct feeder_item *item)
{
	struct remake *r = (struct remake *)f;
	struct asked_image *next = NULL;
	bool is_waiting = false;
	unsigned mine = 0;

	pthread_mutex_lock(&f->lock);
	forget_unasked(r);
	for (struct asked_image *a = r->image; a < r->image + MISSING_MAX; a++) {
		mine += a->is_taken && a->is_begun;
		if (!a->is_taken || a->is_begun)
			continue;
		is_waiting = true;
		if (clock_ns() >= a->retry_ns && (!next || a->turn < next->turn))
			next = a;
	}
	if (next && !may_begin(r, mine))
		next = NULL;
	if (next) {
		next->is_begun = true; /* from now on only its end frees it */
		memcpy(item->id, next->id, sizeof item->id);
		item->asked = next;
	}
	pthread_mutex_unlock(&f->lock);
	return next ? 0 : is_waiting ? TURN_POLL_MS : -1;
}

/* ---- the store's queue ---- */

static int queue_put(struct remake *r, const char *id, const struct remake_entry *entry,
                     bool is_new)
{
	pthread_mutex_lock(&r->feeder.counting);
	int err = remake_queue_put(&r->feeder.service->store, id, entry);

	if (!err && is_new)
		atomic_fetch_add_explicit(&r->feeder.waiting, 1, memory_order_relaxed);
	pthread_mutex_unlock(&r->feeder.counting);
	return err;
}

static void give_up(struct remake *r, const char *id, const char *why)
{
	int err = remake_queue_drop(&r->feeder.service->store, id);

	if (err == -ENOENT)
		return; /* taken out of the queue meanwhile */
	counter_add_shared(&r->feeder.failed);
	log_warning("remake: cannot remake image %s: %s; it stays as it is", id, why);
}

/* The image is made. If a damaged file was found since it began, queue_file() has set the
 * attempts of its entry to none, and it is made once more. */
static void leave_queue(struct feeder *f, const struct feeder_slot *slot)
{
	struct remake_entry entry;

	if (slot->is_counted && remake_queue_get(&f->service->store, slot->item.id, &entry) == 0 &&
	    entry.attempts == 0)
		feeder_call(f);
	else
		(void)remake_queue_drop(&f->service->store, slot->item.id);
}

static int remake_set_attempts(struct feeder *f, const char *id, unsigned attempts)
{
	struct remake_entry entry;
	int err = remake_queue_get(&f->service->store, id, &entry);

	entry.attempts = attempts;
	return err ? err : remake_queue_put(&f->service->store, id, &entry);
}

static void remake_ended(struct feeder *f, const struct feeder_slot *slot)
{
	struct remake *r = (struct remake *)f;

	if (slot->item.asked)
		asked_ended(r, slot);
	else if (slot->result == FEEDER_REFUSED)
		give_up(r, slot->item.id, slot->why);
	else if (slot->result == FEEDER_MADE || slot->result == FEEDER_GONE)
		leave_queue(f, slot);
}

static int remake_pace(struct feeder *f, unsigned mine)
{
	struct remake *r = (struct remake *)f;
	uint64_t all = admission_in_flight(&f->service->admission), now = clock_ns();

	if (!admission_is_calm(&f->service->admission))
		return CALM_POLL_MS;
	if (all > mine)
		r->busy_ns = now;
	uint64_t max = now - r->busy_ns > QUIET_NS ? r->cores + 1 : at_once(r);

	return (all > mine ? all : mine) < max ? 0 : TURN_POLL_MS;
}

static int remake_attempts(struct feeder *f, const char *id)
{
	struct remake_entry entry;

	return remake_queue_get(&f->service->store, id, &entry) ? 0 : (int)entry.attempts;
}

/* ---- the stored image ---- */

static void free_remade(struct remade *r)
{
	if (r->directory_fd >= 0)
		close(r->directory_fd);
	free(r);
}

static int read_document(struct remade *r, const char *id)
{
	int fd = directory_open_file(r->directory_fd, STORED_IMAGE, O_RDONLY);

	if (fd < 0)
		return fd == -ENOENT || fd == -EINVAL ? -EBADMSG : fd;
	int length = stored_image_read(fd, r->document);
	char tag[STORE_TAG_MAX];

	r->expires = store_tag(fd, tag);
	close(fd);
	if (length < 0)
		return length == -EFBIG ? -EBADMSG : length;
	r->length = (size_t)length;
	return stored_info_read(&r->info, r->document, r->length) ||
	                       !stored_info_is_sound(&r->info, r->document, id)
	               ? -EBADMSG
	               : 0;
}

/* Returns the JPEGs of the variants of these files. */
static uint32_t jpegs_of(uint32_t made, const struct conf *conf)
{
	struct conf_files files;
	uint32_t jpegs = 0;

	conf_files_list(&files, conf);
	for (unsigned i = 0; i < files.count; i++)
		if (made >> i & 1)
			jpegs |= UINT32_C(1) << files.file[i].variant;
	return jpegs;
}

/* Finds what is to be made. Returns 0, -ENOENT if the image lacks nothing, or -errno. */
static int find_variants(const struct remake_entry *entry, struct remade *r,
                         const struct conf *conf, struct stored_lack *lack, uint32_t *made)
{
	if (stored_lack_find(lack, conf, r->directory_fd, r->document, r->length))
		return -EBADMSG;
	*made = remake_entry_wanted(entry, conf) &
	        (lack->missing | (entry->only_missing ? 0 : lack->differs));
	*made |= jpegs_of(*made, conf) & lack->missing; /* without which nothing names them */
	r->is_complete = !((lack->missing | lack->differs) & ~*made);
	if (*made == 0)
		return -ENOENT;
	return lack->has_original ? 0 : -ENODATA;
}

/* Notes what an image has cost, an average over some images, and frees what it needed. */
static void give_back(struct visit *v, struct image *image)
{
	struct remake *r = (struct remake *)image->upload->slot->feeder;
	uint64_t pixels = (uint64_t)image->width * image->height, ns = 0;

	(void)v;
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++)
		ns += counter_read(&image->upload->timing.service_ns[i]);
	uint64_t cost = pixels ? ns * 1000 / pixels : 0, was = counter_read(&r->ns_per_kilopixel);

	if (cost && feeder_result_of(image) == FEEDER_MADE)
		atomic_store_explicit(&r->ns_per_kilopixel, was ? (was * 7 + cost) / 8 : cost,
		                      memory_order_relaxed);
	free_remade(image->remade);
	image->remade = NULL;
}

/* Makes the upload, and reads the original into it. Returns 0 or -errno. */
static int read_original(struct feeder_slot *slot, struct remade *r, uint64_t size,
                         struct upload **result)
{
	int fd = directory_open_file(r->directory_fd, STORE_ORIGINAL, O_RDONLY);

	if (fd < 0)
		return fd == -ENOENT ? -ENODATA : fd;
	int err = feeder_upload_new(slot, size, "", fd, result);

	close(fd);
	if (err)
		return err;
	/* The record may have its checksum. */
	const struct stored_file *original = stored_info_find(&r->info, STORE_ORIGINAL);

	checksum_of((*result)->body, (size_t)size, r->original_sum);
	if (!original || strcmp(original->sum, r->original_sum) == 0)
		return 0;
	feeder_upload_drop(*result);
	return -EBADMSG;
}

/* Starts the image with r, which is its own then. Returns 0 or -errno. */
static int start(struct feeder_slot *slot, const struct remake_entry *entry, struct remade *r,
                 const struct conf_epoch *epoch)
{
	struct stored_lack lack;
	struct upload *u;
	uint32_t made;
	int err = find_variants(entry, r, &epoch->conf, &lack, &made);

	if (!err)
		err = read_original(slot, r, lack.original_bytes, &u);
	if (err)
		return err;
	if (u->epoch != epoch) { /* a reload: other variants may lack now */
		feeder_upload_drop(u);
		return -EAGAIN;
	}
	u->admitted.is_background = true;
	u->expires = r->expires;
	const char *all = json_reader_check(r->document, r->length);

	if (!json_reader_ascii(all ? json_reader_member(all, STORED_FOCUS) : NULL, u->focus,
	                       sizeof u->focus))
		u->focus[0] = '\0';
	u->image[0]->remade = r;
	u->image[0]->made = made;
	u->image[0]->unneeded = plan_unneeded(u->plan, made);
	image_hold(u->image[0], give_back);
	return feeder_upload_start(slot, u);
}

static int open_and_start(struct feeder_slot *slot, const struct remake_entry *entry)
{
	struct image_service *s = slot->feeder->service;

	if (inflight_find(&s->inflight, slot->item.id, NULL))
		return -EALREADY;
	struct remade *r = calloc(1, sizeof *r);

	if (!r)
		return -ENOMEM;
	r->directory_fd = store_open_directory(&s->store, slot->item.id);
	int err = r->directory_fd < 0 ? r->directory_fd : read_document(r, slot->item.id);
	struct conf_epoch *epoch = conf_epoch_ref(&s->epochs);

	if (!err)
		err = start(slot, entry, r, epoch);
	conf_epoch_unref(&s->epochs, epoch);
	if (err)
		free_remade(r);
	return err;
}

/* Those that were in progress when the daemon ended go alone: one of them may have been the cause.
 */
static int remake_start(struct feeder *f, struct feeder_slot *slot)
{
	struct remake *r = (struct remake *)f;
	struct remake_entry entry = { .only_missing = true };
	int err = 0;

	if (slot->item.asked) {
		err = open_and_start(slot, &entry);
		if (!err) /* without room it begins as soon as there is some */
			r->begun_ns = clock_ns();
		return err;
	}
	err = remake_queue_get(&f->service->store, slot->item.id, &entry);
	if (err)
		return err == -ENOENT ? err : -EINVAL;
	return open_and_start(slot, &entry);
}

static const struct feeder_class remake_class = {
	.name = "remake",
	.directory = REMAKE_QUEUE_DIRECTORY,
	.noun = "stored image",
	.made = "with new variants",
	.gone = "need none",
	.failed = "cannot get them",
	.task = "to get variants; making them while little else is to do",
	.damaged = "its entry in .remake is damaged",
	.at_once = FEEDER_AT_ONCE_MAX,
	.more = 1,
	.quiet_ms = 5000,
	.next = feeder_feed,
	.attempts = remake_attempts,
	.front = remake_front,
	.pace = remake_pace,
	.start = remake_start,
	.set_attempts = remake_set_attempts,
	.ended = remake_ended,
};

/* ---- start and stop ---- */

int remake_init(struct remake *r, struct image_service *s)
{
	int err = remake_queue_make(&s->store);

	if (!err)
		err = inflight_init(&r->asked, MISSING_MAX);
	if (err)
		return err;
	err = feeder_init(&r->feeder, &remake_class, s);
	if (err) {
		inflight_fini(&r->asked);
		return err;
	}
	r->cores = cores_usable();
	return 0;
}

void remake_fini(struct remake *r)
{
	if (!r->feeder.class)
		return;
	feeder_fini(&r->feeder);
	inflight_fini(&r->asked);
}

void remake_stop(struct remake *r)
{
	feeder_stop(&r->feeder);
	for (struct asked_image *a = r->image; a < r->image + MISSING_MAX; a++) {
		pthread_mutex_lock(&r->feeder.lock);
		struct waiter *list = a->is_taken && !a->is_begun ? forget(r, a) : NULL;

		pthread_mutex_unlock(&r->feeder.lock);
		images_send_waiters(r->feeder.service, list, MISSING_LATER);
	}
}

void remake_report(struct remake *r, struct text *to)
{
	struct json j = { .text = to };

	json_object(&j, NULL);
	json_uint(&j, "waiting", counter_read(&r->feeder.waiting));
	json_uint(&j, "made", counter_read(&r->feeder.made));
	json_uint(&j, "failed", counter_read(&r->feeder.failed));
	json_uint(&j, "ns_per_kilopixel", counter_read(&r->ns_per_kilopixel));
	json_object_end(&j);
	text_puts(to, "\n");
}

/* ---- damaged files ---- */

/* Adds the file to the image's entry in the queue. */
static int queue_file(struct remake *r, const char *id, const char *label)
{
	struct remake_entry entry = { .only_missing = true };
	bool is_new = remake_queue_get(&r->feeder.service->store, id, &entry) != 0;
	size_t length = strlen(entry.names), left = sizeof entry.names - length;

	if (is_new || (length && strlen(label) + 1 < left)) /* otherwise it is for all */
		snprintf(entry.names + length, left, "%s%s", is_new ? "" : " ", label);
	entry.attempts = 0; /* leave_queue() */
	int err = queue_put(r, id, &entry, is_new);

	feeder_call(&r->feeder);
	return err;
}

int remake_damaged(struct remake *r, const struct conf *conf, const char *id, const char *name,
                   int fd)
{
	struct store *s = &r->feeder.service->store;
	bool is_document = strcmp(name, STORED_IMAGE) == 0;
	int err = is_document ? 0 : store_quarantine(s, id, name, fd);
	char label[CONF_FILE_NAME_MAX];

	if (err == -ESTALE || err == -ENOENT)
		return -ESTALE;
	stored_file_label(label, name);
	bool may_be_made = !is_document && conf_files_have_label(conf, label) &&
	                   store_has_file(s, id, STORE_ORIGINAL);

	if (err || !may_be_made || (err = queue_file(r, id, label))) {
		counter_add_shared(&r->lost);
		log_error("image %s: %s is damaged, and cannot be made again%s%s; it is answered "
		          "503 until a good copy is in its place",
		          id, name, err ? ": " : "", err ? strerror(-err) : "");
		return 0;
	}
	counter_add_shared(&r->damaged);
	log_warning("image %s: %s is damaged; it is in " STORE_QUARANTINE_DIRECTORY
	            " now, and made again from the original",
	            id, name);
	return 1;
}

/* ---- files that are made after the upload ---- */

/* Lists the files that the image's level skips, and those that are made when little is to do.
 * Returns their number. */
static unsigned list_later(const struct image *image, char *names, size_t size)
{
	bool is_backfilled = image_conf(image)->overload.backfill == CONF_YES;
	const struct plan *plan = image_plan(image);
	struct text t;
	unsigned n = 0;

	text_init(&t, names, size);
	for (unsigned i = 0; i < plan->files.count; i++)
		if ((plan_makes(plan, i) ? plan->files.idle >> i & 1 : is_backfilled) &&
		    (plan->files.file[i].format == FILE_JPEG ||
		     jail_can_encode(plan->files.file[i].format)))
			text_printf(&t, "%s%s", n++ ? " " : "", plan->files.file[i].label);
	return n;
}

bool remake_skipped(struct remake *r, const struct image *image)
{
	struct remake_entry entry = { .only_missing = true };

	if (image->remade || list_later(image, entry.names, sizeof entry.names) == 0)
		return false;
	int err = queue_put(r, image->id, &entry, true);

	if (!err)
		return true;
	log_warning("image %s: cannot note the variants that it lacks: %s; they are made only by "
	            "darkroomd store remake",
	            image->id, strerror(-err));
	return false;
}

void remake_skipped_end(struct remake *r, const struct image *image, int err)
{
	if (err)
		(void)remake_queue_drop(&r->feeder.service->store, image->id);
	else
		atomic_fetch_add_explicit(&r->backfilled, 1, memory_order_relaxed);
	feeder_call(&r->feeder);
}

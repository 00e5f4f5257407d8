/*
 * lives.c - what the store is used for: the daemon with its clients, sweep and recovery, and
 * darkroom store beside it. The calls are those of the stages.
 */
#include "lives.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "disk.h"
#include "images.h"
#include "store/directory.h"
#include "store/remake_queue.h"
#include "store/store_verify.h"

#define BATCH_MAX 3

/* ---- lives ---- */

void begin_life(void)
{
	unsigned cleared;
	uint64_t faults = disk.faults_seen;

	world.storage = (struct storage){ .class = &store_of_files,
		                          .files = &world.store,
		                          .spooling = { .is_on = true } };
	while (store_open(&world.store, DISK_ROOT, true, &cleared)) {
		if (disk.faults_seen == faults)
			FAIL("the store does not open");
		if (disk_open_count())
			FAIL("a store that does not open leaves %u descriptors", disk_open_count());
		faults = disk.faults_seen;
	}
	tell("a process begins%s", disk.has_lost_power ? " after a loss of power" : "");
	check_all(true);
	usage_switch(&world.store.usage, &world.store, true); /* reads those of a clean stop */
	if (draw(2))
		check_usage();
	else
		count_some();
}

void end_life(void)
{
	const struct usage *u = &world.store.usage;
	uint64_t faults = disk.faults_seen;
	struct stat st;

	if (draw(2))
		check_usage();
	usage_save(&world.store.usage, &world.store);
	disk.is_quiet = true;
	if (u->is_complete && !u->is_doubtful && disk.faults_seen == faults &&
	    directory_stat(world.store.root_fd, USAGE_FILE, &st))
		FAIL("the figures are not saved");
	disk.is_quiet = false;
	store_close(&world.store);
	if (disk_open_count())
		FAIL("%u descriptors are open after the end", disk_open_count());
}

/* ---- what clients do ---- */

static struct image *new_image(void)
{
	struct image *image = &world.image[world.images++];

	ulid_bound(disk.now_ns / NS_PER_MS, '0', image->id);
	snprintf(image->id + ULID_LENGTH - 2, 3, "%02u", world.images);
	image->states = image->spooled = GONE;
	image->version = 1;
	image->token = tokens[draw(TOKENS)];
	image->expires = draw(4) ? 0 : disk.now_ns / NS_PER_S + 1 + draw(EXPIRES_S);
	image->is_plain = !image->expires && draw(8) == 0;
	return image;
}

static bool is_only_stored(const struct image *image)
{
	return certain(image->states) && image->spooled == GONE;
}

static bool is_spooled(const struct image *image)
{
	return certain(image->spooled);
}

static bool may_be_spooled(const struct image *image)
{
	return image->spooled != GONE;
}

static bool may_be_there(const struct image *image)
{
	return image->states != GONE || image->spooled != GONE;
}

/* Returns a random image of those, or NULL. */
static struct image *some_image(bool (*is_of)(const struct image *image))
{
	struct image *some = NULL;
	unsigned seen = 0;

	for (unsigned i = 0; i < world.images; i++)
		if (is_of(&world.image[i]) && draw(++seen) == 0)
			some = &world.image[i];
	return some;
}

static unsigned version_of(const struct image *image)
{
	return (unsigned)__builtin_ctz(image->states);
}

/* Puts items, with the states that are allowed meanwhile, and afterwards. */
struct put {
	struct store_item item[BATCH_MAX];
	struct store_file file[BATCH_MAX][CONTENT_FILES];
	struct version version[BATCH_MAX];
	struct image *image[BATCH_MAX];
	char note[BATCH_MAX][SPOOL_NOTE_MAX];
	bool gets_tags[BATCH_MAX];
	unsigned count;
};
static struct put put;

static void add_item(struct image *image, enum store_place place)
{
	unsigned n = put.count++;
	struct content *c = &put.version[n].content;
	struct store_file *file = put.file[n];
	struct spool_names spooled = names_of(image);

	make_content(&put.version[n], image, image->version);
	for (unsigned f = 0; f < CONTENT_FILES; f++)
		file[f] = (struct store_file){ content_names[f], c->data[f], c->size[f],
			                       image->is_plain ? NULL : c->sum[f] };
	put.image[n] = image;
	put.gets_tags[n] = false;
	put.item[n] = (struct store_item){ .place = place,
		                           .id = image->id,
		                           .file = file,
		                           .file_count = CONTENT_FILES,
		                           .token = image->token[0] ? image->token : NULL,
		                           .expires = image->expires,
		                           .old_fd = -1 };
	if (place == STORE_SPOOL) {
		size_t length = spool_note(put.note[n], &spooled);

		file[0].name = STORE_ORIGINAL;
		file[0].sum = NULL;
		file[1] = (struct store_file){ SPOOL_NOTE, put.note[n], length, NULL };
		put.item[n].file_count = 2;
		put.item[n].expires = 0; /* it is in the note */
		image->spooled |= 2;
		image->attempts = 0;
		return;
	}
	put.gets_tags[n] = place == STORE_REPLACED ? image->has_tags : !image->is_plain;
	image->has_tags = false;
	if (place == STORE_REPLACED) {
		put.item[n].file = &file[1];
		put.item[n].file_count = 2;
		put.item[n].old_bytes = bytes_of(image, version_of(image));
		put.item[n].new_bytes = c->size[0] + c->size[1];
	}
	image->states |= 1U << image->version;
}

/* After a flush of the file system no original returns. */
static void note_flush(void)
{
	for (unsigned i = 0; i < world.images; i++)
		if (world.image[i].is_unspooled) {
			world.image[i].spooled = GONE;
			world.image[i].is_unspooled = false;
		}
}

static void end_put(struct image *image, const struct store_item *item, uint64_t faults)
{
	bool is_spool = item->place == STORE_SPOOL;
	unsigned *states = is_spool ? &image->spooled : &image->states,
		 made = is_spool ? 2 : 1U << image->version;

	tell("put %s at place %d: %s", image->id, (int)item->place, strerror(-item->err));
	if (!item->err) {
		note_flush();
		*states = made;
		image->is_acknowledged = true;
		return;
	}
	if (disk.faults_seen == faults)
		FAIL("a put failed without a fault: %s", strerror(-item->err));
	/* One error leaves nothing behind that can be seen. Lost power may show it again. */
	disk.is_quiet = true;
	if (disk.faults_seen == faults + 1 && (is_spool ? store_is_spooled(&world.store, image->id)
	                                                : look_at(image) == image->version))
		FAIL("%s is there, although its put failed", image->id);
	disk.is_quiet = false;
}

static void expect_nothing_incoming(const char *id)
{
	struct stat st;

	disk.is_quiet = true;
	if (directory_stat(world.store.incoming_fd, id, &st) != -ENOENT)
		FAIL("a put of %s has left its directory", id);
	disk.is_quiet = false;
}

static void put_all(void)
{
	uint64_t faults = disk.faults_seen;

	storage_put(&world.storage, put.item, put.count);
	for (unsigned n = 0; n < put.count; n++) {
		put.image[n]->has_tags |= put.gets_tags[n] && disk.faults_seen == faults;
		end_put(put.image[n], &put.item[n], faults);
		if (disk.faults_seen <= faults + 1)
			expect_nothing_incoming(put.image[n]->id);
	}
	put.count = 0;
}

static void do_put(void)
{
	unsigned count = 1 + (unsigned)draw(BATCH_MAX);

	for (unsigned i = 0; i < count && world.images < IMAGES_MAX; i++)
		add_item(new_image(), draw(3) ? STORE_IMAGES : STORE_SPOOL);
	if (put.count)
		put_all();
}

/* An image that has another directory by now is not replaced: its variants may be others, too. */
static void replace_stale(struct image *image, int fd)
{
	uint64_t faults = disk.faults_seen;
	unsigned states = image->states;
	bool is_there;

	image->version++;
	add_item(image, STORE_REPLACED);
	put.item[0].old_fd = fd;
	storage_put(&world.storage, put.item, 1);
	image->has_tags |= put.gets_tags[0] && disk.faults_seen == faults;
	image->states = states;
	if (disk.faults_seen != faults)
		return;
	if (put.item[0].err != -ESTALE)
		FAIL("%s was replaced by what was made of an older one", image->id);
	disk.is_quiet = true;
	if (!store_has_moved(&world.store, image->id, fd, &is_there) || !is_there)
		FAIL("%s has not moved, but was replaced", image->id);
	disk.is_quiet = false;
}

static void do_replace(void)
{
	struct image *image = some_image(is_only_stored);

	if (!image || image->version + 1 >= VERSIONS_MAX)
		return;
	int fd = store_open_directory(&world.store, image->id);

	if (fd < 0)
		return;
	image->version++;
	add_item(image, STORE_REPLACED);
	put.item[0].old_fd = fd;
	put_all();
	if (certain(image->states) == 1U << image->version && draw(4) == 0)
		replace_stale(image, fd);
	close(fd);
}

/* Nobody may rely on the image any more. */
static void begin_removal(struct image *image)
{
	image->states |= GONE;
	image->is_acknowledged = false;
}

/* faults: that had been seen before. */
static void end_removal(const struct store *s, struct image *image, uint64_t faults)
{
	char name[EXPIRY_NAME_MAX], path[STORE_PATH_MAX];
	struct stat st;

	note_flush();
	image->states = GONE;
	tell("removed %s", image->id);
	if (!image->expires || !image->has_tags || disk.faults_seen != faults)
		return;
	expiry_write_name(name, image->id, image->expires);
	snprintf(path, sizeof path, STORE_EXPIRY_DIRECTORY "/%07" PRIu64 "/%s",
	         image->expires / 3600, name);
	disk.is_quiet = true;
	if (directory_stat(s->root_fd, path, &st) != -ENOENT)
		FAIL("the note of the end of %s is left", image->id);
	disk.is_quiet = false;
}

/* As the sweep does with the oldest images. */
static void do_remove(void)
{
	struct store_batch batch = { .count = 0 };
	const struct store_class *class = world.storage.class;
	struct image *some[BATCH_MAX] = { NULL };
	unsigned count = 1 + (unsigned)draw(BATCH_MAX);
	uint64_t bytes, faults = disk.faults_seen;

	for (unsigned i = 0; i < count && (some[batch.count] = some_image(is_only_stored)); i++) {
		struct image *image = some[batch.count];
		unsigned version = version_of(image);

		begin_removal(image);
		int err = class->batch_add(&world.storage, &batch, image->id, 0, &bytes);

		if (err && disk.faults_seen == faults)
			FAIL("%s cannot be removed: %s", image->id, strerror(-err));
		if (err)
			break;
		if (bytes != bytes_of(image, version) && disk.faults_seen == faults)
			FAIL("%s has %" PRIu64 " bytes at its removal", image->id, bytes);
	}
	if (class->batch_end(&world.storage, &batch) || !batch.count)
		return;
	for (unsigned i = 0; i < batch.count && some[i]; i++)
		end_removal(&world.store, some[i], faults);
}

/* A client's DELETE. An image that is said not to be there does not come back either. */
static void do_delete(void)
{
	struct image *image = some_image(may_be_there);
	uint64_t faults = disk.faults_seen;

	if (!image)
		return;
	bool was_stored = certain(image->states),
	     was_certain = was_stored || certain(image->spooled);

	begin_removal(image);
	image->spooled |= GONE;
	image->has_tags &= was_stored; /* a crash may leave the note of one that has gone */
	int err = storage_remove(&world.storage, image->id);

	tell("delete %s: %s", image->id, strerror(-err));
	if (err && (err != -ENOENT || was_certain) && disk.faults_seen == faults)
		FAIL("%s cannot be deleted: %s", image->id, strerror(-err));
	if (err && err != -ENOENT)
		return;
	if (!err || !image->is_unspooled) /* otherwise it is in the quarantine */
		image->spooled = GONE;
	if (err)
		image->states = GONE;
	else
		end_removal(&world.store, image, faults);
}

/* darkroom store remove: another process, beside the daemon or without one. */
static void remove_by_tool(bool is_beside)
{
	struct image *image = some_image(is_only_stored);
	uint64_t faults = disk.faults_seen;
	unsigned open = disk_open_count();
	struct store tool;

	if (image && store_attach(&tool, DISK_ROOT) == 0) {
		usage_demand_recount(&tool);
		if (is_beside && draw(2))
			check_usage();
		if (disk.faults_seen == faults) { /* otherwise it says that figures are wrong */
			begin_removal(image);
			int err = store_remove(&tool, STORE_IMAGES, image->id);

			if (err == -ENOENT)
				FAIL("%s is not there to be removed by another", image->id);
			if (!err)
				end_removal(&tool, image, faults);
			usage_demand_recount(&tool);
		}
		store_close(&tool);
	}
	if (disk_open_count() != open)
		FAIL("a tool leaves %u descriptors", disk_open_count() - open);
	if (!is_beside || disk.faults_seen == faults)
		return;
	usage_doubt(&world.store.usage);
	end_life(); /* what the tool could not remove goes at a start */
	begin_life();
}

static void do_tool(void)
{
	remove_by_tool(true);
}

/* As recovery does with each original: it goes if the image is there. Otherwise the image is stored
 * first. A crash may bring the original back. */
static void do_recover(void)
{
	struct image *image = some_image(may_be_spooled);
	int is_made = image ? storage_has(&world.storage, image->id) : -1;
	unsigned attempts = (unsigned)draw(3);

	if (is_made < 0)
		return;
	if (!is_made) {
		image->attempts = ATTEMPTS_UNKNOWN;
		if (spool_set_attempts(&world.store, image->id, attempts))
			return;
		image->attempts = (int)attempts;
		add_item(image, STORE_IMAGES);
		put_all();
		if (image->states & GONE)
			return;
	}
	image->spooled |= GONE;
	int err = is_made ? spooling_remove(&world.storage, image->id)
	                  : spooling_end(&world.storage, image->id);

	tell("unspool %s: %s", image->id, strerror(-err));
	if (err)
		return;
	if (is_made) {
		note_flush();
		image->spooled = GONE;
	}
	image->is_unspooled = !is_made;
}

/* As recovery does with an original that it cannot use. */
static void do_set_aside(void)
{
	static const char why[] = "it cannot be used";
	struct image *image = some_image(is_spooled);
	char path[STORE_PATH_MAX], problem[64];
	uint64_t faults = disk.faults_seen;

	if (!image || draw(4))
		return;
	image->spooled |= GONE;
	image->is_acknowledged = false;
	int err = spooling_quarantine(&world.storage, image->id, why);

	tell("set aside %s: %s", image->id, strerror(-err));
	image->is_unspooled = !err;
	if (err || disk.faults_seen != faults)
		return;
	snprintf(path, sizeof path, "%s/" SPOOL_PROBLEM, image->id);
	disk.is_quiet = true;
	(void)directory_read_file(world.store.quarantine_fd, path, problem, sizeof problem);
	disk.is_quiet = false;
	if (problem[0] != why[0]) /* it may be cut off */
		FAIL("it is not said why %s is in the quarantine", image->id);
}

/* Returns whether the image is among those that end. */
static bool is_due(const struct image *image, const struct expiry_due *due, int count)
{
	for (int k = 0; k < count; k++)
		if (strcmp(due[k].id, image->id) == 0 && due[k].expires == image->expires)
			return true;
	return false;
}

/* As the sweep does with images that end, but it leaves some. */
static void do_expire(void)
{
	static struct expiry_due due[IMAGES_MAX];
	uint64_t now = (disk.now_ns += draw(4 * 3600) * NS_PER_S) / NS_PER_S;
	uint64_t faults = disk.faults_seen;
	const struct store_class *class = world.storage.class;
	int count = class->list_expired(&world.storage, now, due, IMAGES_MAX);

	for (unsigned i = 0; i < world.images && count >= 0 && disk.faults_seen == faults; i++) {
		struct image *image = &world.image[i];
		bool is_listed = is_due(image, due, count),
		     has_ended = image->expires && image->expires <= now;

		if (has_ended && !(image->states & GONE) && !is_listed)
			FAIL("%s has ended, but is not listed", image->id);
		if (is_listed && !has_ended)
			FAIL("%s is listed, but has not ended", image->id);
		if (!is_listed || draw(2))
			continue;
		bool was_certain = certain(image->states);

		begin_removal(image);
		int err = class->remove(&world.storage, image->id);

		if (err == -ENOENT && was_certain)
			FAIL("%s is not there to be removed at its end", image->id);
		if (!err)
			end_removal(&world.store, image, faults);
		if (!err || err == -ENOENT)
			class->forget_expired(&world.storage, image->id, image->expires);
	}
}

static int verify(const struct image *image, const char *name, int *fd)
{
	struct store_found found;

	store_find(&world.store, image->id, name, &found);
	*fd = found.fd;
	return found.fd < 0 ? found.fd : store_verify(&world.store, image->id, name, &found);
}

/* A damaged file leaves the image, unless it is another one by now. */
static void set_file_aside(const struct image *image, unsigned file, int fd)
{
	char path[STORE_PATH_MAX];
	struct stat st;
	uint64_t size;
	int other = store_open_file(&world.store, image->id, content_names[!file], &size);

	if (store_quarantine(&world.store, image->id, content_names[file], other) != -ESTALE)
		FAIL("%s of %s is taken for another file", content_names[file], image->id);
	close(other);
	if (store_quarantine(&world.store, image->id, content_names[file], fd))
		FAIL("%s of %s cannot be set aside", content_names[file], image->id);
	snprintf(path, sizeof path, "%s/%s", image->id, content_names[file]);
	if (directory_stat(world.store.quarantine_fd, path, &st) ||
	    store_has_file(&world.store, image->id, content_names[file]))
		FAIL("%s of %s is not set aside", content_names[file], image->id);
}

/* A bit changes on the disk. That is noticed, and the image is removed. */
static void do_rot(void)
{
	struct image *image = some_image(is_only_stored);
	unsigned file = (unsigned)draw(CONTENT_FILES);
	int fd;

	if (!image || draw(4))
		return;
	disk.is_quiet = true;
	int before = verify(image, content_names[file], &fd);

	if (before)
		FAIL("%s of %s is said to have rotted: %s", content_names[file], image->id,
		     strerror(-before));
	disk_flip(disk_file(fd), draw(UINT32_MAX));
	close(fd);
	if (verify(image, content_names[file], &fd) != -EBADMSG)
		FAIL("%s of %s has rotted, which nobody notices", content_names[file], image->id);
	if (file < 2 && draw(2))
		set_file_aside(image, file, fd);
	close(fd);
	begin_removal(image);
	if (store_remove(&world.store, STORE_IMAGES, image->id))
		FAIL("%s cannot be removed", image->id);
	note_flush();
	image->states = GONE;
	disk.is_quiet = false;
}

/* ---- keys ---- */

static unsigned state_of_key(const struct key *k)
{
	struct key_record r = k->record;

	disk.is_quiet = true;
	int err = key_record_read(&world.store, &r);

	disk.is_quiet = false;
	if (err)
		return GONE;
	pool_put(r.id);
	return r.is_settled ? KEY_SETTLED : KEY_OPEN;
}

static void forget_key(struct key *k)
{
	k->states |= GONE;
	int err = world.storage.class->key_remove(&world.storage, &k->record);

	if (!err && state_of_key(k) != GONE)
		FAIL("the record of %s is there, but was removed", k->image->id);
}

/* Of failed parts only the record tells, so it is flushed. If that fails, the key is forgotten: the
 * answer may not be another one after a loss of power. */
static void settle_key(struct key *k)
{
	k->record.is_settled = true;
	k->states |= KEY_SETTLED;
	int err = world.storage.class->key_write(&world.storage, &k->record);

	tell("settled the key of %s: %s", k->image->id, strerror(-err));
	if (!err && state_of_key(k) != KEY_SETTLED)
		FAIL("the record of %s is not settled", k->image->id);
	if (err && k->record.failed)
		forget_key(k);
	if (err || !k->record.failed)
		return;
	note_flush();
	k->states = KEY_SETTLED;
}

/* An upload with an Idempotency-Key: the record, the image, and the record once more. */
static void do_key(void)
{
	if (world.keys == KEYS_MAX || world.images == IMAGES_MAX)
		return;
	struct image *image = new_image();
	struct key *k = &world.key[world.keys++];

	*k = (struct key){ .image = image, .states = GONE | KEY_OPEN };
	memset(k->record.name, (int)world.keys, sizeof k->record.name);
	memset(k->record.fingerprint, ~(int)world.keys, sizeof k->record.fingerprint);
	k->record.created = disk.now_ns / NS_PER_S;
	k->record.count = 1;
	k->record.id = &image->id;
	uint64_t faults = disk.faults_seen;

	if (world.storage.class->key_write(&world.storage, &k->record)) {
		if (disk.faults_seen == faults)
			FAIL("the record of %s cannot be written", image->id);
		return;
	}
	add_item(image, STORE_IMAGES);
	put_all();
	if (image->states & GONE) {
		forget_key(k);
		return;
	}
	k->states = KEY_OPEN; /* the flush of the image covers it */
	k->record.failed = draw(2);
	settle_key(k);
}

static bool is_there(const struct image *image)
{
	bool was_quiet = disk.is_quiet;

	disk.is_quiet = true;
	unsigned version = look_at(image);

	disk.is_quiet = was_quiet;
	return version != 0;
}

/* An upload that is sent again. The record of a former process tells by its image what happened:
 * the client gets the same answer, and may rely on it. */
static void do_retry(void)
{
	struct key *k = world.keys ? &world.key[draw(world.keys)] : NULL;
	uint64_t faults = disk.faults_seen;

	if (!k)
		return;
	struct key_record r = k->record;
	int err = world.storage.class->key_read(&world.storage, &r);

	if (err && !(k->states & GONE) && disk.faults_seen == faults)
		FAIL("the record of %s cannot be read", k->image->id);
	if (err)
		return;
	pool_put(r.id);
	if (r.is_settled || !is_there(k->image))
		return;
	k->image->states &= ~GONE;
	k->image->is_acknowledged = true;
	k->record.failed = 0;
	settle_key(k);
}

/* As the sweep does with the records of one directory. */
static void do_forget_keys(void)
{
	struct key *k = world.keys ? &world.key[draw(world.keys)] : NULL;
	uint64_t faults = disk.faults_seen;
	bool is_old = draw(4) == 0;

	if (!k)
		return;
	k->states |= is_old ? GONE : 0;
	world.storage.class->key_sweep(&world.storage, k->record.name[0],
	                               is_old ? disk.now_ns / NS_PER_S + 1 : k->record.created);
	if (is_old && disk.faults_seen == faults && state_of_key(k) != GONE)
		FAIL("the record of %s is there, but its time is over", k->image->id);
}

/* ---- images that get variants later ---- */

static void do_queue(void)
{
	struct image *image = some_image(is_only_stored);
	struct remake_entry entry = { .attempts = (unsigned)draw(3),
		                      .only_missing = draw(2),
		                      .names = "a b.avif" },
			    read;
	uint64_t faults = disk.faults_seen;

	if (!image || remake_queue_make(&world.store))
		return;
	int put_err = remake_queue_put(&world.store, image->id, &entry),
	    get_err = remake_queue_get(&world.store, image->id, &read);
	bool was_there = remake_queue_has(&world.store, image->id);

	if (disk.faults_seen == faults &&
	    (put_err || get_err || !was_there || read.attempts != entry.attempts ||
	     read.only_missing != entry.only_missing || strcmp(read.names, entry.names) != 0))
		FAIL("%s is not in the queue", image->id);
	int err = remake_queue_drop(&world.store, image->id);
	bool is_left = remake_queue_has(&world.store, image->id);

	if (disk.faults_seen == faults && (err || is_left))
		FAIL("%s is in the queue, but was dropped", image->id);
}

/* ---- steps ---- */

void take_step(void)
{
	static void (*const acts[])(void) = {
		do_put,     do_put,       do_put,     do_replace, do_remove,  do_delete,
		do_recover, do_expire,    do_recover, do_key,     do_retry,   do_forget_keys,
		do_queue,   do_set_aside, do_rot,     do_tool,    count_some, count_some,
	};

	put.count = 0;
	acts[draw(COUNT_OF(acts))]();
	if (draw(8) == 0)
		check_all(false);
	if (draw(16) == 0) {
		end_life();
		if (draw(4) == 0)
			remove_by_tool(false);
		begin_life();
	}
}

void expire_all(void)
{
	struct expiry_due due[LIST_MAX];
	int count;

	disk.now_ns += 2 * EXPIRES_S * NS_PER_S;
	do {
		count = expiry_list(&world.store, disk.now_ns / NS_PER_S, due, LIST_MAX);
		for (int k = 0; k < count; k++) {
			for (unsigned i = 0; i < world.images; i++)
				if (strcmp(world.image[i].id, due[k].id) == 0)
					begin_removal(&world.image[i]);
			(void)store_remove(&world.store, STORE_IMAGES, due[k].id);
			expiry_forget(&world.store, due[k].id, due[k].expires);
		}
	} while (count == LIST_MAX);
	if (expiry_list(&world.store, disk.now_ns / NS_PER_S, due, LIST_MAX))
		FAIL("what has ended cannot be listed, or is left");
}

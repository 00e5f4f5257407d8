/*
 * promises.c - the store on a disk in memory, with faults: lost power, killed processes, errors,
 * a full disk, short writes, bits that change.
 *
 * A seed draws what clients do and when faults happen. The program knows which states of each image
 * are allowed: acknowledged and not removed is there and equal; removed stays removed; the rest is
 * there as a whole, or not at all. It compares them while a process lives and after each end of
 * one. At last, without faults, nothing is left behind: no directory, no descriptor, no wrong
 * figure.
 *
 * A seed that fails is repeated without each of its faults, until all that are left are needed.
 *
 * usage: store [--seed N] [--count N] [--only MASK] [--loud]
 * MASK has a bit for each fault of the seed.
 */
#include "promises.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "disk.h"
#include "seam.h"
#include "store/checksum.h"
#include "store/directory.h"
#include "store/expiry.h"
#include "store/key_record.h"
#include "store/spool.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/store_verify.h"

#define IMAGES_MAX 48
#define KEYS_MAX 16
#define STEPS 40
#define CALLS_PER_SEED 900 /* about what a run makes: faults happen before */
#define CALLS_OF_START 60
#define VERSIONS_MAX 7
#define FILES 3
#define DATA_MAX 1800
#define BATCH_MAX 3
#define GONE 1U /* of the states of an image: a bit each; bit v: version v is there */

struct image {
	char id[ULID_LENGTH + 1];
	unsigned states, spooled; /* that are allowed */
	unsigned version;         /* the newest one that was tried */
	bool is_unspooled;        /* but not flushed */
	uint64_t expires;
};

struct key {
	struct key_record record;
	char ids[1][ULID_LENGTH + 1];
	unsigned states; /* GONE, OPEN, SETTLED */
};
enum { KEY_OPEN = 2, KEY_SETTLED = 4 };

bool promises_are_loud;

static struct {
	struct random random;
	unsigned steps; /* that are left */
	struct store store;
	struct image image[IMAGES_MAX];
	struct key key[KEYS_MAX];
	unsigned images, keys;
	jmp_buf end;
	char fault[512]; /* "": none */
} world;

_Noreturn void promise_broken(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(world.fault, sizeof world.fault, format, args);
	va_end(args);
	longjmp(world.end, 1);
}
#define FAIL promise_broken

/* Prints what happens, if somebody wants to read it. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	va_list args;

	if (!promises_are_loud)
		return;
	va_start(args, format);
	fprintf(stderr, "call %" PRIu64 ": ", disk.calls);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static uint64_t draw(uint64_t below)
{
	return random_next(&world.random) % below;
}

/* ---- contents ---- */

static const char *const names[FILES] = { "a.jpg", "b.jpg", "image.json" };

struct content {
	char data[FILES][DATA_MAX + 512];
	size_t size[FILES];
	char sum[FILES][CHECKSUM_LENGTH + 1];
};

/* a.jpg is that of the first version: a remade image keeps some of its files. */
static void make_content(struct content *c, const struct image *image, unsigned version)
{
	for (unsigned f = 0; f < 2; f++) {
		uint64_t number = (uint64_t)(unsigned char)image->id[ULID_LENGTH - 1] << 8 |
		                  (unsigned char)image->id[ULID_LENGTH - 2];
		struct random random = { number << 8 | (f ? version : 0) << 1 | f };

		c->size[f] = 1 + random_next(&random) % DATA_MAX;
		for (size_t i = 0; i < c->size[f]; i++)
			c->data[f][i] = (char)random_next(&random);
		checksum_of(c->data[f], c->size[f], c->sum[f]);
	}
	int length = snprintf(
		c->data[2], sizeof c->data[2],
		"{\"id\":\"%s\",\"width\":1,\"height\":1,\"variants\":{\"a\":{\"bytes\":%zu},"
		"\"b\":{\"bytes\":%zu}},\"record\":{\"upload\":{\"bytes\":9,\"token\":\"site\"},"
		"\"variants\":{\"a\":{\"xxh128\":\"%s\"},\"b\":{\"xxh128\":\"%s\"}}",
		image->id, c->size[0], c->size[1], c->sum[0], c->sum[1]);
	char *end = c->data[2] + length;

	checksum_of(c->data[2], (size_t)length, c->sum[2]);
	length += snprintf(end, sizeof c->data[2] - (size_t)length, ",\"xxh128\":\"%s\"}}\n",
	                   c->sum[2]);
	c->size[2] = (size_t)length;
	checksum_of(c->data[2], c->size[2], c->sum[2]);
}

static uint64_t bytes_of(const struct image *image, unsigned version)
{
	static struct content c;

	make_content(&c, image, version);
	return c.size[0] + c.size[1];
}

struct bytes {
	char data[DATA_MAX + 512];
	ssize_t size;
};

/* Reads an open file, and closes it. */
static const struct bytes *read_bytes(int fd)
{
	static struct bytes b;

	b.size = pread(fd, b.data, sizeof b.data, 0);
	close(fd);
	return &b;
}

static bool is_equal(const struct bytes *b, const struct content *c, unsigned file)
{
	return b->size == (ssize_t)c->size[file] &&
	       memcmp(b->data, c->data[file], c->size[file]) == 0;
}

/* Returns the version of an open file, and closes it. The first file has one version. */
static unsigned version_of_file(const struct image *image, unsigned file, int fd)
{
	static struct content c;
	const struct bytes *b = read_bytes(fd);
	unsigned version = image->version;

	make_content(&c, image, version);
	while (version && !is_equal(b, &c, file))
		make_content(&c, image, --version);
	if (!version)
		FAIL("%s of %s has wrong bytes", names[file], image->id);
	return version;
}

/* Returns the version that is there as a whole, or 0: none is. */
static unsigned look_at(const struct image *image)
{
	unsigned found = 0, version[FILES] = { 0 };
	uint64_t size;

	for (unsigned f = 0; f < FILES; f++) {
		int fd = store_open_file(&world.store, image->id, names[f], &size);

		if (fd < 0 && fd != -ENOENT)
			FAIL("%s of %s cannot be opened: %s", names[f], image->id, strerror(-fd));
		if (fd < 0)
			continue;
		version[f] = version_of_file(image, f, fd);
		found++;
	}
	if (found && found < FILES)
		FAIL("%s has %u of %d files", image->id, found, FILES);
	if (version[1] != version[2])
		FAIL("%s has files of the versions %u and %u", image->id, version[1], version[2]);
	return version[1];
}

/* ---- checks: without faults, and nobody notices them ---- */

static void check_image(struct image *image)
{
	unsigned version = look_at(image), state = version ? 1U << version : GONE;

	if (!(image->states & state))
		FAIL(version ? "%s is there, version %u, but must not be"
		             : "%s is gone, but was acknowledged",
		     image->id, version);
	if (disk.has_lost_power) /* what was there is on the disk, the rest is not */
		image->states = state;
}

static void check_spooled(struct image *image)
{
	static struct content c;
	struct spool_names spooled;
	uint64_t size;
	int fd = spool_open(&world.store, image->id, &size, &spooled);
	unsigned state = fd == -ENOENT ? GONE : 2;

	/* One that may be gone may also lack a file: recovery looks for the image first. */
	if (fd == -EINVAL && image->spooled & GONE) {
		image->is_unspooled &= !disk.has_lost_power;
		return;
	}
	if (fd < 0 && fd != -ENOENT)
		FAIL("the original of %s cannot be read: %s", image->id, strerror(-fd));
	make_content(&c, image, 1);
	if (fd >= 0 && !is_equal(read_bytes(fd), &c, 0))
		FAIL("the original of %s has wrong bytes", image->id);
	if (!(image->spooled & state))
		FAIL(state == GONE ? "the original of %s is gone, but was acknowledged"
		                   : "the original of %s is there, but must not be",
		     image->id);
	if (!disk.has_lost_power)
		return;
	image->spooled = state;
	image->is_unspooled = false;
}

static void check_key(struct key *k)
{
	struct key_record r = k->record;
	int err = key_record_read(&world.store, &r);
	unsigned state = err ? GONE : r.is_settled ? KEY_SETTLED : KEY_OPEN;

	if (!err && (r.count != 1 || strcmp(r.id[0], k->ids[0]) != 0))
		FAIL("a record of a key has other ids than were written");
	if (!err)
		pool_put(r.id);
	if (!(k->states & state))
		FAIL("the record of a key is %s, which must not be", state == GONE ? "gone"
		                                                     : state == KEY_OPEN
		                                                             ? "open"
		                                                             : "settled");
	if (disk.has_lost_power)
		k->states = state;
}

static void check_all(void)
{
	unsigned open = disk_open_count();

	disk.is_quiet = true;
	for (unsigned i = 0; i < world.images; i++) {
		check_image(&world.image[i]);
		check_spooled(&world.image[i]);
	}
	for (unsigned i = 0; i < world.keys; i++)
		check_key(&world.key[i]);
	if (disk_open_count() != open)
		FAIL("%u descriptors are open instead of %u", disk_open_count(), open);
	disk.has_lost_power = false;
	disk.is_quiet = false;
}

/* ---- what clients do ---- */

static struct image *new_image(void)
{
	struct image *image = &world.image[world.images++];

	ulid_bound(disk.now_ns / NS_PER_MS, '0', image->id);
	snprintf(image->id + ULID_LENGTH - 2, 3, "%02u", world.images);
	image->states = image->spooled = GONE;
	image->version = 1;
	image->expires = 0;
	return image;
}

/* Returns a random image that certainly is there, or NULL: is_spooled: as an original; otherwise
 * stored, without one. */
static struct image *some_image(bool is_spooled)
{
	struct image *some = NULL;
	unsigned seen = 0;

	for (unsigned i = 0; i < world.images; i++) {
		struct image *image = &world.image[i];
		unsigned states = is_spooled ? image->spooled : image->states;

		if (states & GONE || states & (states - 1) ||
		    (!is_spooled && image->spooled != GONE))
			continue;
		if (draw(++seen) == 0)
			some = image;
	}
	return some;
}

static unsigned version_of(const struct image *image)
{
	return (unsigned)__builtin_ctz(image->states);
}

/* Puts items, with the states that are allowed meanwhile, and afterwards. */
struct put {
	struct store_item item[BATCH_MAX];
	struct store_file file[BATCH_MAX][FILES];
	struct content content[BATCH_MAX];
	struct image *image[BATCH_MAX];
	char note[BATCH_MAX][SPOOL_NOTE_MAX];
	unsigned count;
};
static struct put put;

static void add_item(struct image *image, enum store_place place)
{
	unsigned n = put.count++;
	struct content *c = &put.content[n];
	struct store_file *file = put.file[n];
	static const struct spool_names spooled = { .file = "x.jpg", .token = "site" };

	make_content(c, image, image->version);
	for (unsigned f = 0; f < FILES; f++)
		file[f] = (struct store_file){ names[f], c->data[f], c->size[f], c->sum[f] };
	put.image[n] = image;
	put.item[n] = (struct store_item){ .place = place,
		                           .id = image->id,
		                           .file = file,
		                           .file_count = FILES,
		                           .token = "site",
		                           .expires = image->expires,
		                           .old_fd = -1 };
	if (place == STORE_SPOOL) {
		size_t length = spool_note(put.note[n], &spooled);

		file[0].name = STORE_ORIGINAL;
		file[0].sum = NULL;
		file[1] = (struct store_file){ SPOOL_NOTE, put.note[n], length, NULL };
		put.item[n].file_count = 2;
		image->spooled |= 2;
		return;
	}
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

static void put_all(void)
{
	uint64_t faults = disk.faults_seen;

	store_put(&world.store, put.item, put.count);
	for (unsigned n = 0; n < put.count; n++) {
		struct image *image = put.image[n];
		bool is_spool = put.item[n].place == STORE_SPOOL;
		unsigned *states = is_spool ? &image->spooled : &image->states,
			 made = is_spool ? 2 : 1U << image->version;

		tell("put %s at place %d: %s", image->id, (int)put.item[n].place,
		     strerror(-put.item[n].err));
		if (!put.item[n].err) {
			note_flush();
			*states = made;
			continue;
		}
		if (disk.faults_seen == faults)
			FAIL("a put failed without a fault: %s", strerror(-put.item[n].err));
		/* One error leaves nothing behind that can be seen. Lost power may show it again.
		 */
		disk.is_quiet = true;
		if (disk.faults_seen == faults + 1 && !is_spool && look_at(image) == image->version)
			FAIL("%s is there, although its put failed", image->id);
		disk.is_quiet = false;
	}
	put.count = 0;
}

static void do_put(void)
{
	unsigned count = 1 + (unsigned)draw(BATCH_MAX);

	for (unsigned i = 0; i < count && world.images < IMAGES_MAX; i++) {
		struct image *image = new_image();

		if (draw(4) == 0)
			image->expires = disk.now_ns / NS_PER_S + 1 + draw(3 * 3600);
		add_item(image, draw(3) ? STORE_IMAGES : STORE_SPOOL);
	}
	if (put.count)
		put_all();
}

static void do_replace(void)
{
	struct image *image = some_image(false);

	if (!image || image->version == VERSIONS_MAX)
		return;
	int fd = store_open_directory(&world.store, image->id);

	if (fd < 0)
		return;
	image->version++;
	add_item(image, STORE_REPLACED);
	put.item[0].old_fd = fd;
	put_all();
	close(fd);
}

static void do_remove(void)
{
	struct store_batch batch = { .count = 0 };
	struct image *some[BATCH_MAX] = { NULL };
	unsigned count = 1 + (unsigned)draw(BATCH_MAX);

	for (unsigned i = 0; i < count && (some[batch.count] = some_image(false)); i++) {
		struct image *image = some[batch.count];

		image->states |= GONE;
		int err = store_batch_add(&batch, &world.store, STORE_IMAGES, image->id);

		if (err == -ENOENT)
			FAIL("%s is not there to be removed", image->id);
		if (err)
			break;
	}
	if (store_batch_end(&batch, &world.store) || !batch.count)
		return;
	note_flush();
	for (unsigned i = 0; i < batch.count && some[i]; i++) {
		some[i]->states = GONE;
		tell("removed %s", some[i]->id);
	}
}

/* As recovery does: the image is stored, then its original goes. A crash may bring that back. */
static void do_recover(void)
{
	struct image *image = some_image(true);

	if (!image || spool_set_attempts(&world.store, image->id, (unsigned)draw(3)))
		return;
	if (image->states & GONE) {
		if (image->states != GONE)
			return; /* a crash has left both possible: recovery would look */
		add_item(image, STORE_IMAGES);
		put_all();
		if (image->states & GONE)
			return;
	}
	image->spooled |= GONE;
	int err = store_unspool(&world.store, image->id);

	image->is_unspooled = !err;
	tell("unspool %s: %s", image->id, strerror(-err));
}

/* As recovery does with an original that it cannot use. */
static void do_set_aside(void)
{
	struct image *image = some_image(true);

	if (!image || draw(4))
		return;
	image->spooled |= GONE;
	int err = spool_quarantine(&world.store, image->id, "it cannot be used");

	image->is_unspooled = !err;
	tell("set aside %s: %s", image->id, strerror(-err));
}

static void do_expire(void)
{
	static struct expiry_due due[IMAGES_MAX];
	uint64_t now = (disk.now_ns += draw(4 * 3600) * NS_PER_S) / NS_PER_S;
	uint64_t faults = disk.faults_seen;
	int count = expiry_list(&world.store, now, due, IMAGES_MAX);

	for (unsigned i = 0; i < world.images && count >= 0 && disk.faults_seen == faults; i++) {
		struct image *image = &world.image[i];
		bool is_listed = false;

		for (int k = 0; k < count; k++)
			is_listed |= strcmp(due[k].id, image->id) == 0;
		if (image->expires && image->expires <= now && !(image->states & GONE) &&
		    !is_listed)
			FAIL("%s has expired, but is not listed", image->id);
		if (is_listed && (!image->expires || image->expires > now))
			FAIL("%s is listed as expired, but is not", image->id);
		if (!is_listed || draw(2))
			continue;
		unsigned before = image->states;

		image->states |= GONE;
		int err = store_remove(&world.store, STORE_IMAGES, image->id);

		if (err == -ENOENT && !(before & GONE))
			FAIL("%s is not there to be removed", image->id);
		if (!err)
			image->states = GONE;
		if (!err)
			note_flush();
		if (err == -ENOENT)
			expiry_forget(&world.store, image->id, image->expires);
	}
}

static int verify(const struct image *image, const char *name, int *fd)
{
	struct store_found found;

	store_find(&world.store, image->id, name, &found);
	*fd = found.fd;
	return found.fd < 0 ? found.fd : store_verify(&world.store, image->id, name, &found);
}

/* A bit changes on the disk. That is noticed, and the image is removed. */
static void do_rot(void)
{
	struct image *image = some_image(false);
	const char *name = names[draw(FILES)];
	int fd;

	if (!image || draw(4))
		return;
	disk.is_quiet = true;
	int before = verify(image, name, &fd);

	if (before)
		FAIL("%s of %s is said to have rotted: %s", name, image->id, strerror(-before));
	disk_flip(disk_file(fd), draw(UINT32_MAX));
	close(fd);
	int err = verify(image, name, &fd);

	close(fd);
	if (!err)
		FAIL("%s of %s has rotted, which nobody notices", name, image->id);
	if (store_remove(&world.store, STORE_IMAGES, image->id))
		FAIL("%s cannot be removed", image->id);
	note_flush();
	image->states = GONE;
	disk.is_quiet = false;
}

/* An upload with an Idempotency-Key: the record, the image, and the record once more. */
static void do_key(void)
{
	if (world.keys == KEYS_MAX || world.images == IMAGES_MAX)
		return;
	struct image *image = new_image();
	struct key *k = &world.key[world.keys++];

	*k = (struct key){ .states = GONE | KEY_OPEN };
	memcpy(k->ids[0], image->id, sizeof k->ids[0]);
	memset(k->record.name, (int)world.keys, sizeof k->record.name);
	k->record.created = disk.now_ns / NS_PER_S;
	k->record.count = 1;
	k->record.id = k->ids;
	if (key_record_write(&world.store, &k->record))
		return;
	add_item(image, STORE_IMAGES);
	put_all();
	if (image->states & GONE)
		return;
	k->states = KEY_OPEN; /* the flush of the image covers it */
	k->record.is_settled = true;
	k->states |= KEY_SETTLED;
	int err = key_record_write(&world.store, &k->record);

	tell("settled the key of %s: %s", image->id, strerror(-err));
}

/* An upload that is sent again. */
static void do_retry(void)
{
	struct key *k = world.keys ? &world.key[draw(world.keys)] : NULL;
	uint64_t faults = disk.faults_seen;

	if (!k || k->states & GONE)
		return;
	struct key_record r = k->record;
	int err = key_record_read(&world.store, &r);

	if (err && disk.faults_seen == faults)
		FAIL("the record of a key cannot be read");
	if (!err)
		pool_put(r.id);
}

/* ---- lives ---- */

/* Compares the figures with what is there. What could not be counted is counted again. */
static void check_usage(void)
{
	struct usage_sum sum = { 0, 0 };

	disk.is_quiet = true;
	usage_check_recount(&world.store.usage, &world.store);
	while (usage_count(&world.store.usage, &world.store, IMAGES_MAX) == 0)
		;
	struct usage_total total = usage_total(&world.store.usage);

	for (unsigned i = 0; i < world.images; i++) {
		unsigned version = look_at(&world.image[i]);

		sum.images += version != 0;
		sum.bytes += version ? bytes_of(&world.image[i], version) : 0;
	}
	disk.is_quiet = false;
	if (!total.is_complete || total.all.images != sum.images || total.all.bytes != sum.bytes)
		FAIL("the figures are %" PRIu64 " images, %" PRIu64 " bytes instead of %" PRIu64
		     ", %" PRIu64,
		     total.all.images, total.all.bytes, sum.images, sum.bytes);
}

static void begin_life(void)
{
	unsigned cleared;
	uint64_t faults = disk.faults_seen;

	while (store_open(&world.store, DISK_ROOT, true, &cleared)) {
		if (disk.faults_seen == faults)
			FAIL("the store does not open");
		if (disk_open_count())
			FAIL("a store that does not open leaves %u descriptors", disk_open_count());
		faults = disk.faults_seen;
	}
	tell("a process begins%s", disk.has_lost_power ? " after a loss of power" : "");
	check_all();
	usage_switch(&world.store.usage, &world.store, true); /* reads those of a clean stop */
	check_usage();
}

static void end_life(void)
{
	check_usage();
	usage_save(&world.store.usage, &world.store);
	store_close(&world.store);
	if (disk_open_count())
		FAIL("%u descriptors are open after the end", disk_open_count());
}

static void step(void)
{
	static void (*const acts[])(void) = { do_put,    do_put,     do_put,       do_replace,
		                              do_remove, do_recover, do_expire,    do_recover,
		                              do_key,    do_retry,   do_set_aside, do_rot };

	put.count = 0;
	acts[draw(COUNT_OF(acts))]();
	if (draw(8) == 0)
		check_all();
	if (draw(16) == 0) {
		end_life();
		begin_life();
	}
}

static void expect_empty(const char *directory)
{
	DIR *dir = directory_list(world.store.root_fd, directory);

	if (!dir)
		FAIL("%s cannot be listed: %s", directory, strerror(errno));
	const char *name = directory_next(dir);

	if (name)
		FAIL("%s/%s is left", directory, name);
	closedir(dir);
}

/* The faults have stopped: what they left goes. */
static void settle(void)
{
	disk.fault_count = 0;
	disk.full_until = 0;
	check_all();
	for (unsigned i = 0; i < 3; i++) {
		disk.now_ns += 2 * STORE_TIDY_NS;
		store_put(&world.store, NULL, 0); /* clears the trash */
	}
	disk.is_quiet = true;
	expect_empty(STORE_TRASH_DIRECTORY);
	disk.is_quiet = false;
	end_life();
	begin_life();
	disk.is_quiet = true;
	expect_empty(STORE_INCOMING_DIRECTORY);
	expect_empty(STORE_TRASH_DIRECTORY);
	disk.is_quiet = false;
	end_life();
}

/* ---- seeds ---- */

/* Power is often lost soon after a kill: then a start has changed what is not flushed. */
static void draw_faults(struct disk_fault *fault, unsigned *count)
{
	uint64_t at = 0;

	*count = (unsigned)draw(DISK_FAULTS_MAX);
	for (unsigned i = 0; i < *count; i++) {
		bool is_soon = i && fault[i - 1].kind == DISK_KILL && draw(2);

		at += 1 + draw(is_soon ? CALLS_OF_START : 2 * CALLS_PER_SEED / (*count + 1));
		fault[i] = (struct disk_fault){
			.at = at,
			.kind = is_soon ? DISK_POWER : (enum disk_fault_kind)draw(DISK_SHORT + 1),
			.seed = draw(UINT32_MAX),
		};
	}
}

/* Runs a seed with the faults of this mask. Returns whether all promises were kept. */
static bool run(uint64_t seed, unsigned mask)
{
	struct disk_fault fault[DISK_FAULTS_MAX];
	unsigned count;

	memset(&world, 0, sizeof world);
	world.random.state = seed;
	world.steps = STEPS;
	disk_begin(seed);
	draw_faults(fault, &count);
	for (unsigned i = 0; i < count; i++)
		if (mask >> i & 1)
			disk.fault[disk.fault_count++] = fault[i];
	if (setjmp(world.end) == 0) {
		(void)setjmp(disk.life);
		put.count = 0;
		begin_life();
		while (world.steps) {
			world.steps--;
			step();
		}
		settle();
	}
	disk_close_all();
	disk_end();
	return !world.fault[0];
}

static void print_faults(uint64_t seed, unsigned mask)
{
	static const char *const words[] = {
#define X(kind, word) word,
		DISK_FAULTS(X)
#undef X
	};
	struct disk_fault fault[DISK_FAULTS_MAX];
	unsigned count;

	world.random.state = seed;
	draw_faults(fault, &count);
	for (unsigned i = 0; i < count; i++)
		if (mask >> i & 1)
			printf("  fault %u: %s at call %" PRIu64 "\n", i, words[fault[i].kind],
			       fault[i].at);
}

/* Leaves out each fault without which the seed still fails. */
static void explain(uint64_t seed, unsigned mask)
{
	for (unsigned i = 0; i < DISK_FAULTS_MAX; i++)
		if (mask >> i & 1 && !run(seed, mask & ~(1U << i)))
			mask &= ~(1U << i);
	(void)run(seed, mask);
	printf("seed %" PRIu64 ": %s\n", seed, world.fault);
	print_faults(seed, mask);
	printf("repeat: build/plain/world/store --seed %" PRIu64 " --only %#x --loud\n", seed,
	       mask);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 1000, calls = 0;
	unsigned mask = (1U << DISK_FAULTS_MAX) - 1;

	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;

		if (strcmp(argv[i], "--loud") == 0)
			promises_are_loud = true;
		else if (has_value && strcmp(argv[i], "--count") == 0)
			count = strtoull(argv[++i], NULL, 10);
		else if (has_value && strcmp(argv[i], "--only") == 0)
			mask = (unsigned)strtoul(argv[++i], NULL, 0), count = 1;
		else if (has_value && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 10);
		else
			return fprintf(stderr, "usage: store [--seed N] [--count N] [--only MASK] "
			                       "[--loud]\n"),
			       2;
	}
	for (uint64_t end = seed + count; seed < end; seed++) {
		if (!run(seed, mask)) {
			explain(seed, mask);
			return 1;
		}
		calls += disk.calls;
	}
	printf("%" PRIu64 " seeds, %.1f calls each: all promises kept\n", count,
	       (double)calls / (double)count);
	for (const struct seam *s = seams; s; s = s->next)
		if (!s->calls)
			printf("seam %s was never called\n", s->name);
	return 0;
}

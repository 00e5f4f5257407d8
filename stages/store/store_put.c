/*
 * store_put.c - writes images: files in one directory, and one rename. Another rename, to the
 * trash, makes an image invisible; its files go after a flush. Any thread; calls may block.
 *
 * flush_note: an image that must survive a loss of power is written, flushed, renamed and flushed
 * again. So a name never refers to missing files, and a response never to a missing name.
 * syncfs(2) flushes a whole batch at once, files and directories. The alternative is fdatasync(2)
 * of each file and fsync(2) of each directory, with writing started early. That takes five flushes
 * of the disk's cache for each image (ext4, four files); syncfs takes two for each batch. On a
 * virtual disk whose flushes cost next to nothing, at 8 images a batch, an image took 0.34 ms with
 * fdatasync and 0.27 ms with syncfs. syncfs also needs no open descriptors. Its price: it also
 * flushes other programs' data on the same file system.
 *
 * Files are written by plain system calls. io_uring, with open, write and close linked for all four
 * files of an image, took 50 us of CPU time where plain calls take 32 us (tmpfs, Linux 6.18): the
 * kernel hands every creation of a file to one of its threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "checksum.h"
#include "directory.h"
#include "expiry.h"
#include "log/log.h"
#include "store.h"
#include "store_find.h"
#include "store_path.h"
#include "stored_image.h"

#define SHARD_ATTEMPTS_MAX 3

/* ---- the trash ---- */

/* Writes a name for the trash that no other item has. */
static void trash_name(struct store *s, const char *id, char name[STORE_PATH_MAX])
{
	uint64_t serial = atomic_fetch_add_explicit(&s->trash_serial, 1, memory_order_relaxed);

	snprintf(name, STORE_PATH_MAX, "%.*s.%llu", ULID_LENGTH, id, (unsigned long long)serial);
}

static int rename_to_trash(struct store *s, enum store_place place, const char *id, const char *to)
{
	char from[STORE_PATH_MAX];
	int err = -ENOENT;

	if (place == STORE_SPOOL)
		return directory_rename(s->spool_fd, id, s->trash_fd, to, 0);
	for (unsigned layout = 0; layout < STORE_LAYOUT_COUNT && err == -ENOENT; layout++) {
		store_image_path(from, (enum store_layout)layout, id, NULL);
		err = directory_rename(s->root_fd, from, s->trash_fd, to, 0);
		if (err == -ENOTDIR) /* a link is no part of the store */
			err = -ENOENT;
	}
	return err;
}

/* Moves it, and takes it out of the figures. They are in doubt if image.json cannot be read, or is
 * damaged. */
static int move_counted(struct store *s, enum store_place place, const char *id, const char *to)
{
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	bool is_counted = place == STORE_IMAGES && usage_total(&s->usage).is_on,
	     is_known = is_counted && stored_info_load(&info, s, id, data) == 0,
	     is_sound = is_known && (!info.has_record || stored_info_is_sound(&info, data, id));

	pthread_mutex_lock(&s->usage.lock);
	int err = rename_to_trash(s, place, id, to);

	if (!err && is_known)
		usage_removed(&s->usage, id, info.token, stored_info_bytes(&info));
	pthread_mutex_unlock(&s->usage.lock);
	if (!err && is_counted && !is_sound)
		usage_doubt(&s->usage);
	return err;
}

/* Makes the image invisible by one rename. Its name in the trash is written to `to`. Returns 0,
 * -ENOENT or -errno. */
static int move_to_trash(struct store *s, enum store_place place, const char *id,
                         char to[STORE_PATH_MAX])
{
	unsigned openings = atomic_load(&s->openings);

	trash_name(s, id, to);
	int err = move_counted(s, place, id, to);

	if (err == -ENOENT && store_check_missing(s, openings))
		err = move_counted(s, place, id, to);
	return err;
}

static void tidy_later(struct store *s)
{
	atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
}

/* Removes an item of the trash. If that fails, the next tidy() tries again. */
static void remove_from_trash(struct store *s, const char *name)
{
	int err = directory_remove(s->trash_fd, name);

	/* The image is invisible already; tidy() removes the rest. */
	if (!err || err == -ENOENT)
		return;
	log_warning("store: cannot remove " STORE_TRASH_DIRECTORY "/%s: %s; retrying later", name,
	            strerror(-err));
	tidy_later(s);
}

/* The same with an image that ends by this, so that nobody has to look for it when its time comes.
 */
static void clear_trash(struct store *s, const char *name)
{
	expiry_forget_removed(s, name);
	remove_from_trash(s, name);
}

/* Clears the trash when that is due. One thread at a time. */
static void tidy(struct store *s)
{
	uint64_t due = atomic_load(&s->tidy_ns), now;
	unsigned ignored = 0;

	if (!due || (now = clock_ns()) < due ||
	    !atomic_compare_exchange_strong(&s->tidy_ns, &due, 0))
		return;
	/* Flush first, for the same reason as in store_batch_end(). */
	if (store_flush(s) || directory_clear(s->trash_fd, &ignored))
		atomic_store(&s->tidy_ns, now + STORE_TIDY_NS);
}

/* ---- batches ---- */

int store_batch_add(struct store_batch *b, struct store *s, enum store_place place, const char *id)
{
	assert(b->count < STORE_BATCH_MAX);
	int err = move_to_trash(s, place, id, b->image[b->count].in_trash);

	/* Without a flush, a loss of power may bring back what is in the trash already. */
	if (err == -ENOENT && atomic_load(&s->tidy_ns)) {
		int flush_err = store_flush(s);

		return flush_err ? flush_err : err;
	}
	if (err)
		return err;
	memcpy(b->image[b->count++].id, id, ULID_LENGTH + 1);
	return 0;
}

/* Removes the image's directories of time if they are empty. Those of now are about to be used. */
static void remove_shards(struct store *s, const char *id)
{
	char now[ULID_LENGTH + 1], shard[STORE_PATH_MAX];

	ulid_new(now);
	if (strncmp(id, now, STORE_SPAN_LENGTH + STORE_SHARD_LENGTH) >= 0)
		return;
	store_shard_path(shard, STORE_BY_TIME, id);
	if (directory_unlink(s->root_fd, shard, AT_REMOVEDIR))
		return;
	shard[STORE_SPAN_LENGTH] = '\0';
	(void)directory_unlink(s->root_fd, shard, AT_REMOVEDIR); /* it stays if it is not empty */
}

int store_batch_end(const struct store_batch *b, struct store *s)
{
	/* Flush before the files go; otherwise the name might return without them. */
	int err = b->count ? store_flush(s) : 0;

	if (err) {
		tidy_later(s);
		return err;
	}
	for (unsigned i = 0; i < b->count; i++) {
		clear_trash(s, b->image[i].in_trash);
		remove_shards(s, b->image[i].id);
	}
	return 0;
}

int store_remove(struct store *s, enum store_place place, const char *id)
{
	struct store_batch b = { .count = 0 };
	int err = store_batch_add(&b, s, place, id);

	if (err)
		return err;
	err = store_batch_end(&b, s);
	tidy(s);
	return err;
}

int store_unspool(struct store *s, const char *id)
{
	char name[STORE_PATH_MAX];
	int err = move_to_trash(s, STORE_SPOOL, id, name);

	if (!err)
		clear_trash(s, name);
	return err;
}

/* ---- files ---- */

/* Allocates the file's blocks in one piece. It makes a flush cheaper; without a flush, it would
 * cost half as much as the whole rest. */
static int allocate(int fd, size_t size)
{
	while (size && fallocate(fd, 0, 0, (off_t)size))
		if (errno != EINTR)
			return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	return 0;
}

/* A file system without attributes is as good: see store_tag(). */
static void write_tag(int fd, const char *sum, uint64_t expires)
{
	char tag[STORE_TAG_MAX];
	int length = store_tag_write(tag, sum, expires);

	if (length == CHECKSUM_LENGTH || length == STORE_EXPIRING_TAG_LENGTH)
		(void)fsetxattr(fd, STORE_TAG_ATTRIBUTE, tag, (size_t)length, 0);
}

static int write_file(int at, const struct store_file *file, mode_t mode, uint64_t expires,
                      bool is_flushed)
{
	int err = 0;
	int fd = openat(at, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	if (is_flushed)
		err = allocate(fd, file->size);
	if (!err)
		err = directory_write_all(fd, file->data, file->size);
	if (file->sum && !err)
		write_tag(fd, file->sum, expires);
	if (close(fd) && errno != EINTR && !err)
		err = -errno; /* some file systems report a full disk here */
	return err;
}

/* ---- an image that is stored already: its directory is exchanged for another one ---- */

static bool is_among(const struct store_item *item, const char *name)
{
	for (unsigned i = 0; i < item->file_count; i++)
		if (strcmp(item->file[i].name, name) == 0)
			return true;
	return false;
}

/* Links those files of item->old_fd into the directory that are not among the item's. Returns 0,
 * -ESTALE if they are being removed, or -errno. */
static int link_others(int directory_fd, const struct store_item *item)
{
	DIR *dir = directory_list(item->old_fd, ".");
	const char *name;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (name = directory_next(dir)))
		if (!is_among(item, name) && linkat(item->old_fd, name, directory_fd, name, 0))
			err = errno == ENOENT ? -ESTALE : -errno; /* its files are being removed */
	closedir(dir);
	return err;
}

/* Exchanges .incoming/ID and the image. renameat2(2) with RENAME_EXCHANGE gives each directory the
 * other's name in one step, so a name always refers to a whole image. Returns 0, -ENOENT if there
 * is no such image, -ESTALE if its directory is not old_fd any more (-1: any), or -errno. */
static int exchange_directories(struct store *s, const char *id, int old_fd)
{
	int err = -ENOENT;
	char path[STORE_PATH_MAX];

	for (unsigned layout = 0; layout < STORE_LAYOUT_COUNT && err == -ENOENT; layout++) {
		store_image_path(path, (enum store_layout)layout, id, NULL);
		err = old_fd < 0 ? 0 : directory_check_same(s->root_fd, path, old_fd);
		if (!err)
			err = directory_rename(s->incoming_fd, id, s->root_fd, path,
			                       RENAME_EXCHANGE);
	}
	return err;
}

/* ---- items ---- */

/* Makes the directory in which the image's directory will be, and the one above it. */
static int make_shard(struct store *s, const char *id)
{
	char shard[STORE_PATH_MAX];

	store_shard_path(shard, STORE_BY_TIME, id);
	return directory_make_all(s->root_fd, shard, IMAGE_DIRECTORY);
}

/* Renames the item to its place, or exchanges it with the image that is there. The figures change
 * in the same step. */
static int rename_counted(struct store *s, const struct store_item *item)
{
	bool is_replaced = item->place == STORE_REPLACED;
	uint64_t bytes = is_replaced ? item->new_bytes : 0;
	char to[STORE_PATH_MAX];
	int err;

	store_image_path(to, STORE_BY_TIME, item->id, NULL);
	for (unsigned i = 0; i < item->file_count && !is_replaced; i++)
		if (strcmp(item->file[i].name, STORED_IMAGE) != 0)
			bytes += item->file[i].size;
	pthread_mutex_lock(&s->usage.lock);
	if (is_replaced)
		err = exchange_directories(s, item->id, item->old_fd);
	else
		err = directory_rename(s->incoming_fd, item->id, s->root_fd, to, 0);
	if (!err && is_replaced)
		usage_removed(&s->usage, item->id, item->token, item->old_bytes);
	if (!err)
		usage_stored(&s->usage, item->id, item->token, bytes);
	pthread_mutex_unlock(&s->usage.lock);
	return err;
}

/* Renames the item to its place; creates the shard's directory if it is missing. */
static int publish(struct store *s, const struct store_item *item)
{
	if (item->place == STORE_SPOOL)
		return directory_rename(s->incoming_fd, item->id, s->spool_fd, item->id, 0);
	int err = rename_counted(s, item);

	/* store_batch_end() may remove the directory when it is empty. */
	for (unsigned i = 0;
	     i < SHARD_ATTEMPTS_MAX && err == -ENOENT && item->place == STORE_IMAGES; i++) {
		err = make_shard(s, item->id);
		if (!err)
			err = rename_counted(s, item);
	}
	return err;
}

/* Removes the files of an unpublished item; if that fails, moves them to the trash. */
static void discard(struct store *s, const char *id)
{
	int err = directory_remove(s->incoming_fd, id);
	char name[STORE_PATH_MAX];

	if (!err || err == -ENOENT)
		return;
	trash_name(s, id, name);
	if (renameat(s->incoming_fd, id, s->trash_fd, name) == 0)
		remove_from_trash(s, name); /* not the note of an image that was replaced */
	else
		log_warning("store: cannot remove " STORE_INCOMING_DIRECTORY
		            "/%s: %s; it stays until the next start",
		            id, strerror(-err));
}

/* Writes all files of the item into the incoming directory. */
static int write_item(struct store *s, const struct store_item *item)
{
	mode_t mode = item->place == STORE_SPOOL ? PRIVATE_DIRECTORY : IMAGE_DIRECTORY;
	int err = 0;

	if (mkdirat(s->incoming_fd, item->id, mode)) {
		if (errno != EEXIST)
			return -errno;
		discard(s, item->id); /* an earlier attempt could not remove it */
		if (mkdirat(s->incoming_fd, item->id, mode))
			return -errno;
	}
	int fd = directory_open(s->incoming_fd, item->id, 0);

	if (fd < 0)
		return fd;
	for (unsigned i = 0; i < item->file_count && !err; i++) {
		bool is_private = item->place == STORE_SPOOL ||
		                  strcmp(item->file[i].name, STORE_ORIGINAL) == 0;

		err = write_file(fd, &item->file[i], is_private ? PRIVATE_FILE : IMAGE_FILE,
		                 item->expires, s->survives_power);
	}
	if (!err && item->place == STORE_REPLACED)
		err = link_others(fd, item);
	close(fd);
	if (item->expires && item->place == STORE_IMAGES && !err)
		err = expiry_note(s, item->id, item->expires);
	return err;
}

/* Makes one flush for all items without an error; if it fails, they all get its error. */
static void flush_items(struct store *s, struct store_item *items, unsigned count)
{
	unsigned good = 0;

	for (unsigned i = 0; i < count; i++)
		good += !items[i].err;
	int err = good ? store_flush(s) : 0;

	for (unsigned i = 0; i < count && err; i++)
		items[i].err = items[i].err ? items[i].err : err;
}

/* Moves a published item that may not survive a loss of power to the trash; tidy() removes it after
 * a flush. A replaced image is exchanged back: the files of both stay until then. */
static void withdraw(struct store *s, const struct store_item *item)
{
	char name[STORE_PATH_MAX];

	if (item->place == STORE_REPLACED) {
		(void)exchange_directories(s, item->id, -1);
		trash_name(s, item->id, name);
		(void)renameat(s->incoming_fd, item->id, s->trash_fd, name);
		usage_doubt(&s->usage);
	} else {
		(void)move_to_trash(s, item->place, item->id, name);
	}
	tidy_later(s);
}

/* Makes one attempt. */
static void put(struct store *s, struct store_item *items, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		items[i].is_published = false;
		items[i].err = write_item(s, &items[i]);
	}
	flush_items(s, items, count);
	for (unsigned i = 0; i < count; i++) {
		items[i].err = items[i].err ? items[i].err : publish(s, &items[i]);
		items[i].is_published = !items[i].err;
	}
	flush_items(s, items, count);
	for (unsigned i = 0; i < count; i++)
		if (items[i].err && items[i].is_published)
			withdraw(s, &items[i]);
		else if (items[i].err || items[i].place == STORE_REPLACED)
			discard(s, items[i].id);
}

void store_put(struct store *s, struct store_item *items, unsigned count)
{
	unsigned openings = atomic_load(&s->openings);

	put(s, items, count);
	for (unsigned i = 0; i < count; i++)
		if (items[i].err == -ENOENT && store_check_missing(s, openings))
			put(s, &items[i], 1);
	tidy(s);
}

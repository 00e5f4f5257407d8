/*
 * store_put.c - writes images: files in one directory, and one rename. Any thread; calls may block.
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

#include "base/clock.h"
#include "checksum.h"
#include "directory.h"
#include "expiry.h"
#include "log/log.h"
#include "store.h"
#include "store_check.h"
#include "store_find.h"
#include "store_path.h"
#include "store_replace.h"
#include "store_trash.h"
#include "stored_image.h"

#define SHARD_ATTEMPTS_MAX 3

/* Allocates the file's blocks in one piece. It makes a flush cheaper; without a flush, it would
 * cost half as much as the whole rest. */
static int allocate(int fd, size_t size)
{
	while (size && fallocate(fd, 0, 0, (off_t)size))
		if (errno != EINTR)
			return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	return 0;
}

static mode_t file_mode(const struct store_item *item, const struct store_file *file)
{
	return item->place == STORE_SPOOL || strcmp(file->name, STORE_ORIGINAL) == 0 ? PRIVATE_FILE
	                                                                             : IMAGE_FILE;
}

/* A file system without attributes is as good: see store_tag(). */
static void write_tag(int fd, const char *sum, uint64_t expires)
{
	char tag[STORE_TAG_MAX];
	int length = CHECKSUM_LENGTH;

	if (expires)
		length = snprintf(tag, sizeof tag, "%s.%010" PRIu64, sum, expires);
	if (length == CHECKSUM_LENGTH || length == STORE_EXPIRING_TAG_LENGTH)
		(void)fsetxattr(fd, STORE_TAG_ATTRIBUTE, expires ? tag : sum, (size_t)length, 0);
}

static int write_file(int at, const struct store_file *file, mode_t mode, uint64_t expires,
                      bool is_flushed)
{
	const char *data = file->data;
	size_t left = file->size;
	int err = 0;
	int fd = openat(at, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	if (is_flushed)
		err = allocate(fd, left);
	while (left && !err) {
		ssize_t n = write(fd, data, left);

		if (n < 0 && errno != EINTR)
			err = -errno;
		else if (n == 0)
			err = -EIO;
		else if (n > 0) {
			data += n;
			left -= (size_t)n;
		}
	}
	if (file->sum && !err)
		write_tag(fd, file->sum, expires);
	if (close(fd) && errno != EINTR && !err)
		err = -errno; /* some file systems report a full disk here */
	return err;
}

/* Makes the directory in which the image's directory will be, and the one above it. */
static int make_shard(struct store *s, const char *id)
{
	char shard[STORE_PATH_MAX];

	store_shard_path(shard, STORE_BY_TIME, id);
	shard[STORE_SPAN_LENGTH] = '\0';
	if (mkdirat(s->root_fd, shard, IMAGE_DIRECTORY) && errno != EEXIST)
		return -errno;
	shard[STORE_SPAN_LENGTH] = '/';
	return mkdirat(s->root_fd, shard, IMAGE_DIRECTORY) && errno != EEXIST ? -errno : 0;
}

/* Renames the item to its place. The figures change in the same step. */
static int rename_into_place(struct store *s, const struct store_item *item, const char *to)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < item->file_count; i++)
		if (strcmp(item->file[i].name, STORED_IMAGE) != 0)
			bytes += item->file[i].size;
	usage_lock(&s->usage);
	int err = renameat(s->incoming_fd, item->id, s->root_fd, to) ? -errno : 0;

	if (!err)
		usage_stored(&s->usage, item->id, item->token, bytes);
	usage_unlock(&s->usage);
	return err;
}

/* The same for an image that is stored already. */
static int exchange(struct store *s, const struct store_item *item)
{
	usage_lock(&s->usage);
	int err = store_exchange(s, item->id, item->old_fd);

	if (!err) {
		usage_removed(&s->usage, item->id, item->token, item->old_bytes);
		usage_stored(&s->usage, item->id, item->token, item->new_bytes);
	}
	usage_unlock(&s->usage);
	return err;
}

/* Renames the item to its place; creates the shard's directory if it is missing. */
static int publish(struct store *s, const struct store_item *item)
{
	const char *id = item->id;
	char to[STORE_PATH_MAX];

	if (item->place == STORE_REPLACED)
		return exchange(s, item);
	if (item->place == STORE_SPOOL)
		return renameat(s->incoming_fd, id, s->spool_fd, id) ? -errno : 0;
	store_image_path(to, STORE_BY_TIME, id, NULL);
	int err = rename_into_place(s, item, to);

	/* store_batch.c may remove the directory when it is empty. */
	for (unsigned i = 0; i < SHARD_ATTEMPTS_MAX && err == -ENOENT; i++) {
		err = make_shard(s, id);
		if (!err)
			err = rename_into_place(s, item, to);
	}
	return err;
}

/* Writes all files of the item into the incoming directory. */
static int write_item(struct store *s, const struct store_item *item)
{
	mode_t mode = item->place == STORE_SPOOL ? PRIVATE_DIRECTORY : IMAGE_DIRECTORY;
	int err = 0;

	if (mkdirat(s->incoming_fd, item->id, mode))
		return -errno;
	int fd = openat(s->incoming_fd, item->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < item->file_count && !err; i++)
		err = write_file(fd, &item->file[i], file_mode(item, &item->file[i]), item->expires,
		                 s->survives_power);
	if (!err && item->place == STORE_REPLACED)
		err = store_link_others(fd, item);
	close(fd);
	if (item->expires && item->place == STORE_IMAGES && !err)
		err = expiry_note(s, item->id, item->expires);
	return err;
}

/* Makes one flush for all items without an error; if it fails, they all get its error. */
static void flush_items(struct store *s, struct store_item *items, unsigned count)
{
	bool has_good = false;

	for (unsigned i = 0; i < count; i++)
		has_good |= !items[i].err;
	if (!has_good)
		return;
	int err = store_flush(s);

	for (unsigned i = 0; i < count && err; i++)
		if (!items[i].err)
			items[i].err = err;
}

/* Removes the files of an unpublished item; if that fails, moves them to the trash. */
static void discard(struct store *s, const char *id)
{
	int err = directory_remove(s->incoming_fd, id);
	char name[STORE_PATH_MAX];

	if (!err || err == -ENOENT) {
		leftovers_forget(&s->leftovers, id);
		return;
	}
	store_trash_name(s, id, name);
	if (renameat(s->incoming_fd, id, s->trash_fd, name) == 0) {
		store_clear_trash(s, name);
		return;
	}
	bool is_noted = leftovers_add(&s->leftovers, id);

	log_warning("store: cannot remove " STORE_INCOMING_DIRECTORY "/%s: %s; %s", id,
	            strerror(-err), is_noted ? "retrying later" : "it stays until the next start");
	if (is_noted)
		atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
}

/* Removes a published item that may not survive a loss of power. */
static void withdraw(struct store *s, const struct store_item *item)
{
	char name[STORE_PATH_MAX];

	if (item->place == STORE_REPLACED) {
		store_withdraw_exchange(s, item->id);
		return;
	}
	if (store_move_to_trash(s, item->place, item->id, name) == 0)
		store_clear_trash(s, name);
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
		if (items[i].err)
			continue;
		items[i].err = publish(s, &items[i]);
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
	store_tidy(s);
}

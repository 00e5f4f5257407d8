/*
 * store.c - directories, files and one rename. Any thread; calls may block.
 *
 * Knows nothing of requests. Names are unique (ULIDs), so no two images ever share a path, not even
 * a temporary one.
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
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "directory.h"
#include "log/log.h"
#include "store_check.h"
#include "store_room.h"

#define INCOMING ".incoming"
#define TRASH ".trash"
#define SPOOL ".spool"
#define QUARANTINE ".quarantine"
/* Trailing characters of the id. They are random, so images spread over 1024 directories. */
#define SHARD_LENGTH 2
#define PATH_SIZE 96
#define TIDY_NS NS_PER_S /* between attempts to clear the trash */

/* Modes of what is created, less the umask. Originals have the place where a picture was taken,
 * which variants have not: only the daemon's user reads them. */
#define ROOT_MODE 0750
#define PRIVATE_DIRECTORY 0700
#define PRIVATE_FILE 0600
#define IMAGE_DIRECTORY 0755
#define IMAGE_FILE 0644

/* ---- paths ---- */

static void shard_path(char path[PATH_SIZE], const char *id)
{
	snprintf(path, PATH_SIZE, "%s", id + ULID_LENGTH - SHARD_LENGTH);
}

static void image_path(char path[PATH_SIZE], const char *id, const char *name)
{
	int n = snprintf(path, PATH_SIZE, "%s/%s%s%s", id + ULID_LENGTH - SHARD_LENGTH, id,
	                 name ? "/" : "", name ? name : "");

	assert(n > 0 && n < PATH_SIZE);
}

/* ---- opening ---- */

/* Stores of earlier versions have directories that others can read. */
static void make_private(int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) || !(st.st_mode & ~(mode_t)PRIVATE_DIRECTORY & 0777))
		return;
	if (fchmod(fd, PRIVATE_DIRECTORY))
		log_warning("store: cannot make %s private: %s; other users may read it", name,
		            strerror(errno));
	else
		log_notice("store: %s had the mode %o, and has %o now", name,
		           (unsigned)st.st_mode & 0777, PRIVATE_DIRECTORY);
}

int store_open_directories(struct store *s)
{
	const struct {
		int *fd;
		const char *name;
	} directory[] = {
		{ &s->incoming_fd, INCOMING },
		{ &s->trash_fd, TRASH },
		{ &s->spool_fd, SPOOL },
		{ &s->quarantine_fd, QUARANTINE },
	};

	for (size_t i = 0; i < COUNT_OF(directory); i++) {
		*directory[i].fd = directory_open(s->root_fd, directory[i].name, PRIVATE_DIRECTORY);
		if (*directory[i].fd < 0)
			return *directory[i].fd;
		make_private(*directory[i].fd, directory[i].name);
	}
	return 0;
}

int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared)
{
	int err = 0;

	*s = (struct store){ .root_fd = -1,
		             .incoming_fd = -1,
		             .trash_fd = -1,
		             .spool_fd = -1,
		             .quarantine_fd = -1,
		             .survives_power = survives_power,
		             .checking = PTHREAD_MUTEX_INITIALIZER };
	*cleared = 0;
	s->root = strdup(root);
	if (!s->root)
		return -ENOMEM;
	s->root_fd = directory_open(AT_FDCWD, root, ROOT_MODE);
	if (s->root_fd < 0) {
		err = s->root_fd;
		log_error("server.root = %s: %s%s", root, strerror(-err), directory_advice(err));
		goto fail;
	}
	if (flock(s->root_fd, LOCK_EX | LOCK_NB)) {
		err = -errno;
		log_error("server.root = %s: %s", root,
		          errno == EWOULDBLOCK ? "another darkroomd uses this store"
		                               : strerror(errno));
		goto fail;
	}
	err = store_open_directories(s);
	if (!err)
		err = directory_clear(s->incoming_fd, cleared);
	if (!err || err == -EAGAIN)
		err = directory_clear(s->trash_fd, cleared);
	if (err == -EAGAIN) {
		atomic_store(&s->tidy_ns, clock_ns() + TIDY_NS);
		err = 0;
	}
	if (!err && faccessat(s->incoming_fd, ".", W_OK, 0))
		err = -errno;
	store_look(s);
	if (!err)
		return 0;
	log_error("server.root = %s: cannot prepare the store: %s%s", root, strerror(-err),
	          directory_advice(err));
fail:
	store_close(s);
	return err;
}

void store_close(struct store *s)
{
	const int fd[] = { s->quarantine_fd, s->spool_fd, s->trash_fd, s->incoming_fd, s->root_fd };

	for (size_t i = 0; i < COUNT_OF(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	free(s->root);
}

void store_survive_power(struct store *s, bool survives_power)
{
	atomic_store(&s->survives_power, survives_power);
}

/* ---- writing ---- */

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

static int write_file(int at, const struct store_file *file, mode_t mode, bool is_flushed)
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
	if (close(fd) && errno != EINTR && !err)
		err = -errno; /* some file systems report a full disk here */
	return err;
}

/* Renames the item to its place; creates the shard's directory if it is missing. */
static int publish(struct store *s, const struct store_item *item)
{
	const char *id = item->id;
	char to[PATH_SIZE], shard[PATH_SIZE];

	if (item->place == STORE_SPOOL)
		return renameat(s->incoming_fd, id, s->spool_fd, id) ? -errno : 0;
	image_path(to, id, NULL);
	if (renameat(s->incoming_fd, id, s->root_fd, to) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	shard_path(shard, id);
	if (mkdirat(s->root_fd, shard, IMAGE_DIRECTORY) && errno != EEXIST)
		return -errno;
	return renameat(s->incoming_fd, id, s->root_fd, to) ? -errno : 0;
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
		err = write_file(fd, &item->file[i], file_mode(item, &item->file[i]),
		                 s->survives_power);
	close(fd);
	return err;
}

/* Flushes the file system; see flush_note. */
static int flush(struct store *s)
{
	if (!s->survives_power)
		return 0;
	atomic_fetch_add_explicit(&s->flushes, 1, memory_order_relaxed);
	return syncfs(s->root_fd) ? -errno : 0;
}

/* Makes one flush for all items without an error; if it fails, they all get its error. */
static void flush_items(struct store *s, struct store_item *items, unsigned count)
{
	unsigned good = 0;

	for (unsigned i = 0; i < count; i++)
		good += !items[i].err;
	int err = good ? flush(s) : 0;

	for (unsigned i = 0; i < count && err; i++)
		if (!items[i].err)
			items[i].err = err;
}

static void trash_name(struct store *s, const char *id, char name[PATH_SIZE])
{
	uint64_t serial = atomic_fetch_add_explicit(&s->trash_serial, 1, memory_order_relaxed);

	snprintf(name, PATH_SIZE, "%s.%llu", id, (unsigned long long)serial);
}

/* Makes the image invisible by one rename. Its name in the trash is written to `to`. */
static int move_to_trash(struct store *s, enum store_place place, const char *id,
                         char to[PATH_SIZE])
{
	char from[PATH_SIZE];

	if (place == STORE_SPOOL)
		snprintf(from, sizeof from, "%s", id);
	else
		image_path(from, id, NULL);
	trash_name(s, id, to);
	unsigned openings = atomic_load(&s->openings);
	int *at = place == STORE_SPOOL ? &s->spool_fd : &s->root_fd;
	int err = renameat(*at, from, s->trash_fd, to) ? -errno : 0;

	if (err == -ENOENT && store_check_missing(s, openings))
		err = renameat(*at, from, s->trash_fd, to) ? -errno : 0;
	return err;
}

static void clear_trash(struct store *s, const char *name)
{
	int err = directory_remove(s->trash_fd, name);

	/* The image is invisible already; tidy() removes the rest. */
	if (!err || err == -ENOENT)
		return;
	log_warning("store: cannot remove " TRASH "/%s: %s; retrying later", name, strerror(-err));
	atomic_store(&s->tidy_ns, clock_ns() + TIDY_NS);
}

/* Removes the files of an unpublished item; if that fails, moves them to the trash. */
static void discard(struct store *s, const char *id)
{
	int err = directory_remove(s->incoming_fd, id);
	char name[PATH_SIZE];

	if (!err || err == -ENOENT)
		return;
	trash_name(s, id, name);
	if (renameat(s->incoming_fd, id, s->trash_fd, name))
		log_warning("store: cannot remove " INCOMING
		            "/%s: %s; it stays until the next start",
		            id, strerror(-err));
	else
		clear_trash(s, name);
}

/* Clears the trash when tidy_ns is due. One thread at a time. */
static void tidy(struct store *s)
{
	uint64_t due = atomic_load(&s->tidy_ns), now;
	unsigned ignored = 0;

	if (!due || (now = clock_ns()) < due ||
	    !atomic_compare_exchange_strong(&s->tidy_ns, &due, 0))
		return;
	/* Flush first, for the same reason as in store_remove(). */
	if (flush(s) || directory_clear(s->trash_fd, &ignored))
		atomic_store(&s->tidy_ns, now + TIDY_NS);
}

/* Removes a published item that may not survive a loss of power. */
static void withdraw(struct store *s, const struct store_item *item)
{
	char name[PATH_SIZE];

	if (move_to_trash(s, item->place, item->id, name) == 0)
		clear_trash(s, name);
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
		else if (items[i].err)
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

int store_remove(struct store *s, enum store_place place, const char *id)
{
	char name[PATH_SIZE];
	int err = move_to_trash(s, place, id, name);

	if (err)
		return err;
	/* Flush before the files go; otherwise the name might return without them. */
	err = flush(s);
	if (err)
		atomic_store(&s->tidy_ns, clock_ns() + TIDY_NS);
	else
		clear_trash(s, name);
	tidy(s);
	return err;
}

int store_unspool(struct store *s, const char *id)
{
	char name[PATH_SIZE];
	int err = move_to_trash(s, STORE_SPOOL, id, name);

	if (!err)
		clear_trash(s, name);
	return err;
}

/* ---- reading ---- */

int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size)
{
	char path[PATH_SIZE];
	struct stat st;

	image_path(path, id, name);
	unsigned openings = atomic_load(&s->openings);
	int fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0 && store_check_missing(s, openings))
		fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	int err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOENT;

	if (err) {
		close(fd);
		return err;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

bool store_is_spooled(struct store *s, const char *id)
{
	/* An error other than ENOENT counts as spooled: an acknowledged image must not get a
	 * 404. */
	return faccessat(s->spool_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

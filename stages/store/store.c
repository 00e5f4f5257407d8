/*
 * store.c - directories, files and one rename. Knows nothing of requests. Any thread; calls may
 * block.
 *
 * Names are unique (ULIDs), so that no two images ever share a path, not even a temporary one.
 *
 * flush_note: what is to survive a loss of power is written, flushed, renamed, and flushed again:
 * so a name never stands for files that are not there, and an answer never for a name that is not.
 * syncfs(2) flushes a whole batch at once, files and directories. fdatasync(2) of each file and
 * fsync(2) of each directory, with writing begun early, takes five flushes of the disk's cache for
 * each image (ext4, four files) where syncfs takes two for each batch; on a virtual disk whose
 * flushes cost next to nothing, 8 images a batch, an image took 0.34 ms and 0.27 ms. It needs no
 * descriptor to be kept, either. Its price is that other programs' data of the same file system is
 * flushed as well.
 *
 * Files are made by plain calls. The same through io_uring, open, write and close linked for all
 * four files of an image, took 50 us of CPU time where these take 32 (tmpfs, Linux 6.18): whatever
 * creates a file is handed to a thread of the kernel.
 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "log/log.h"

#define INCOMING ".incoming"
#define TRASH ".trash"
#define SPOOL ".spool"
#define QUARANTINE ".quarantine"
#define SHARD_LENGTH \
	2 /* last characters of the id: random, so that images spread over 1024 directories */
#define PATH_SIZE 96
#define TIDY_NS NS_PER_S /* between attempts to remove what could not be removed */

/* ---- ids ---- */

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* Some of the kernel's random numbers, a call for many. */
static void random_take(uint64_t random[2])
{
	static _Thread_local struct {
		uint64_t data[32]; /* 256 bytes never come short once the kernel's pool is
		                      initialised (getrandom(2)) */
		unsigned left;
	} stock;

	if (stock.left < 2) {
		while (getrandom(stock.data, sizeof stock.data, 0) != sizeof stock.data)
			continue;
		stock.left = COUNT_OF(stock.data);
	}
	random[0] = stock.data[--stock.left];
	random[1] = stock.data[--stock.left];
}

void ulid_new(char id[ULID_LENGTH + 1])
{
	struct timespec now;
	uint64_t random[2];

	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;

	random_take(random);
	for (int i = 9; i >= 0; i--, ms >>= 5)
		id[i] = crockford[ms & 31];
	for (int i = 0; i < 16; i++)
		id[10 + i] = crockford[random[i / 8] >> (i % 8 * 5) & 31];
	id[ULID_LENGTH] = '\0';
}

bool ulid_is_valid(const char *text, size_t length)
{
	if (length != ULID_LENGTH)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!text[i] || !strchr(crockford, text[i]))
			return false;
	return true;
}

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

/* Removes a directory with all that is in it; only files are expected there. */
static int remove_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;

	if (fd < 0)
		return unlinkat(at, name, 0) ? -errno : 0;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	return unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

/* What another thread removes meanwhile is no matter. -EAGAIN: something is left, and the log says
 * why. */
static int clear_leftovers(int at, unsigned *cleared)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int result = 0;

	if (!dir) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int err = remove_directory(at, entry->d_name);

		if (err && err != -ENOENT) {
			log_warning("cannot clear the leftover %s: %s", entry->d_name,
			            strerror(-err));
			result = -EAGAIN;
		} else {
			(*cleared)++;
		}
	}
	closedir(dir);
	return result;
}

/* Opens a directory below at, made if it is not there. A descriptor or -errno. */
static int open_directory(int at, const char *name)
{
	if (mkdirat(at, name, 0777) && errno != EEXIST)
		return -errno;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* 0 or -errno. */
static int open_directories(struct store *s)
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
		*directory[i].fd = open_directory(s->root_fd, directory[i].name);
		if (*directory[i].fd < 0)
			return *directory[i].fd;
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
		             .survives_power = survives_power };
	*cleared = 0;
	s->root_fd = open_directory(AT_FDCWD, root);
	if (s->root_fd < 0) {
		log_error("server.root = %s: %s", root, strerror(-s->root_fd));
		return s->root_fd;
	}
	if (flock(s->root_fd, LOCK_EX | LOCK_NB)) {
		err = -errno;
		log_error("server.root = %s: %s", root,
		          errno == EWOULDBLOCK ? "another darkroomd uses it" : strerror(errno));
		goto fail;
	}
	err = open_directories(s);
	if (!err)
		err = clear_leftovers(s->incoming_fd, cleared);
	if (!err || err == -EAGAIN)
		err = clear_leftovers(s->trash_fd, cleared);
	if (err == -EAGAIN) {
		atomic_store(&s->tidy_ns, clock_ns() + TIDY_NS);
		err = 0;
	}
	if (!err && faccessat(s->incoming_fd, ".", W_OK, 0))
		err = -errno;
	if (!err)
		return 0;
	log_error("server.root = %s: cannot be prepared: %s", root, strerror(-err));
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
}

void store_survive_power(struct store *s, bool survives_power)
{
	atomic_store(&s->survives_power, survives_power);
}

/* ---- writing ---- */

/* Takes the file's room at once, in one piece. Only for files that are flushed, which it makes
 * cheaper; else it costs half as much as all the rest. */
static int allocate(int fd, size_t size)
{
	while (size && fallocate(fd, 0, 0, (off_t)size))
		if (errno != EINTR)
			return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	return 0;
}

static int write_file(int at, const struct store_file *file, bool is_flushed)
{
	const char *data = file->data;
	size_t left = file->size;
	int err = 0;
	int fd = openat(at, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

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
		err = -errno; /* some file systems report a full disk only now */
	return err;
}

/* The rename; the shard's directory is made when it is first needed. */
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
	if (mkdirat(s->root_fd, shard, 0777) && errno != EEXIST)
		return -errno;
	return renameat(s->incoming_fd, id, s->root_fd, to) ? -errno : 0;
}

/* All files, into the incoming directory. */
static int write_item(struct store *s, const struct store_item *item)
{
	int err = 0;

	if (mkdirat(s->incoming_fd, item->id, 0777))
		return -errno;
	int fd = openat(s->incoming_fd, item->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < item->file_count && !err; i++)
		err = write_file(fd, &item->file[i], s->survives_power);
	close(fd);
	return err;
}

/* flush_note. 0 or -errno. */
static int flush(struct store *s)
{
	if (!s->survives_power)
		return 0;
	atomic_fetch_add_explicit(&s->flushes, 1, memory_order_relaxed);
	return syncfs(s->root_fd) ? -errno : 0;
}

/* One flush for all items that are well, which are not if it fails. */
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

/* Out of sight by one rename. The name that it has in the trash goes to to. */
static int move_to_trash(struct store *s, enum store_place place, const char *id,
                         char to[PATH_SIZE])
{
	char from[PATH_SIZE];

	if (place == STORE_SPOOL)
		snprintf(from, sizeof from, "%s", id);
	else
		image_path(from, id, NULL);
	trash_name(s, id, to);
	return renameat(place == STORE_SPOOL ? s->spool_fd : s->root_fd, from, s->trash_fd, to)
	               ? -errno
	               : 0;
}

static void clear_trash(struct store *s, const char *name)
{
	int err = remove_directory(s->trash_fd, name);

	/* It is gone for everybody; what is left is cleared later. */
	if (!err || err == -ENOENT)
		return;
	log_warning("removed files stay in " TRASH "/%s for now: %s", name, strerror(-err));
	atomic_store(&s->tidy_ns, clock_ns() + TIDY_NS);
}

/* What was not published. If it cannot be removed, it goes to the trash to be removed later. */
static void discard(struct store *s, const char *id)
{
	int err = remove_directory(s->incoming_fd, id);
	char name[PATH_SIZE];

	if (!err || err == -ENOENT)
		return;
	trash_name(s, id, name);
	if (renameat(s->incoming_fd, id, s->trash_fd, name))
		log_warning("part of an image stays in " INCOMING "/%s until the next start: %s",
		            id, strerror(-err));
	else
		clear_trash(s, name);
}

/* Clears the trash of what could not be removed, some time later. One thread at a time. */
static void tidy(struct store *s)
{
	uint64_t due = atomic_load(&s->tidy_ns), now;
	unsigned ignored = 0;

	if (!due || (now = clock_ns()) < due ||
	    !atomic_compare_exchange_strong(&s->tidy_ns, &due, 0))
		return;
	/* Flushed first, for the reason that store_remove() has. */
	if (flush(s) || clear_leftovers(s->trash_fd, &ignored))
		atomic_store(&s->tidy_ns, now + TIDY_NS);
}

/* It is visible, but may not survive: it is as if it had never been. */
static void withdraw(struct store *s, const struct store_item *item)
{
	char name[PATH_SIZE];

	if (move_to_trash(s, item->place, item->id, name) == 0)
		clear_trash(s, name);
}

void store_put(struct store *s, struct store_item *items, unsigned count)
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
	tidy(s);
}

int store_remove(struct store *s, enum store_place place, const char *id)
{
	char name[PATH_SIZE];
	int err = move_to_trash(s, place, id, name);

	if (err)
		return err;
	/* Before its files go: else the name might come back without them. */
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
	int fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
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
	/* If that cannot be told, nobody should hear that an acknowledged image is not there. */
	return faccessat(s->spool_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/*
 * store.c - the open store: its directories, its free space, and what happens if somebody deletes
 * them. Any thread; calls may block.
 *
 * The daemon holds its directories open, so it would go on in deleted ones.
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "conf/conf_source.h"
#include "directory.h"
#include "log/log.h"
#include "stray.h"

#define LOOK_NS NS_PER_S /* between looks at the free space while there is too little */
/* The error of a root that only a restart can open. */
#define OUTSIDE (-EXDEV)
#define STRAYS_SHOWN_MAX 100
#define ROOT_MODE 0750 /* of a new root, less the umask */

/* ---- the disk ---- */

int store_flush(struct store *s)
{
	if (!s->survives_power)
		return 0;
	atomic_fetch_add_explicit(&s->flushes, 1, memory_order_relaxed);
	return syncfs(s->root_fd) ? -errno : 0;
}

uint64_t store_look(struct store *s)
{
	struct statvfs fs;
	uint64_t bytes = UINT64_MAX;
	bool is_read_only = false;

	if (fstatvfs(s->root_fd, &fs) == 0) {
		is_read_only = fs.f_flag & ST_RDONLY;
		bytes = fs.f_files && !fs.f_favail ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	/* Relaxed: independent values. */
	atomic_store_explicit(&s->is_read_only, is_read_only, memory_order_relaxed);
	atomic_store_explicit(&s->free_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&s->looked_ns, clock_ns(), memory_order_relaxed);
	return bytes;
}

/* Returns the free bytes; looks again if the last time is long ago. */
static uint64_t look_again(struct store *s)
{
	return clock_ns() - atomic_load_explicit(&s->looked_ns, memory_order_relaxed) >= LOOK_NS
	               ? store_look(s)
	               : atomic_load_explicit(&s->free_bytes, memory_order_relaxed);
}

bool store_has_room(struct store *s, uint64_t floor, uint64_t *free_bytes)
{
	*free_bytes = atomic_load_explicit(&s->free_bytes, memory_order_relaxed);
	if (*free_bytes < floor)
		*free_bytes = look_again(s);
	return *free_bytes >= floor;
}

const char *store_not_writable(struct store *s, uint64_t floor, bool looks, const char **why)
{
	uint64_t bytes =
		looks ? look_again(s) : atomic_load_explicit(&s->free_bytes, memory_order_relaxed);

	if (atomic_load_explicit(&s->is_read_only, memory_order_relaxed)) {
		*why = "the file system of server.root is read-only";
		return "storage-read-only";
	}
	if (bytes >= (floor ? floor : 1))
		return NULL;
	*why = "the file system of server.root has no inode, or not limits.free_bytes, left";
	return "storage-full";
}

/* ---- opening ---- */

/* The root comes first. */
static const struct {
	size_t at;
	const char *name;
} directories[] = {
	{ offsetof(struct store, root_fd), NULL },
	{ offsetof(struct store, incoming_fd), STORE_INCOMING_DIRECTORY },
	{ offsetof(struct store, trash_fd), STORE_TRASH_DIRECTORY },
	{ offsetof(struct store, spool_fd), STORE_SPOOL_DIRECTORY },
	{ offsetof(struct store, quarantine_fd), STORE_QUARANTINE_DIRECTORY },
};

static int *fd_of(struct store *s, size_t i)
{
	return (int *)(void *)((char *)s + directories[i].at);
}

static void init(struct store *s, bool survives_power)
{
	*s = (struct store){ .survives_power = survives_power,
		             .checking = PTHREAD_MUTEX_INITIALIZER };
	usage_init(&s->usage);
	for (size_t i = 0; i < COUNT_OF(directories); i++)
		*fd_of(s, i) = -1;
}

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

/* The operator's path may have links. Returns a descriptor, or -1 with errno set. */
static int open_root(const char *path)
{
	return openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the directories below root_fd, and makes those that are missing. Returns 0, or -errno with
 * what is open in *s. */
static int open_directories(struct store *s)
{
	for (size_t i = 1; i < COUNT_OF(directories); i++) {
		int *fd = fd_of(s, i);

		*fd = directory_open(s->root_fd, directories[i].name, PRIVATE_DIRECTORY);
		if (*fd < 0)
			return *fd;
		make_private(*fd, directories[i].name);
	}
	return 0;
}

/* Returns what an operator may do about the directory that cannot be opened, as the end of a
 * message, or "". */
static const char *advice_of(int err)
{
	if (err == -EROFS || err == -EACCES)
		return "; under systemd the unit needs ReadWritePaths=, and the daemon's user the "
		       "right to write: MOVING THE STORE in darkroomd(8)";
	return err == -ENOENT ? "; the directory above it must exist" : "";
}

/* Returns err, logged. */
static int log_root(const struct store *s, const char *what, int err)
{
	log_error("%sserver.root = %s: %s%s%s", conf_place("server.root"), s->root, what,
	          strerror(-err), advice_of(err));
	return err;
}

/* Returns 0, or -errno with the reason logged. */
static int lock_root(const struct store *s)
{
	if (flock(s->root_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	int err = -errno;

	if (err != -EWOULDBLOCK)
		return log_root(s, "", err);
	log_error("%sserver.root = %s: another darkroomd uses this store",
	          conf_place("server.root"), s->root);
	return err;
}

struct strays {
	unsigned shown, others;
};

static void log_stray(const char *path, void *arg)
{
	struct strays *strays = arg;

	if (strays->shown < STRAYS_SHOWN_MAX) {
		log_notice("store: %s: darkroomd did not make it; it stays", path);
		strays->shown++;
	} else {
		strays->others++;
	}
}

/* Makes what it finds durable, and clears what a crash left. A process that was killed may have
 * flushed neither an image that is there nor a name in the trash: what follows relies on both. What
 * cannot be removed goes later. Returns 0 or -errno. */
static int clear_leftovers(struct store *s, unsigned *cleared)
{
	int err = store_flush(s);

	if (!err)
		err = directory_clear(s->incoming_fd, cleared);
	if (!err || err == -EAGAIN)
		err = directory_clear(s->trash_fd, cleared);
	if (err == -EAGAIN)
		atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
	return err == -EAGAIN ? 0 : err;
}

int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared)
{
	struct strays strays = { .shown = 0 };
	int err;

	init(s, survives_power);
	*cleared = 0;
	s->root = root;
	if (mkdirat(AT_FDCWD, root, ROOT_MODE) == 0 || errno == EEXIST)
		s->root_fd = open_root(root);
	err = s->root_fd < 0 ? log_root(s, "", -errno) : lock_root(s);
	if (err)
		goto fail;
	err = open_directories(s);
	if (!err)
		err = clear_leftovers(s, cleared);
	if (!err && faccessat(s->incoming_fd, ".", W_OK, 0))
		err = -errno;
	store_look(s);
	if (!err) {
		stray_find(s->root_fd, "", STRAY_AT_START, log_stray, &strays);
		if (strays.others)
			log_notice("store: darkroomd did not make %u others; they stay",
			           strays.others);
		return 0;
	}
	log_root(s, "cannot prepare the store: ", err);
fail:
	store_close(s);
	return err;
}

/* A process that root runs changes to the user and the group that own the store's root, and cannot
 * change back. So users who can write into the store cannot use its rights. Returns 0 or -errno. */
static int become_owner(const struct store *s)
{
	struct stat st;

	if (fstat(s->root_fd, &st))
		return -errno;
	if (geteuid() != 0 || st.st_uid == 0)
		return 0;
	return setgroups(0, NULL) || setresgid(st.st_gid, st.st_gid, st.st_gid) ||
	                       setresuid(st.st_uid, st.st_uid, st.st_uid)
	               ? -errno
	               : 0;
}

static int attach(const struct store *s, int *fd, const char *name, mode_t mode)
{
	*fd = directory_open(s->root_fd, name, mode);
	return *fd < 0 ? *fd : 0;
}

int store_attach(struct store *s, const char *root)
{
	init(s, true);
	s->root = root;
	s->root_fd = open_root(root);
	int err = s->root_fd < 0 ? -errno : 0;

	if (!err)
		err = become_owner(s);
	/* Each start makes a spool. A copy may lack the others. */
	if (!err)
		err = attach(s, &s->spool_fd, STORE_SPOOL_DIRECTORY, 0);
	if (!err)
		err = attach(s, &s->trash_fd, STORE_TRASH_DIRECTORY, PRIVATE_DIRECTORY);
	if (!err)
		err = attach(s, &s->quarantine_fd, STORE_QUARANTINE_DIRECTORY, PRIVATE_DIRECTORY);
	if (!err)
		return 0;
	store_close(s);
	s->root_fd = -1;
	return err;
}

void store_close(struct store *s)
{
	for (size_t i = COUNT_OF(directories); i-- > 0;)
		if (*fd_of(s, i) >= 0)
			close(*fd_of(s, i));
	usage_fini(&s->usage);
}

void store_survive_power(struct store *s, bool survives_power)
{
	atomic_store(&s->survives_power, survives_power);
}

/* ---- directories that are deleted while the daemon serves ---- */

static bool is_deleted(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Returns whether the open root is the one at its path. A root that was only moved away counts. */
static bool is_root_current(const struct store *s)
{
	struct stat open, named;

	if (is_deleted(s->root_fd) || fstat(s->root_fd, &open))
		return false;
	return stat(s->root, &named) ||
	       (open.st_dev == named.st_dev && open.st_ino == named.st_ino);
}

/* Opens the directories at the path of the root. Returns 0 or -errno. */
static int open_again(const struct store *s, struct store *fresh)
{
	int err;

	init(fresh, false);
	if (is_root_current(s)) { /* its lock stays */
		fresh->root_fd = fcntl(s->root_fd, F_DUPFD_CLOEXEC, 0);
		if (fresh->root_fd < 0)
			return -errno;
	} else {
		fresh->root_fd = open_root(s->root);
		if (fresh->root_fd < 0 || flock(fresh->root_fd, LOCK_EX | LOCK_NB))
			return -errno;
	}
	err = open_directories(fresh);
	if (!err && faccessat(fresh->incoming_fd, ".", W_OK, 0))
		err = -errno;
	return err;
}

/* Makes `to` another descriptor of what `from` has open. */
static int replace(int from, int to)
{
	while (dup3(from, to, O_CLOEXEC) < 0)
		if (errno != EINTR && errno != EBUSY)
			return -errno;
	return 0;
}

/* Returns whether only a restart helps: a mount of the service manager still has the deleted root,
 * or only the sandbox forbids to open the new one. Landlock allows faccessat(). */
static bool is_outside(const struct store *s, int err)
{
	struct stat named;

	if (stat(s->root, &named) == 0 && named.st_nlink == 0)
		return true;
	return err == -EACCES &&
	       (faccessat(AT_FDCWD, s->root, R_OK | W_OK | X_OK, 0) == 0 || errno == EROFS);
}

static void lose(struct store *s, int err)
{
	int lost = is_outside(s, err) ? OUTSIDE : err;
	int was = atomic_exchange(&s->lost, lost);

	if (was == 0 || (lost == OUTSIDE && was != OUTSIDE))
		log_error("store: server.root = %s was deleted: %s; responding 503 until %s",
		          s->root, strerror(-err),
		          lost == OUTSIDE ? "a restart: the sandbox covers the deleted directory "
		                            "only"
		                          : "it is back");
}

static bool restore(struct store *s)
{
	struct store fresh;
	int err = open_again(s, &fresh);

	/* The root comes last: a thread that sees it also sees the others. */
	for (size_t i = COUNT_OF(directories); i-- > 0 && !err;)
		err = replace(*fd_of(&fresh, i), *fd_of(s, i));
	store_close(&fresh);
	if (err) {
		lose(s, err);
		return false;
	}
	atomic_store(&s->lost, 0);
	atomic_fetch_add(&s->openings, 1);
	log_notice("store: server.root = %s was deleted; using the directory that is there now",
	           s->root);
	return true;
}

bool store_is_lost(const struct store *s)
{
	return atomic_load(&s->lost) != 0;
}

bool store_must_restart(const struct store *s)
{
	return atomic_load(&s->lost) == OUTSIDE;
}

const char *store_lost_reason(const struct store *s)
{
	return store_must_restart(s) ? "server.root was deleted, and a new one needs a restart"
	                             : "server.root was deleted";
}

bool store_check(struct store *s)
{
	pthread_mutex_lock(&s->checking);
	bool is_good = is_root_current(s);

	for (size_t i = 1; i < COUNT_OF(directories) && is_good; i++)
		is_good = !is_deleted(*fd_of(s, i));
	is_good = is_good || restore(s);
	pthread_mutex_unlock(&s->checking);
	return is_good;
}

bool store_check_missing(struct store *s, unsigned openings)
{
	/* Behind the lock, an opening by another thread is complete and counted. */
	return store_check(s) && atomic_load(&s->openings) != openings;
}

/* store_check.c - notices deleted directories by their last link. Any thread. */
#include "store_check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "log/log.h"

/* The error of a root that only a restart can open. */
#define OUTSIDE (-EXDEV)

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

static bool is_whole(const struct store *s)
{
	return is_root_current(s) && !is_deleted(s->incoming_fd) && !is_deleted(s->trash_fd) &&
	       !is_deleted(s->spool_fd) && !is_deleted(s->quarantine_fd);
}

/* Opens the directories at the path of the root. Returns 0 or -errno. */
static int open_again(const struct store *s, struct store *fresh)
{
	int err;

	*fresh = (struct store){ .root_fd = -1,
		                 .incoming_fd = -1,
		                 .trash_fd = -1,
		                 .spool_fd = -1,
		                 .quarantine_fd = -1 };
	if (is_root_current(s)) { /* its lock stays */
		fresh->root_fd = fcntl(s->root_fd, F_DUPFD_CLOEXEC, 0);
		if (fresh->root_fd < 0)
			return -errno;
	} else {
		fresh->root_fd = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fresh->root_fd < 0 || flock(fresh->root_fd, LOCK_EX | LOCK_NB))
			return -errno;
	}
	err = store_open_directories(fresh);
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

/* The root comes last: a thread that sees it also sees the others. */
static int replace_all(const struct store *s, const struct store *fresh)
{
	const struct {
		int from, to;
	} pairs[] = {
		{ fresh->incoming_fd, s->incoming_fd }, { fresh->trash_fd, s->trash_fd },
		{ fresh->spool_fd, s->spool_fd },       { fresh->quarantine_fd, s->quarantine_fd },
		{ fresh->root_fd, s->root_fd },
	};
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(pairs) && !err; i++)
		err = replace(pairs[i].from, pairs[i].to);
	return err;
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

	if (!err)
		err = replace_all(s, &fresh);
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
	bool is_good = is_whole(s) || restore(s);

	pthread_mutex_unlock(&s->checking);
	return is_good;
}

bool store_check_missing(struct store *s, unsigned openings)
{
	/* Behind the lock, an opening by another thread is complete and counted. */
	return store_check(s) && atomic_load(&s->openings) != openings;
}

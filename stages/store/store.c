/*
 * store.c - directories, files and one rename. Any thread; calls may block.
 *
 * Knows nothing of requests. Names are unique (ULIDs), so no two images ever share a path, not even
 * a temporary one.
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "checksum.h"
#include "conf/conf_places.h"
#include "directory.h"
#include "expiry.h"
#include "log/log.h"
#include "store_check.h"
#include "store_path.h"
#include "store_room.h"
#include "store_trash.h"
#include "stored_image.h"
#include "stored_info.h"

#define ROOT_MODE 0750 /* of a new root, less the umask */

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
		{ &s->incoming_fd, STORE_INCOMING_DIRECTORY },
		{ &s->trash_fd, STORE_TRASH_DIRECTORY },
		{ &s->spool_fd, STORE_SPOOL_DIRECTORY },
		{ &s->quarantine_fd, STORE_QUARANTINE_DIRECTORY },
	};

	for (size_t i = 0; i < COUNT_OF(directory); i++) {
		*directory[i].fd = directory_open(s->root_fd, directory[i].name, PRIVATE_DIRECTORY);
		if (*directory[i].fd < 0)
			return *directory[i].fd;
		make_private(*directory[i].fd, directory[i].name);
	}
	return 0;
}

/* Returns err, logged. */
static int log_root(const struct store *s, const char *what, int err, const char *advice)
{
	log_error("%sserver.root = %s: %s%s%s", conf_place("server.root"), s->root, what,
	          strerror(-err), advice);
	return err;
}

/* Returns 0, or -errno with the reason logged. */
static int lock_root(const struct store *s)
{
	if (flock(s->root_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	int err = -errno;

	if (err != -EWOULDBLOCK)
		return log_root(s, "", err, "");
	log_error("%sserver.root = %s: another darkroomd uses this store",
	          conf_place("server.root"), s->root);
	return err;
}

int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared)
{
	int err;

	*s = (struct store){ .root_fd = -1,
		             .incoming_fd = -1,
		             .trash_fd = -1,
		             .spool_fd = -1,
		             .quarantine_fd = -1,
		             .survives_power = survives_power,
		             .checking = PTHREAD_MUTEX_INITIALIZER,
		             .leftovers = LEFTOVERS_NONE };
	*cleared = 0;
	usage_init(&s->usage);
	s->root = strdup(root);
	if (!s->root)
		return -ENOMEM;
	s->root_fd = directory_open(AT_FDCWD, root, ROOT_MODE);
	if (s->root_fd < 0) {
		err = s->root_fd;
		log_root(s, "", err, directory_advice(err));
		goto fail;
	}
	err = lock_root(s);
	if (err)
		goto fail;
	err = store_open_directories(s);
	if (!err)
		err = directory_clear(s->incoming_fd, cleared);
	if (err == -EAGAIN)
		leftovers_add_all(&s->leftovers, s->incoming_fd);
	if (!err || err == -EAGAIN)
		err = directory_clear(s->trash_fd, cleared);
	if (err == -EAGAIN || s->leftovers.count > 0)
		atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
	if (err == -EAGAIN)
		err = 0;
	if (!err && faccessat(s->incoming_fd, ".", W_OK, 0))
		err = -errno;
	store_look(s);
	if (!err)
		return 0;
	log_root(s, "cannot prepare the store: ", err, directory_advice(err));
fail:
	store_close(s);
	return err;
}

int store_attach(struct store *s, const char *root)
{
	*s = (struct store){ .root_fd = -1,
		             .incoming_fd = -1,
		             .trash_fd = -1,
		             .spool_fd = -1,
		             .quarantine_fd = -1,
		             .survives_power = true,
		             .checking = PTHREAD_MUTEX_INITIALIZER };
	const struct {
		int *fd;
		const char *name;
	} directory[] = {
		{ &s->trash_fd, STORE_TRASH_DIRECTORY },
		{ &s->spool_fd, STORE_SPOOL_DIRECTORY },
		{ &s->quarantine_fd, STORE_QUARANTINE_DIRECTORY },
	};
	int err = 0;

	usage_init(&s->usage);
	s->root = strdup(root);
	s->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0)
		err = -errno;
	for (size_t i = 0; i < COUNT_OF(directory) && !err; i++) {
		*directory[i].fd =
			openat(s->root_fd, directory[i].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = *directory[i].fd < 0 ? -errno : 0;
	}
	if (!err && s->root)
		return 0;
	store_close(s);
	s->root_fd = -1;
	return err ? err : -ENOMEM;
}

void store_close(struct store *s)
{
	const int fd[] = { s->quarantine_fd, s->spool_fd, s->trash_fd, s->incoming_fd, s->root_fd };

	for (size_t i = 0; i < COUNT_OF(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	usage_fini(&s->usage);
	free(s->root);
}

void store_survive_power(struct store *s, bool survives_power)
{
	atomic_store(&s->survives_power, survives_power);
}

/* ---- removing ---- */

/* Flushes the file system; see flush_note in store_put.c. */
int store_flush(struct store *s)
{
	if (!s->survives_power)
		return 0;
	atomic_fetch_add_explicit(&s->flushes, 1, memory_order_relaxed);
	return syncfs(s->root_fd) ? -errno : 0;
}

void store_trash_name(struct store *s, const char *id, char name[STORE_PATH_MAX])
{
	uint64_t serial = atomic_fetch_add_explicit(&s->trash_serial, 1, memory_order_relaxed);

	snprintf(name, STORE_PATH_MAX, "%.*s.%llu", ULID_LENGTH, id, (unsigned long long)serial);
}

/* What the figures must know of an image that is about to go. */
struct going {
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	bool is_known;
};

static void look_at_going(struct going *g, struct store *s, enum store_place place, const char *id)
{
	g->is_known = place == STORE_IMAGES && usage_total(&s->usage).is_on &&
	              stored_info_load(&g->info, s, id, g->data) == 0;
}

static int rename_to_trash(struct store *s, enum store_place place, const char *id, const char *to)
{
	char from[STORE_PATH_MAX];
	int err = -ENOENT;

	if (place == STORE_SPOOL)
		return renameat(s->spool_fd, id, s->trash_fd, to) ? -errno : 0;
	for (unsigned layout = 0; layout < STORE_LAYOUT_COUNT && err == -ENOENT; layout++) {
		store_image_path(from, (enum store_layout)layout, id, NULL);
		err = renameat(s->root_fd, from, s->trash_fd, to) ? -errno : 0;
	}
	return err;
}

/* Moves it, and takes it out of the figures. */
static int move_counted(struct store *s, enum store_place place, const char *id, const char *to)
{
	struct going going;

	look_at_going(&going, s, place, id);
	usage_lock(&s->usage);
	int err = rename_to_trash(s, place, id, to);

	if (!err && going.is_known)
		usage_removed(&s->usage, id, going.info.token, stored_info_bytes(&going.info));
	usage_unlock(&s->usage);
	return err;
}

int store_move_to_trash(struct store *s, enum store_place place, const char *id,
                        char to[STORE_PATH_MAX])
{
	unsigned openings = atomic_load(&s->openings);

	store_trash_name(s, id, to);
	int err = move_counted(s, place, id, to);

	if (err == -ENOENT && store_check_missing(s, openings))
		err = move_counted(s, place, id, to);
	return err;
}

void store_clear_trash(struct store *s, const char *name)
{
	expiry_forget_removed(s, name);
	int err = directory_remove(s->trash_fd, name);

	/* The image is invisible already; store_tidy() removes the rest. */
	if (!err || err == -ENOENT)
		return;
	log_warning("store: cannot remove " STORE_TRASH_DIRECTORY "/%s: %s; retrying later", name,
	            strerror(-err));
	atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
}

/* Moves what could not be removed from .incoming to the trash. Returns false if a part stays. */
static bool move_leftovers(struct store *s)
{
	char id[LEFTOVERS_MAX][ULID_LENGTH + 1], name[STORE_PATH_MAX];
	unsigned count = leftovers_take(&s->leftovers, id);
	bool are_moved = true;

	for (unsigned i = 0; i < count; i++) {
		store_trash_name(s, id[i], name);
		if (renameat(s->incoming_fd, id[i], s->trash_fd, name) && errno != ENOENT) {
			leftovers_add(&s->leftovers, id[i]);
			are_moved = false;
		}
	}
	return are_moved;
}

void store_tidy(struct store *s)
{
	uint64_t due = atomic_load(&s->tidy_ns), now;
	unsigned ignored = 0;

	if (!due || (now = clock_ns()) < due ||
	    !atomic_compare_exchange_strong(&s->tidy_ns, &due, 0))
		return;
	/* Flush first, for the same reason as in store_remove(). */
	if (!move_leftovers(s) || store_flush(s) || directory_clear(s->trash_fd, &ignored))
		atomic_store(&s->tidy_ns, now + STORE_TIDY_NS);
}

int store_remove(struct store *s, enum store_place place, const char *id)
{
	char name[STORE_PATH_MAX];
	int err = store_move_to_trash(s, place, id, name);

	if (err)
		return err;
	/* Flush before the files go; otherwise the name might return without them. */
	err = store_flush(s);
	if (err)
		atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
	else
		store_clear_trash(s, name);
	store_tidy(s);
	return err;
}

int store_unspool(struct store *s, const char *id)
{
	char name[STORE_PATH_MAX];
	int err = store_move_to_trash(s, STORE_SPOOL, id, name);

	if (!err)
		store_clear_trash(s, name);
	return err;
}

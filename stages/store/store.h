/*
 * store.h - finished images on disk, under
 * <root>/<first 4 characters of id>/<next 2>/<id>/{image.json,<variant>.jpg} (store_path.h).
 *
 * An image is written into <root>/.incoming/<id>/ and becomes visible by one rename. A removed
 * image is first renamed into <root>/.trash/. Both directories are emptied at startup. Spooled
 * originals (spool.h) are in <root>/.spool/<id>/. Ids are ULIDs.
 */
#ifndef DARKROOM_STORE_STORE_H
#define DARKROOM_STORE_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store_path.h"
#include "ulid.h"
#include "usage.h"

#define STORE_VERIFIED_FILES 4096

struct store {
	const char *root; /* its path; borrowed */
	int root_fd, incoming_fd, trash_fd, spool_fd, quarantine_fd;
	_Atomic bool survives_power; /* acknowledged means flushed to the disk, not only written */
	_Atomic uint64_t trash_serial;
	_Atomic uint64_t tidy_ns;    /* when to clear the trash again; 0: nothing is left in it */
	_Atomic uint64_t flushes;    /* of the file system, so far */
	_Atomic uint64_t free_bytes; /* of the file system, when store_look() saw it last */
	_Atomic uint64_t looked_ns;
	_Atomic bool is_read_only; /* the file system, at that time */
	struct usage usage;
	/* files that were compared last, each in the slot of its identity: store_verify.c */
	_Atomic uint64_t verified[STORE_VERIFIED_FILES];
	/* of store_check() */
	pthread_mutex_t checking;
	_Atomic unsigned openings; /* of the directories, after they were deleted */
	_Atomic int lost; /* -errno, which was logged; 0: it is there. Written under checking */
};

/* Creates root and the directories below it (not its parents); borrows the text. A new root has the
 * mode 0750, less the umask; an existing one keeps its mode. Those of unfinished images and of
 * originals get 0700 in any case. Locks root against a second daemon, makes what is there
 * durable, and clears the leftovers of a crash, counting them in *cleared. Logs what is not of the
 * store, and leaves it. Returns 0, or -errno with the reason logged. Main thread. */
int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared);
void store_close(struct store *s);

/* Opens a store that a daemon may be using, for store_tool.h. A process that root runs changes to
 * the owner of the store's root first, and cannot change back. Clears nothing and takes no lock.
 * Makes .trash and .quarantine if they are missing, but no spool: it shows that this is a store.
 * Files can be read, and images removed. Returns 0, or -errno with root_fd == -1. */
int store_attach(struct store *s, const char *root);

/* Sets whether commits are flushed, beginning with the next one. Any thread. */
void store_survive_power(struct store *s, bool survives_power);

/* Returns the bytes that the daemon's user may still write, or UINT64_MAX if the system cannot
 * tell. A system call. */
uint64_t store_look(struct store *s);

/* Returns whether floor bytes were free when store_look() saw them last, and sets *free_bytes to
 * what was. If they were not, it looks again, at most once a second. */
bool store_has_room(struct store *s, uint64_t floor, uint64_t *free_bytes);

/* Returns why images cannot be stored: the slug of a problem, with *why for people, both static;
 * the file system is read-only, or has fewer than floor bytes or no inode left. NULL: they can.
 * looks: at the file system, at most once a second; otherwise what was seen last counts. Any
 * thread. */
const char *store_not_writable(struct store *s, uint64_t floor, bool looks, const char **why);

/* Returns whether the store can be used. If server.root was deleted and exists again, opens it in
 * place: the descriptors of *s keep their numbers, so other threads need not know. The daemon does
 * not make the root itself, which may be a disk that is not mounted. Logs when the store is lost
 * and when it is back. Any thread; some short system calls. */
bool store_check(struct store *s);

/* Returns whether the last store_check() failed. Any thread. */
bool store_is_lost(const struct store *s);

/* Returns whether the last store_check() found a new root that the sandbox does not cover: a
 * sandbox can only become narrower. Any thread. */
bool store_must_restart(const struct store *s);

/* Returns why the last store_check() failed, for clients. Static. Any thread. */
const char *store_lost_reason(const struct store *s);

/* The same after a call has failed with ENOENT: returns whether the store was opened again since
 * `openings` was read from *s, so that the call must be repeated. */
bool store_check_missing(struct store *s, unsigned openings);

/* ---- for the files of this folder ---- */

#define STORE_TIDY_NS NS_PER_S /* between attempts to clear the trash */

/* Flushes the file system if the store survives a loss of power; see flush_note in store_put.c.
 * Returns 0 or -errno. */
int store_flush(struct store *s);

/* ---- may block; disk_write calls them ---- */

#define STORE_ORIGINAL_NAME "original" /* of the uploaded file; no variant may have it */
#define STORE_ORIGINAL STORE_ORIGINAL_NAME ".jpg"

struct store_file {
	const char *name; /* "medium.jpg" */
	const void *data;
	size_t size;
	const char *sum; /* of checksum.h, kept beside the content as its tag; NULL: none */
};

enum store_place {
	STORE_IMAGES = 1,
	STORE_SPOOL,
	STORE_REPLACED /* an image that is stored already, in exchange for its directory */
};

struct store_item {
	enum store_place place;
	const char *id;
	const struct store_file *file;
	unsigned file_count;
	int old_fd; /* replaced: the image's directory, whose other files stay; borrowed */
	uint64_t old_bytes, new_bytes; /* replaced: of all files, for struct usage */
	const char *token; /* of an image: the name of the token, for struct usage; NULL: none */
	uint64_t expires;  /* of an image: seconds since 1970; 0: never */
	int err;           /* set by store_put(): 0, or -errno and no file is left behind */
	bool is_published; /* store_put()'s own */
};

/* Writes the items' files and publishes each item under its id by one rename. Each item fails for
 * itself, except if the disk cannot be flushed. With survives_power, all items share two flushes
 * (flush_note in store_put.c). A replaced image changes as a whole by one exchange of names; its
 * other files are linked. It fails with -ENOENT if it was removed. */
void store_put(struct store *s, struct store_item *items, unsigned count);

/* Removes an image. It is invisible from the rename on, and its removal is as durable as its
 * storage was. Returns 0, -ENOENT or -errno. */
int store_remove(struct store *s, enum store_place place, const char *id);

/* Takes a stored image out of the spool, without a flush: its return after a crash does no harm.
 * Returns 0, -ENOENT or -errno. */
int store_unspool(struct store *s, const char *id);

/* ---- removal of several images ----
 *
 * The images become invisible, one flush follows, then their files go. A loss of power leaves each
 * image whole or invisible. Empty directories of earlier times go, too. Any thread, one for each
 * batch; calls may block. */

#define STORE_BATCH_MAX 64

struct store_batch {
	struct {
		char id[ULID_LENGTH + 1];
		char in_trash[STORE_PATH_MAX];
	} image[STORE_BATCH_MAX];
	unsigned count;
};

/* Makes an image invisible; the batch must have room. Returns 0, -ENOENT or -errno. */
int store_batch_add(struct store_batch *b, struct store *s, enum store_place place, const char *id);

/* Removes the files of all of them. Returns 0, or -errno: they are invisible, and their files go
 * later. The ids stay in the batch until the caller sets its count to 0. */
int store_batch_end(const struct store_batch *b, struct store *s);

#endif

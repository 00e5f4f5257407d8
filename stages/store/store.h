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

#include "leftovers.h"
#include "ulid.h"
#include "usage.h"

/* Trailing characters of the id. They are random, so images spread over 1024 directories. */
#define STORE_SHARD_LENGTH 2

struct store {
	char *root; /* its path; fixed */
	int root_fd, incoming_fd, trash_fd, spool_fd, quarantine_fd;
	_Atomic bool survives_power; /* acknowledged means flushed to the disk, not only written */
	_Atomic uint64_t trash_serial;
	_Atomic uint64_t tidy_ns;    /* when to clear the trash again; 0: nothing is left in it */
	_Atomic uint64_t flushes;    /* of the file system, so far */
	_Atomic uint64_t free_bytes; /* of the file system, when store_look() saw it last */
	_Atomic uint64_t looked_ns;
	struct leftovers leftovers; /* in .incoming */
	struct usage usage;
	/* of store_check.h */
	pthread_mutex_t checking;
	_Atomic unsigned openings; /* of the directories, after they were deleted */
	_Atomic int lost; /* -errno, which was logged; 0: it is there. Written under checking */
};

/* Creates root and the directories below it (not its parents). A new root has the mode 0750, less
 * the umask; an existing one keeps its mode. Those of unfinished images and of originals get 0700
 * in any case. Locks root against a second daemon and clears the leftovers of a crash, counting
 * them in *cleared. Returns 0, or -errno with the reason logged. Main thread. */
int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared);
void store_close(struct store *s);

/* Opens a store that a daemon may be using, for store_tool.h: makes nothing, clears nothing and
 * takes no lock. Files can be read, and images removed. Returns 0, or -errno with root_fd == -1. */
int store_attach(struct store *s, const char *root);

/* Opens the directories below root_fd, and makes those that are missing. Returns 0, or -errno with
 * what is open in *s. */
int store_open_directories(struct store *s);

/* Sets whether commits are flushed, beginning with the next one. Any thread. */
void store_survive_power(struct store *s, bool survives_power);

/* ---- may block; disk_write calls them ---- */

#define STORE_ORIGINAL "original.jpg" /* the uploaded file; no variant may have this name */

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

#endif

/*
 * store.h - finished images on disk: <root>/<last 2 characters of
 * id>/<id>/{image.json,<variant>.jpg}.
 *
 * An image is written into <root>/.incoming/<id>/ and becomes visible by one rename. A removed
 * image is first renamed into <root>/.trash/. Both are emptied at start. Originals that are spooled
 * (spool.h) are in <root>/.spool/<id>/. Ids are ULIDs.
 */
#ifndef DARKROOM_STORE_STORE_H
#define DARKROOM_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ULID_LENGTH 26

struct store {
	int root_fd, incoming_fd, trash_fd, spool_fd, quarantine_fd;
	_Atomic bool
		survives_power; /* what is acknowledged is on the disk, not only with the kernel */
	_Atomic uint64_t trash_serial;
	_Atomic uint64_t tidy_ns; /* when to try again to clear the trash of what could not be
	                             removed; 0: there is none */
	_Atomic uint64_t flushes; /* of the file system, so far */
};

/* Creates what is missing of root (not its parents), locks it against a second daemon, clears
 * leftovers of a crash, whose number goes to *cleared. 0 or -errno, the reason logged. Main thread.
 */
int store_open(struct store *s, const char *root, bool survives_power, unsigned *cleared);
void store_close(struct store *s);

/* From the next commit on. Any thread. */
void store_survive_power(struct store *s, bool survives_power);

/* A new id: 48 bits of milliseconds, 80 random bits (github.com/ulid/spec), zero-terminated. Any
 * thread. */
void ulid_new(char id[ULID_LENGTH + 1]);
bool ulid_is_valid(const char *text, size_t length);

/* ---- may block; disk_write calls them ---- */

#define STORE_ORIGINAL "original.jpg" /* as uploaded; no variant may have its name */

struct store_file {
	const char *name; /* "medium.jpg" */
	const void *data;
	size_t size;
};

enum store_place { STORE_IMAGES = 1, STORE_SPOOL };

struct store_item {
	enum store_place place;
	const char *id;
	const struct store_file *file;
	unsigned file_count;
	int err;           /* set by store_put(): 0 or -errno; then nothing of it is left behind */
	bool is_published; /* store_put()'s own */
};

/* Writes the items' files and publishes each item under its id by one rename. Items fail each for
 * itself, unless the disk cannot be flushed. If they are to survive a loss of power, they share two
 * flushes, see the note in store.c. */
void store_put(struct store *s, struct store_item *items, unsigned count);

/* 0, -ENOENT or -errno. The image is invisible from the rename on, and that as durably as it was
 * there. */
int store_remove(struct store *s, enum store_place place, const char *id);

/* Takes a stored image out of the spool, without a flush: that it may come back there does no harm.
 * 0, -ENOENT or -errno. */
int store_unspool(struct store *s, const char *id);

/* ---- short: from accept_read's threads, too ---- */

/* Opens a file of a finished image for reading; name as in store_file. A descriptor, *size set, or
 * -errno (-ENOENT). */
int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size);

/* Whether the image's original is spooled, or may be, for all that the system says: then the image
 * is stored by now, or will be. */
bool store_is_spooled(struct store *s, const char *id);

#endif

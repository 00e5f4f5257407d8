/*
 * store.h - finished images on disk: <root>/<last 2 characters of id>/<id>/{image.json,<variant>.jpg}.
 *
 * An image is written into <root>/.incoming/<id>/ and becomes visible by one rename. A removed image is first
 * renamed into <root>/.trash/. Both are emptied at start. Ids are ULIDs.
 */
#ifndef DARKROOM_STORE_H
#define DARKROOM_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ULID_LENGTH 26

struct store {
	int root_fd, incoming_fd, trash_fd;
	_Atomic uint64_t trash_serial;
};

/* Creates what is missing of root (not its parents), locks it against a second daemon, clears leftovers of a crash,
 * whose number goes to *cleared. 0 or -errno, the reason logged. Main thread. */
int store_open(struct store *s, const char *root, unsigned *cleared);
void store_close(struct store *s);

/* A new id: 48 bits of milliseconds, 80 random bits (github.com/ulid/spec), zero-terminated. Any thread. */
void ulid_new(char id[ULID_LENGTH + 1]);
bool ulid_is_valid(const char *text, size_t length);

/* ---- may block; disk_write calls them ---- */

struct store_file {
	const char *name; /* "medium.jpg" */
	const void *data;
	size_t size;
};

/* Writes all files and publishes them under id by one rename. 0 or -errno; on error nothing is left behind. */
int store_put(struct store *s, const char *id, const struct store_file *files, unsigned count);

/* 0, -ENOENT or -errno. The image is invisible from the rename on. */
int store_remove(struct store *s, const char *id);

/* ---- short: from accept_read's threads, too ---- */

/* Opens a file of a finished image for reading; name as in store_file. A descriptor, *size set, or -errno (-ENOENT). */
int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size);

#endif

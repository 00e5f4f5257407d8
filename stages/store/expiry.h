/*
 * expiry.h - when single images end, sorted by time: an empty file
 * <root>/.expiry/<hour>/<second>.<id> for each.
 *
 * The file is made before its image appears, and removed after it has gone. So a crash leaves at
 * most a file without an image, which is removed when its time comes. What is due is found by a
 * list of the hours, one for each hour in which images expire. The files of an image have the time
 * in their tag (store_find.h), so that a GET needs no look into this directory. Any thread; calls
 * block.
 */
#ifndef DARKROOM_STORE_EXPIRY_H
#define DARKROOM_STORE_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "ulid.h"

struct store;

/* Notes that the image ends then, in seconds since 1970. Returns 0 or -errno. */
int expiry_note(struct store *s, const char *id, uint64_t expires);

/* Removes the note of an image that has gone. */
void expiry_forget(struct store *s, const char *id, uint64_t expires);

/* The same for an image in the trash, by its name there, whose files have the time. */
void expiry_forget_removed(struct store *s, const char *name);

struct expiry_due {
	uint64_t expires;
	char id[ULID_LENGTH + 1];
};

/* Write and read the name <second>.<id>. Reading returns false if it is not one. */
#define EXPIRY_NAME_MAX 40
void expiry_write_name(char name[EXPIRY_NAME_MAX], const char *id, uint64_t expires);
bool expiry_read_name(const char *name, struct expiry_due *due);

/* Lists up to max images whose time is at most `now`, those of the oldest hours first. Returns
 * their number, or -errno. Removes hours of the past that are empty. */
int expiry_list(struct store *s, uint64_t now, struct expiry_due *due, unsigned max);

/* Notes that images are removed by their age now. Returns 0 or -errno. */
int expiry_note_sweep(struct store *s);

/* Returns when that was noted last, in seconds since 1970; 0: unknown. The time is that of a
 * directory, so it is in backups; uploads do not change it. */
int64_t expiry_last_sweep(struct store *s);

#endif

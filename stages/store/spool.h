/*
 * spool.h - uploads that were answered before they were stored:
 * <root>/.spool/<id>/{original.jpg,note}.
 *
 * An image is put there like into the store (store_put, STORE_SPOOL), and goes when it is stored.
 * What is there after a crash is made again. The note says how often that was tried, and the file's
 * name. All calls may block. Any thread, one per id.
 */
#ifndef DARKROOM_STORE_SPOOL_H
#define DARKROOM_STORE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "store.h"

#define SPOOL_NOTE "note"
#define SPOOL_NOTE_MAX (UPLOAD_FIELD_MAX + 2)
#define SPOOL_ATTEMPTS_MAX 3 /* to make an image again; then it is put aside */

struct spooled {
	char id[ULID_LENGTH + 1];
	unsigned attempts; /* that did not come to an end */
};

/* Writes the note of an image that is spooled for the first time; its length. */
size_t spool_note(char note[SPOOL_NOTE_MAX], const char *file_name);

/* Up to max images of the spool, those that were not tried before first; their number or -errno. */
int spool_list(struct store *s, struct spooled *list, unsigned max);

/* 0 or -errno. */
int spool_set_attempts(struct store *s, const char *id, unsigned attempts);

/* Opens the original for reading. A descriptor, *size and file_name set, or -errno: -ENOENT if the
 * image is not spooled, -EINVAL if what is there is not as it is written. */
int spool_open(struct store *s, const char *id, uint64_t *size, char file_name[UPLOAD_FIELD_MAX]);

/* Moves the image into <root>/.quarantine/, where nothing touches it. 0 or -errno. */
int spool_quarantine(struct store *s, const char *id);

#endif

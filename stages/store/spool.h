/*
 * spool.h - uploads that were acknowledged before they were stored, in
 * <root>/.spool/<id>/{original.jpg,note}.
 *
 * store_put() with STORE_SPOOL adds an image; store_unspool() removes it when it is stored. After a
 * crash, recovery processes the spooled images again. The note holds the number of attempts, and
 * the names of the uploaded file and of the token, when the image expires, and its focal point. All
 * calls may block. Any thread, one per id.
 */
#ifndef DARKROOM_STORE_SPOOL_H
#define DARKROOM_STORE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "store.h"

#define SPOOL_FILE_NAME_MAX 128 /* bytes of the file's name, with the zero */
#define SPOOL_NOTE "note"
#define SPOOL_TOKEN_MAX 64      /* bytes of the token's name, with the zero */
#define SPOOL_DATE_MAX 21       /* bytes of a number, with the zero */
#define SPOOL_FOCUS_MAX 24      /* bytes of the focal point, with the zero */
#define SPOOL_METADATA_MAX 2048 /* bytes of texts that came with the image */
#define SPOOL_NOTE_MAX                                                                  \
	(2 + SPOOL_FILE_NAME_MAX + SPOOL_TOKEN_MAX + SPOOL_DATE_MAX + SPOOL_FOCUS_MAX + \
	 SPOOL_METADATA_MAX)

/* Names and values, each with a zero behind it. */
struct image_texts {
	char data[SPOOL_METADATA_MAX];
	size_t length;
};

/* What a note keeps of the upload. */
struct spool_names {
	char file[SPOOL_FILE_NAME_MAX];
	char token[SPOOL_TOKEN_MAX]; /* "": no token was needed, or an earlier version wrote it */
	uint64_t expires;            /* seconds since 1970; 0: never */
	char focus[SPOOL_FOCUS_MAX]; /* "": none */
	struct image_texts metadata;
};

/* Writes the note of an image that is spooled for the first time. Returns its length. */
size_t spool_note(char note[SPOOL_NOTE_MAX], const struct spool_names *names);

/* Returns the number of attempts of the note, 0 if it is damaged, or -1 if the image was removed.
 */
int spool_attempts(struct store *s, const char *id);

/* Writes the number of attempts into the note. Returns 0 or -errno. */
int spool_set_attempts(struct store *s, const char *id, unsigned attempts);

/* Opens the original for reading. Returns a descriptor and sets *size and *names, or returns
 * -errno: -ENOENT if the image is not spooled, -EINVAL if the files are not as store_put() writes
 * them. */
int spool_open(struct store *s, const char *id, uint64_t *size, struct spool_names *names);

/* Finds the bytes of a spooled original. Returns 0 or -errno. */
int spool_size(struct store *s, const char *id, uint64_t *size);

#define SPOOL_PROBLEM "problem" /* in the quarantine: why the image is there, as a line */

/* Moves the image into <root>/.quarantine/, which the daemon never reads, and writes why, if that
 * is possible. Returns 0 or -errno. */
int spool_quarantine(struct store *s, const char *id, const char *why);

#endif

/*
 * store_find.h - opens files of finished images for reading. Any thread.
 */
#ifndef DARKROOM_STORE_STORE_FIND_H
#define DARKROOM_STORE_STORE_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct s3_stream;
struct store;

#define STORE_EXPIRING_TAG_LENGTH 43 /* of the attribute: checksum, ".", 10 digits */
#define STORE_TAG_MAX 48             /* bytes of a tag, with the zero */

/* A file that was looked for. */
struct store_found {
	int fd; /* an open descriptor, or -errno (-ENOENT) */
	uint64_t size;
	uint64_t held;           /* of an S3 store: bytes in the file, from its beginning */
	time_t modified;         /* when the file was made */
	uint64_t expires;        /* as store_tag() */
	char tag[STORE_TAG_MAX]; /* the same */
	uint64_t identity;       /* changes with the inode, its size and its content */
	bool is_spooled;         /* if there is no such file: as store_is_spooled() */
	/* of an S3 store: the bytes behind those that the file has; NULL: there are none. The
	 * owner of fd calls s3_stream_free(). */
	struct s3_stream *stream;
};

/* Opens a file of a finished image for reading; name as in store_file. If there is none, looks into
 * the spool, then once more for the file, which may have been stored meanwhile. */
void store_find(struct store *s, const char *id, const char *name, struct store_found *found);

/* As store_find(), for threads that must not wait. Returns false if the disk would have to be read.
 */
bool store_find_cached(struct store *s, const char *id, const char *name,
                       struct store_found *found);

/* Opens a file of a finished image for reading; name as in store_file. Returns a descriptor and
 * sets *size, or returns -errno (-ENOENT). */
int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size);

/* Returns whether a finished image has the file. Some system calls. */
bool store_has_file(struct store *s, const char *id, const char *name);

/* Opens the directory of a finished image for reading. Returns a descriptor or -errno. */
int store_open_directory(struct store *s, const char *id);

/* Returns whether the image has another directory by now than the open one: it was remade, or
 * (*is_there is false) removed. */
bool store_has_moved(struct store *s, const char *id, int directory_fd, bool *is_there);

/* Writes a tag of an open file's content, which changes with it: its checksum. On a file without
 * one (written by an earlier version, or copied by a program that drops extended attributes) its
 * size and time. The attribute is in the inode, which is in memory: it needs no disk. Returns when
 * the image expires, in seconds since 1970, or 0: never, or the attribute is missing. */
uint64_t store_tag(int fd, char tag[STORE_TAG_MAX]);

/* Writes the attribute of a file: its checksum, and when the image expires; 0: never. Returns its
 * length. */
int store_tag_write(char tag[STORE_TAG_MAX], const char *sum, uint64_t expires);

/* Returns whether the image's original is spooled; also true if the system cannot tell. The image
 * is then stored by now, or will be. */
bool store_is_spooled(struct store *s, const char *id);

#endif

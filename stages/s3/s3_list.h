/*
 * s3_list.h - the keys in an answer to ListObjectsV2 (XML). Pure functions: any thread.
 *
 * Names of this daemon are of letters, digits and -._/. A bucket may have others, of any bytes. A
 * further page is asked for by start-after and the last key, so that no token has to be read.
 */
#ifndef DARKROOM_S3_LIST_H
#define DARKROOM_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define S3_NAME_MAX 1025 /* bytes of a key of any bucket, with the zero */

#define S3_LIST_ETAG_MAX 64

struct s3_list {
	const char *at, *end;        /* of what is left */
	bool is_truncated;           /* there are more keys behind the last one */
	bool is_plain;               /* of the last key that was read: only such characters */
	time_t modified;             /* of it; 0: the store does not say */
	uint64_t size;               /* of its object, in bytes; UINT64_MAX: it does not say */
	char etag[S3_LIST_ETAG_MAX]; /* of it; "": it does not say */
};

/* Begins to read an answer. Returns false if it is not one, or not complete. */
bool s3_list_begin(struct s3_list *l, const char *data, size_t length);

/* Writes the next key, "" if it cannot be one. Returns false at the end. */
bool s3_list_next(struct s3_list *l, char key[S3_NAME_MAX]);

/* Returns whether it is a complete answer whose keys begin with the prefix and come after that one,
 * in order, and from which the list can go on. A gateway that knows no prefix= would have objects
 * of others removed, and one without start-after= would be asked for ever. */
bool s3_list_is_right(const char *data, size_t length, const char *prefix, const char *after);

/* Copies the code of an error's body, such as "NoSuchKey"; "" if it has none that is plain. */
void s3_get_code(const char *data, size_t length, char *code, size_t size);

#endif

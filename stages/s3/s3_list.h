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
#define S3_ETAG_MAX 64   /* bytes of an entity tag, with the zero */

struct s3_list {
	const char *at, *end; /* of what is left */
	bool is_truncated;    /* there are more keys behind the last one */
};

/* An object of a list. */
struct s3_listed {
	char name[S3_NAME_MAX]; /* its key, in UTF-8; "": it cannot be one */
	const char *key;        /* the same below store.s3_prefix: of s3_list_keys(), as age_s */
	bool is_plain;          /* the key has only such characters */
	time_t modified;        /* 0: the store does not say */
	time_t age_s;           /* as s3_age() */
	uint64_t size;          /* bytes; UINT64_MAX: the store does not say */
	char etag[S3_ETAG_MAX]; /* "": the store does not say */
};

/* Begins to read an answer. Returns false if it is not one, or not complete. */
bool s3_list_begin(struct s3_list *l, const char *data, size_t length);

/* Reads the next object. Returns false at the end. */
bool s3_list_next(struct s3_list *l, struct s3_listed *next);

/* Returns whether it is a complete answer whose keys begin with the prefix of all and this one,
 * come after a key below the prefix of all, in order, and from which the list can go on. A gateway
 * that knows no prefix= would have objects of others removed, and one without start-after= would be
 * asked for ever. */
bool s3_list_is_right(const char *data, size_t length, const char *of_all, const char *prefix,
                      const char *after);

/* Copies the code of an error's body, such as "NoSuchKey"; "" if it has none that is plain. */
void s3_get_code(const char *data, size_t length, char *code, size_t size);

#endif

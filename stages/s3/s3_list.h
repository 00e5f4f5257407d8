/*
 * s3_list.h - the keys in an answer to ListObjectsV2 (XML). Pure functions: any thread.
 *
 * Only names of this daemon are wanted: keys of letters, digits and -._/. Others, which XML or the
 * store may escape, are left out. A further page is asked for by start-after and the last key, so
 * that no token has to be read.
 */
#ifndef DARKROOM_S3_LIST_H
#define DARKROOM_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct s3_list {
	const char *at, *end; /* of what is left */
	bool is_truncated;    /* there are more keys behind the last one */
	time_t modified;      /* of the last key that was read; 0: it does not say */
};

/* Begins to read an answer. Returns false if it is not one, or not complete. */
bool s3_list_begin(struct s3_list *l, const char *data, size_t length);

/* Writes the next key. Returns false at the end. */
bool s3_list_next(struct s3_list *l, char *key, size_t size);

/* Copies the code of an error's body, such as "NoSuchKey"; "" if it has none that is plain. */
void s3_get_code(const char *data, size_t length, char *code, size_t size);

#endif

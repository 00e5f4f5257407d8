/*
 * s3_memory.h - an object store in memory: takes the place of s3/s3_client.c in a test that
 * includes this.
 *
 * One thread at a time.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_S3_MEMORY_H
#define DARKROOM_TESTS_UNIT_SUPPORT_S3_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "s3/s3_client.h"

/* Requests that a test makes at most; a further one fails the test. */
#define S3_MEMORY_REQUESTS_MAX 64

/* Removes all objects, and sets the counts to 0. No operation fails any more. */
void s3_memory_clear(void);

/* Adds an object. The data is borrowed. Objects are added in the order of their keys. */
void s3_memory_add(const char *key, const char *data, time_t modified);

/* Returns whether there is an object with the key. */
bool s3_memory_has(const char *key);

/* From now on, operations of a kind end with an error. */
void s3_memory_fail(enum s3_verb verb, int err);

/* A list has at most so many keys, as if it had more objects than fit. */
void s3_memory_set_page(unsigned max);

/* Returns the operations of a kind that were run. */
unsigned s3_memory_count(enum s3_verb verb);

#endif

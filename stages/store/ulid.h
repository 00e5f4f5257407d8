/*
 * ulid.h - image ids: ULIDs (github.com/ulid/spec), 26 characters in Crockford's base 32.
 *
 * 48 bits of milliseconds, then 80 random bits. Any thread.
 */
#ifndef DARKROOM_STORE_ULID_H
#define DARKROOM_STORE_ULID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ULID_LENGTH 26

/* Writes a new id, zero-terminated. */
void ulid_new(char id[ULID_LENGTH + 1]);

/* Returns when the id was made, in seconds since 1970; id must be valid. */
time_t ulid_time(const char *id);

#define ULID_DATE_MAX 32 /* bytes of a date, with the zero */

/* Writes when the id was made, as "2026-11-22T11:40:00.123Z" (RFC 3339); id must be valid. */
void ulid_date(const char *id, char date[ULID_DATE_MAX]);

/* Writes the first ("0") or last ("Z") possible id of a millisecond since 1970. */
void ulid_bound(uint64_t ms, char fill, char id[ULID_LENGTH + 1]);

/* Orders ids, or other names with a zero behind them: for qsort(3) and bsearch(3). */
int ulid_compare(const void *a, const void *b);

/* Returns whether text[0..length) is an id as ulid_new() writes it. */
bool ulid_is_valid(const char *text, size_t length);

#endif

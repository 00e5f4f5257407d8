/*
 * store_query.h - the options of darkroomd store, and the images that they select. Main thread.
 */
#ifndef DARKROOM_STORE_STORE_QUERY_H
#define DARKROOM_STORE_STORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "store.h"
#include "store_page.h"

#define QUERY_EXIT_USAGE 2
#define QUERY_WORDS_MAX 64

struct text;

/* Sends a line to the daemon's control socket and appends its answer. Returns 0, or other than 0 if
 * no daemon serves the store. */
typedef int store_ask(const struct conf *conf, const char *line, struct text *answer);

struct store_query {
	const struct conf *conf;
	store_ask *ask;
	struct store store;
	bool is_json, is_newest_first, is_dry, repairs, restarts, only_missing;
	char after[ULID_LENGTH + 1], before[ULID_LENGTH + 1]; /* bounds, left out; "": none */
	const char *follows;  /* the id behind which the list begins, or NULL */
	uint64_t limit;       /* images; UINT64_MAX: all */
	uint64_t rate;        /* bytes/s or images/s; 0: no limit */
	const char *token;    /* NULL: any */
	const char *ids_path; /* NULL: none */
	const char *map_path; /* NULL: none */
	char *argument[QUERY_WORDS_MAX];
	char **words; /* what is not an option */
	size_t word_count;
};

/* Parses the words behind the name of the command, and opens the store. Returns 0, or the exit
 * status with the problem reported. */
int store_query_open(struct store_query *q, const struct conf *conf, store_ask *ask,
                     char *const *words, size_t count);
void store_query_close(struct store_query *q);

/* Reports wrong usage. Returns the exit status. */
int store_query_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failure. Returns the exit status. */
int store_query_fail(const char *what, int err);

/* Calls `each` with each selected id: the words, or the lines of ids_path, or else all images
 * within the bounds, in order, up to the limit. Ends early if it returns other than 0, and returns
 * that; otherwise returns 0, or the exit status of a failure that was reported. */
int store_query_each(struct store_query *q,
                     int (*each)(struct store_query *q, const char *id, void *arg), void *arg);

/* Reads a time: 2026-11-22, 2026-11-22T11:40:00Z, or an age like 30d, 12h, 5m. Returns false if the
 * text is none. *ms: since 1970. */
bool store_query_time(const char *text, uint64_t now_ms, uint64_t *ms);

#endif

/*
 * store_page.c - reads directories, and keeps the first ids of what they have.
 */
#include "store_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directory.h"
#include "store_path.h"

/* The ids that were seen so far: the first ones of them in the page's order. */
struct seen {
	struct store_page *page;
	char (*id)[ULID_LENGTH + 1]; /* twice as many as the page has */
	unsigned count;
};

static int compare_newest(const void *a, const void *b)
{
	return strcmp(b, a);
}

/* Keeps the first ids, as many as the page has. */
static void keep_first(struct seen *seen)
{
	const struct store_page *p = seen->page;

	qsort(seen->id, seen->count, sizeof seen->id[0],
	      p->is_newest_first ? compare_newest : ulid_compare);
	seen->count = seen->count < p->max ? seen->count : p->max;
}

static void offer(struct seen *seen, const char *id)
{
	const struct store_page *p = seen->page;

	if ((p->after[0] && strcmp(id, p->after) <= 0) ||
	    (p->before[0] && strcmp(id, p->before) >= 0))
		return;
	if (seen->count == 2 * p->max)
		keep_first(seen);
	memcpy(seen->id[seen->count++], id, ULID_LENGTH + 1);
}

/* ---- directories ---- */

/* Offers all ids in the directory. Returns 0 or -errno; one that has gone is empty. */
static int offer_all(struct seen *seen, int at, const char *name)
{
	DIR *dir = directory_list(at, name);
	const char *id;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while ((id = directory_next_id(dir)))
		offer(seen, id);
	closedir(dir);
	return 0;
}

/* Returns whether ids that begin with the prefix may be within the bounds. */
static bool may_match(const struct store_page *p, const char *prefix)
{
	size_t n = strlen(prefix);

	return (!p->after[0] || strncmp(prefix, p->after, n) >= 0) &&
	       (!p->before[0] || strncmp(prefix, p->before, n) <= 0);
}

/* Offers the images of a span's directories, in order, until the page is full. */
static int offer_span(struct seen *seen, int root_fd, const char *span,
                      struct directory_names *shards)
{
	const struct store_page *p = seen->page;
	int err = directory_list_names(root_fd, span, STORE_SHARD_LENGTH, NULL, shards);

	for (unsigned i = 0; i < shards->count && !err && seen->count < p->max; i++) {
		unsigned at = p->is_newest_first ? shards->count - 1 - i : i;
		char prefix[STORE_SPAN_LENGTH + STORE_SHARD_LENGTH + 1], path[STORE_PATH_MAX];

		memcpy(prefix, span, STORE_SPAN_LENGTH);
		memcpy(prefix + STORE_SPAN_LENGTH, shards->name[at], STORE_SHARD_LENGTH + 1);
		if (!may_match(p, prefix))
			continue;
		store_shard_path(path, STORE_BY_TIME, prefix);
		err = offer_all(seen, root_fd, path);
	}
	return err;
}

static int offer_by_time(struct seen *seen, int root_fd, struct directory_names *spans,
                         struct directory_names *shards)
{
	const struct store_page *p = seen->page;
	int err = directory_list_names(root_fd, ".", STORE_SPAN_LENGTH, NULL, spans);

	for (unsigned i = 0; i < spans->count && !err && seen->count < p->max; i++) {
		unsigned at = p->is_newest_first ? spans->count - 1 - i : i;

		if (may_match(p, spans->name[at]))
			err = offer_span(seen, root_fd, spans->name[at], shards);
	}
	return err;
}

/* Images of earlier versions: any of them may belong before those that are listed by time. */
static int offer_by_tail(struct seen *seen, int root_fd, struct directory_names *names)
{
	int err = directory_list_names(root_fd, ".", STORE_SHARD_LENGTH, NULL, names);

	for (unsigned i = 0; i < names->count && !err; i++)
		err = offer_all(seen, root_fd, names->name[i]);
	return err;
}

int store_page_read(int root_fd, struct store_page *p)
{
	struct directory_names *names = malloc(2 * sizeof *names);
	struct seen seen = { .page = p, .id = malloc(2 * (size_t)p->max * sizeof *p->id) };
	int err = names && seen.id ? offer_by_time(&seen, root_fd, names, &names[1]) : -ENOMEM;

	if (!err)
		err = offer_by_tail(&seen, root_fd, names);
	if (seen.id)
		keep_first(&seen);
	p->count = seen.count;
	if (seen.count)
		memcpy(p->id, seen.id, seen.count * sizeof *p->id);
	free(seen.id);
	free(names);
	return err;
}

void store_page_advance(struct store_page *p)
{
	if (p->count == 0)
		return;
	memcpy(p->is_newest_first ? p->before : p->after, p->id[p->count - 1], ULID_LENGTH + 1);
}

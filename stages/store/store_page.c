/*
 * store_page.c - keeps the first ids that it sees in a heap whose top is the last of them.
 */
#include "store_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directory.h"
#include "store_path.h"

#define NAMES_MAX 1024 /* directories of a level: 2 characters; of 4 characters, 34 years */
#define NAME_MAX_LENGTH 4

/* ---- the heap ---- */

/* Returns whether a comes before b in the page's order. */
static bool precedes(const struct store_page *p, const char *a, const char *b)
{
	int order = strcmp(a, b);

	return p->is_newest_first ? order > 0 : order < 0;
}

static void swap(struct store_page *p, unsigned a, unsigned b)
{
	char id[ULID_LENGTH + 1];

	memcpy(id, p->id[a], sizeof id);
	memcpy(p->id[a], p->id[b], sizeof id);
	memcpy(p->id[b], id, sizeof id);
}

/* Moves an id towards the leaves until it comes behind its children. */
static void sink(struct store_page *p, unsigned at, unsigned count)
{
	for (;;) {
		unsigned last = at, left = 2 * at + 1;

		for (unsigned child = left; child < count && child <= left + 1; child++)
			if (precedes(p, p->id[last], p->id[child]))
				last = child;
		if (last == at)
			return;
		swap(p, at, last);
		at = last;
	}
}

static void offer(struct store_page *p, const char *id)
{
	if ((p->after[0] && strcmp(id, p->after) <= 0) ||
	    (p->before[0] && strcmp(id, p->before) >= 0))
		return;
	if (p->count < p->max) {
		unsigned at = p->count++;

		memcpy(p->id[at], id, ULID_LENGTH + 1);
		for (; at > 0 && precedes(p, p->id[(at - 1) / 2], p->id[at]); at = (at - 1) / 2)
			swap(p, at, (at - 1) / 2);
	} else if (precedes(p, id, p->id[0])) {
		memcpy(p->id[0], id, ULID_LENGTH + 1);
		sink(p, 0, p->count);
	}
}

static void sort(struct store_page *p)
{
	for (unsigned end = p->count; end > 1; end--) {
		swap(p, 0, end - 1);
		sink(p, 0, end - 1);
	}
}

/* ---- directories ---- */

/* Offers all ids in the directory. Returns 0 or -errno; one that has gone is empty. */
static int offer_all(struct store_page *p, int at, const char *name)
{
	DIR *dir = directory_list(at, name);
	const struct dirent *entry;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while ((entry = readdir(dir)))
		if (ulid_is_valid(entry->d_name, strlen(entry->d_name)))
			offer(p, entry->d_name);
	closedir(dir);
	return 0;
}

struct names {
	char name[NAMES_MAX][NAME_MAX_LENGTH + 1];
	unsigned count;
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Lists the entries with names of that length, which can be those of directories, sorted. */
static int list_names(int at, const char *name, size_t length, struct names *names)
{
	DIR *dir = directory_list(at, name);
	const struct dirent *entry;

	names->count = 0;
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (names->count < NAMES_MAX && (entry = readdir(dir)))
		if (strlen(entry->d_name) == length && entry->d_name[0] != '.')
			memcpy(names->name[names->count++], entry->d_name, length + 1);
	closedir(dir);
	qsort(names->name, names->count, sizeof names->name[0], compare);
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
static int offer_span(struct store_page *p, int root_fd, const char *span, struct names *shards)
{
	int err = list_names(root_fd, span, STORE_SHARD_LENGTH, shards);

	for (unsigned i = 0; i < shards->count && !err && p->count < p->max; i++) {
		unsigned at = p->is_newest_first ? shards->count - 1 - i : i;
		char prefix[STORE_SPAN_LENGTH + STORE_SHARD_LENGTH + 1], path[STORE_PATH_MAX];

		memcpy(prefix, span, STORE_SPAN_LENGTH);
		memcpy(prefix + STORE_SPAN_LENGTH, shards->name[at], STORE_SHARD_LENGTH + 1);
		if (!may_match(p, prefix))
			continue;
		store_shard_path(path, STORE_BY_TIME, prefix);
		err = offer_all(p, root_fd, path);
	}
	return err;
}

static int offer_by_time(struct store_page *p, int root_fd, struct names *spans,
                         struct names *shards)
{
	int err = list_names(root_fd, ".", STORE_SPAN_LENGTH, spans);

	for (unsigned i = 0; i < spans->count && !err && p->count < p->max; i++) {
		unsigned at = p->is_newest_first ? spans->count - 1 - i : i;

		if (may_match(p, spans->name[at]))
			err = offer_span(p, root_fd, spans->name[at], shards);
	}
	return err;
}

/* Images of earlier versions: any of them may belong before those that are listed by time. */
static int offer_by_tail(struct store_page *p, int root_fd, struct names *names)
{
	int err = list_names(root_fd, ".", STORE_SHARD_LENGTH, names);

	for (unsigned i = 0; i < names->count && !err; i++)
		err = offer_all(p, root_fd, names->name[i]);
	return err;
}

int store_page_read(int root_fd, struct store_page *p)
{
	struct names *names = malloc(2 * sizeof *names);

	p->count = 0;
	if (!names)
		return -ENOMEM;
	int err = offer_by_time(p, root_fd, names, &names[1]);

	if (!err)
		err = offer_by_tail(p, root_fd, names);
	free(names);
	sort(p);
	return err;
}

void store_page_advance(struct store_page *p)
{
	if (p->count == 0)
		return;
	memcpy(p->is_newest_first ? p->before : p->after, p->id[p->count - 1], ULID_LENGTH + 1);
}

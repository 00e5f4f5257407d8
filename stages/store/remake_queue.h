/*
 * remake_queue.h - images that are to get variants later, as files of <root>/.remake/.
 *
 * An entry is a file with the id as its name. So the queue survives a restart, and the commands of
 * darkroomd store add to it beside a running daemon. background/remake.h works on it. Any thread;
 * calls block.
 */
#ifndef DARKROOM_STORE_REMAKE_QUEUE_H
#define DARKROOM_STORE_REMAKE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

struct store;

#define REMAKE_QUEUE_NAMES_MAX (CONF_FILE_MAX * CONF_FILE_NAME_MAX)

struct remake_entry {
	unsigned attempts;                  /* that began so far */
	bool only_missing;                  /* not those that the image has with other settings */
	char names[REMAKE_QUEUE_NAMES_MAX]; /* variants, or files such as medium.avif; "": all */
};

/* Makes the directory, which belongs to the daemon's user. Returns 0 or -errno. The daemon. */
int remake_queue_make(struct store *s);

/* Adds the image, or replaces its entry. It is as durable as the next flush makes it. Returns 0 or
 * -errno; -ENOENT if no daemon has made the directory. */
int remake_queue_put(struct store *s, const char *id, const struct remake_entry *entry);

/* Reads an entry. Returns 0, -ENOENT, -EINVAL if it is not one, or -errno. */
int remake_queue_get(struct store *s, const char *id, struct remake_entry *entry);

/* Removes an entry. Returns 0, -ENOENT or -errno. */
int remake_queue_drop(struct store *s, const char *id);

/* Returns whether the image is in the queue. */
bool remake_queue_has(struct store *s, const char *id);

/* Returns the files that the entry names, one bit for each. */
uint32_t remake_entry_wanted(const struct remake_entry *entry, const struct conf *conf);

#endif

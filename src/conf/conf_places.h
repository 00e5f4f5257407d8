/*
 * conf_places.h - from which line of the configuration a key came, for messages of the start.
 *
 * Main thread.
 */
#ifndef DARKROOM_CONF_CONF_PLACES_H
#define DARKROOM_CONF_CONF_PLACES_H

struct conf_source;

/* Keeps the settings for conf_place(), in place of those of the call before. Takes their content,
 * and leaves *source empty. Returns what it keeps, valid until the next call. */
const struct conf_source *conf_places_keep(struct conf_source *source);

/* Returns "FILE:LINE: ", or "" if the key (SECTION.KEY) is not from a file. Valid until the next
 * call. */
const char *conf_place(const char *key);

#endif

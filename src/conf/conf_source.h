/*
 * conf_source.h - where settings come from: one list of named values from a file and -o overrides,
 * each with its place.
 *
 * Knows syntax only. Sections, keys and the meaning of values are the business of conf.c.
 */
#ifndef DARKROOM_CONF_CONF_SOURCE_H
#define DARKROOM_CONF_CONF_SOURCE_H

#include <stddef.h>

struct text;

struct conf_setting {
	char *section;        /* lower case */
	char *key;            /* lower case; NULL: this is the section's head itself */
	char *value;          /* NULL in a head */
	unsigned line;        /* in the file; 0: from an override */
	const char *override; /* borrowed; NULL: from the file */
};

struct conf_source {
	const char *path;          /* borrowed; may be NULL */
	const char *override_lead; /* stands before an override in messages */
	struct conf_setting *setting;
	size_t count, capacity;
};

/*
 * Reads the file (path NULL: none) and the overrides. An override replaces the file's value and
 * any earlier override. Every syntax error and every duplicate becomes a line of errors; all other
 * settings are in the list, so that their values can be checked in the same run. Returns 0, -EINVAL
 * if there were problems, or -errno if the file cannot be read (also reported). The caller calls
 * conf_source_fini() in any case.
 */
int conf_source_read(struct conf_source *s, const char *path, const char *const *overrides,
                     size_t override_count, struct text *errors);

/* As conf_source_read() for one setting SECTION.KEY=VALUE that is not from the command line. */
int conf_source_read_one(struct conf_source *s, const char *setting, struct text *errors);
void conf_source_fini(struct conf_source *s);

/* The setting, or with key NULL the section's head; NULL if it is not in the list. */
const struct conf_setting *conf_source_find(const struct conf_source *s, const char *section,
                                            const char *key);

/* Appends "FILE:LINE" or "-o TEXT"; "default" for setting NULL. */
void conf_source_where(const struct conf_source *s, const struct conf_setting *setting,
                       struct text *to);

/* Appends the line "PLACE: SECTION.KEY = "VALUE": MESSAGE" for the setting, or as much of it as is
 * known. */
void conf_source_report(const struct conf_source *s, const struct conf_setting *setting,
                        const char *message, struct text *errors);

/* ---- places for messages of the start; main thread ---- */

/* Keeps the settings for conf_place(), in place of those of the call before. Takes their content,
 * and leaves *source empty. Returns what it keeps, valid until the next call. */
const struct conf_source *conf_source_keep(struct conf_source *source);

/* Returns "FILE:LINE: ", or "" if the key (SECTION.KEY) is not from a file. Valid until the next
 * call. */
const char *conf_place(const char *key);

#endif

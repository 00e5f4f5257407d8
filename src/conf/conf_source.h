/*
 * conf_source.h - where settings come from: an INI file and -o overrides become one list of named
 * values, each with its place.
 *
 * Knows syntax only; which sections and keys exist, and what their values mean, is conf.c's matter.
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
 * Reads the file (NULL: none) and the overrides; an override takes the place of the file's value,
 * and a later one that of an earlier one. Every problem of syntax and every duplicate becomes a
 * line of errors; what is good is in the list all the same, so that its values can be checked in
 * the same go. Returns 0, -EINVAL if there were problems, or -errno if the file cannot be read
 * (reported, too). conf_source_fini() in any case.
 */
int conf_source_read(struct conf_source *s, const char *path, const char *const *overrides,
                     size_t override_count, struct text *errors);

/* The same for one override alone, which did not come from the command line. */
int conf_source_read_one(struct conf_source *s, const char *setting, struct text *errors);
void conf_source_fini(struct conf_source *s);

/* The setting, or with key NULL the section's head; NULL if there is none. */
const struct conf_setting *conf_source_find(const struct conf_source *s, const char *section,
                                            const char *key);

/* Appends "FILE:LINE" or "-o TEXT". setting NULL: "default". */
void conf_source_where(const struct conf_source *s, const struct conf_setting *setting,
                       struct text *to);

/* Appends the text for a message: in double quotes, its control bytes as '?', cut if very long. */
void conf_quote(struct text *to, const char *value);

#endif

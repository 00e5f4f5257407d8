/*
 * conf_keys.h - the table of all keys, and the sections of a configuration.
 *
 * To add a key, add a row in conf_rows.h. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_KEYS_H
#define DARKROOM_CONF_CONF_KEYS_H

#include <stddef.h>

#include "conf_value.h"

struct conf;
struct conf_variant;

struct conf_section {
	const char *name;  /* that of its rows */
	const char *title; /* as in a file; what follows a dot stands for a name */
	const char *help;  /* lines for the head of the section, or NULL */
	bool is_for_experiments;
	bool is_of_stage; /* there is one for each stage */
	size_t offset;    /* of its struct in struct conf, or of an array of them */
	size_t size;      /* of its struct */
	unsigned max; /* that a configuration may have, each with a name; 0: it has all of them */
	size_t count; /* offset of their number in struct conf */
};

/* A section of a configuration, such as [stage.blur]. */
struct conf_part {
	const struct conf_section *section;
	char name[64];  /* as in a file */
	size_t offset;  /* of its struct in struct conf */
	bool is_source; /* its stage is stage_table_is_source() */
};

/* The row at the index; NULL after the last. Rows of one section stand together. */
const struct conf_key *conf_key_at(size_t index);

/* The row of the key; section is that of the row. NULL: unknown. */
const struct conf_key *conf_key_find(const char *section, const char *name);

/* The section at the index, in the order of darkroomd --keys; NULL after the last. */
const struct conf_section *conf_section_at(size_t index);

/* The section that a file calls by the title, and the name behind the title's dot or "". NULL:
 * unknown. */
const struct conf_section *conf_section_find(const char *title, const char **name);

/* Writes the configuration's section at the index. Returns false after the last. */
bool conf_part_at(const struct conf *conf, size_t index, struct conf_part *part);

/* Writes the configuration's section with the name. Returns whether there is one. */
bool conf_part_find(const struct conf *conf, const char *name, struct conf_part *part);

/* The variants that a configuration without a file has; NULL after the last. */
const struct conf_variant *conf_reference_variant_at(size_t index);

#endif

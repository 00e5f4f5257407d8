/*
 * conf_keys.h - the table of all keys.
 *
 * To add a key, add a member in conf.h and a row in the conf_keys_SECTION.c of its section. Any
 * thread.
 */
#ifndef DARKROOM_CONF_CONF_KEYS_H
#define DARKROOM_CONF_CONF_KEYS_H

#include <stddef.h>

#include "conf_value.h"

struct conf_variant;

/* A section that exists once, unlike those of stages and variants. */
struct conf_section {
	const char *name;
	const char *help; /* lines for the head of the section, or NULL */
};

/* The row at the index; NULL after the last. Rows of one section stand together. */
const struct conf_key *conf_key_at(size_t index);

/* The row of the key; section is "stage", "group" or "variant" for those that have a name. NULL:
 * unknown. */
const struct conf_key *conf_key_find(const char *section, const char *name);

/* The section at the index, in the order of the shipped file; NULL after the last. */
const struct conf_section *conf_section_at(size_t index);

/* The variants that a configuration without a file has; NULL after the last. */
const struct conf_variant *conf_reference_variant_at(size_t index);

/* ---- for the files with the rows ---- */

struct conf_key_list {
	const struct conf_key *row;
	size_t count;
};

extern const struct conf_key_list conf_keys_server, conf_keys_client, conf_keys_access,
	conf_keys_overload, conf_keys_scheduler, conf_keys_store, conf_keys_variant;

extern const struct conf_choice conf_yes_no[], conf_yes_no_auto[];

/* Section, name and place of a key: in struct conf, or in the struct of one stage or variant. */
#define CONF_KEY(section_, name_, member_)                                                       \
	.section = #section_, .name = #name_, .offset = offsetof(struct conf, section_.member_), \
	.size = sizeof((struct conf *)NULL)->section_.member_
#define CONF_KEY_OF(section_, name_, member_)                                                      \
	.section = #section_, .name = #name_, .offset = offsetof(struct conf_##section_, member_), \
	.size = sizeof((struct conf_##section_ *)NULL)->member_

#define CONF_MS_PER_HOUR 3600000

#endif

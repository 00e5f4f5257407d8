/*
 * conf_live.c - compares configurations key by key: live keys are copied, others are named.
 *
 * Walks the table of keys. Any thread.
 */
#include "conf_live.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"
#include "stage_table.h"

struct take {
	struct text *others;
	unsigned taken;
};

static void take_section(struct take *t, const char *class, const char *section, bool may_be_live,
                         void *to, const void *from)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, class) != 0 || conf_value_equals(key, to, from))
			continue;
		if (key->is_live && may_be_live) {
			conf_value_copy(key, to, from);
			t->taken++;
		} else {
			text_printf(t->others, "%s.%s\n", section, key->name);
		}
	}
}

static void take_stages(struct take *t, struct conf *conf, const struct conf *next)
{
	for (unsigned i = 0; i < stage_table_count; i++) {
		char section[64];

		snprintf(section, sizeof section, "stage.%s", stage_table[i].name);
		/* Each thread of a source has a listener, which only a restart can open. */
		take_section(t, "stage", section, !stage_table[i].is_source, &conf->stage[i],
		             &next->stage[i]);
	}
}

/* Returns whether two sections of the class have equal values. */
static bool is_section_equal(const char *class, const void *a, const void *b)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++)
		if (strcmp(key->section, class) == 0 && !conf_value_equals(key, a, b))
			return false;
	return true;
}

/* Variants change as a whole: added, removed and changed ones together. */
static void take_variants(struct take *t, struct conf *conf, const struct conf *next)
{
	bool is_equal = conf->variant_count == next->variant_count;

	for (unsigned i = 0; i < conf->variant_count && is_equal; i++)
		is_equal = is_section_equal("variant", &conf->variant[i], &next->variant[i]) &&
		           strcmp(conf->variant[i].name, next->variant[i].name) == 0;
	if (is_equal)
		return;
	memcpy(conf->variant, next->variant, sizeof conf->variant);
	conf->variant_count = next->variant_count;
	t->taken++;
}

/* So do groups. */
static void take_groups(struct take *t, struct conf *conf, const struct conf *next)
{
	bool is_equal = conf->group_count == next->group_count;

	for (unsigned i = 0; i < conf->group_count && is_equal; i++)
		is_equal = is_section_equal("group", &conf->group[i], &next->group[i]) &&
		           strcmp(conf->group[i].name, next->group[i].name) == 0;
	if (is_equal)
		return;
	memcpy(conf->group, next->group, sizeof conf->group);
	conf->group_count = next->group_count;
	t->taken++;
}

unsigned conf_take_live(struct conf *conf, const struct conf *next, struct text *others)
{
	struct take t = { .others = others };
	const struct conf_section *section;

	for (size_t i = 0; (section = conf_section_at(i)); i++)
		take_section(&t, section->name, section->name, true, conf, next);
	take_stages(&t, conf, next);
	take_groups(&t, conf, next);
	take_variants(&t, conf, next);
	return t.taken;
}

/* ---- report ---- */

/* Appends ", SECTION.KEY = VALUE" for live keys that differ from their defaults. */
static void print_section(struct text *to, const char *class, const char *section, const void *base,
                          const void *defaults)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, class) != 0 || !key->is_live ||
		    conf_value_equals(key, base, defaults))
			continue;
		text_printf(to, ", %s.%s = ", section, key->name);
		conf_value_print(key, base, to);
	}
}

void conf_print_live(const struct conf *conf, struct text *to)
{
	static struct conf defaults;
	const struct conf_section *section;
	struct text ignored;

	text_init_growable(&ignored, 1);
	conf_load(&defaults, NULL, NULL, NULL, 0, &ignored);
	text_fini(&ignored);
	text_printf(to, "policy %s", conf->scheduler.policy);
	memcpy(defaults.scheduler.policy, conf->scheduler.policy, sizeof defaults.scheduler.policy);
	for (size_t i = 0; (section = conf_section_at(i)); i++)
		print_section(to, section->name, section->name, conf, &defaults);
	for (unsigned i = 0; i < conf->group_count; i++) {
		static const struct conf_group empty; /* so that all its keys are reported */
		char name[CONF_NAME_MAX + 8];

		snprintf(name, sizeof name, "group.%s", conf->group[i].name);
		print_section(to, "group", name, &conf->group[i], &empty);
	}
	for (unsigned i = 0; i < stage_table_count; i++) {
		char name[64];

		snprintf(name, sizeof name, "stage.%s", stage_table[i].name);
		print_section(to, "stage", name, &conf->stage[i], &defaults.stage[i]);
	}
}

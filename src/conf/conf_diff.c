/*
 * conf_diff.c - walks the table of keys; variants and groups are compared by name. Any thread.
 */
#include "conf_diff.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"
#include "stage_table.h"

struct diff {
	const char *where;
	struct text *to;
	unsigned count;
};

static void diff_section(struct diff *d, const char *class, const char *section, const void *base,
                         const void *other)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, class) != 0 || conf_value_equals(key, base, other))
			continue;
		text_printf(d->to, "  %s.%s = ", section, key->name);
		conf_value_print(key, base, d->to);
		text_printf(d->to, " (%s: ", d->where);
		conf_value_print(key, other, d->to);
		text_puts(d->to, ")\n");
		d->count++;
	}
}

/* Compares a variant or a group with that of the same name; NULL: there is none. */
static void diff_named(struct diff *d, const char *class, const char *name, const void *base,
                       const void *other)
{
	char section[CONF_NAME_MAX + 16];

	snprintf(section, sizeof section, "%s.%s", class, name);
	if (base && other) {
		diff_section(d, class, section, base, other);
		return;
	}
	text_printf(d->to, base ? "  %s (%s: it is not there)\n" : "  no %s (%s: it is there)\n",
	            section, d->where);
	d->count++;
}

static void diff_variants(struct diff *d, const struct conf *conf, const struct conf *other)
{
	for (unsigned i = 0; i < conf->variant_count; i++)
		diff_named(d, "variant", conf->variant[i].name, &conf->variant[i],
		           conf_variant_find(other, conf->variant[i].name));
	for (unsigned i = 0; i < other->variant_count; i++)
		if (!conf_variant_find(conf, other->variant[i].name))
			diff_named(d, "variant", other->variant[i].name, NULL, &other->variant[i]);
}

static void diff_groups(struct diff *d, const struct conf *conf, const struct conf *other)
{
	for (unsigned i = 0; i < conf->group_count; i++)
		diff_named(d, "group", conf->group[i].name, &conf->group[i],
		           conf_group_find(other, conf->group[i].name));
	for (unsigned i = 0; i < other->group_count; i++)
		if (!conf_group_find(conf, other->group[i].name))
			diff_named(d, "group", other->group[i].name, NULL, &other->group[i]);
}

unsigned conf_diff(const struct conf *conf, const struct conf *other, const char *where,
                   struct text *to)
{
	struct diff d = { .where = where, .to = to };
	const struct conf_section *section;
	char name[64];

	for (size_t i = 0; (section = conf_section_at(i)); i++)
		diff_section(&d, section->name, section->name, conf, other);
	for (unsigned i = 0; i < stage_table_count; i++) {
		snprintf(name, sizeof name, "stage.%s", stage_table[i].name);
		diff_section(&d, "stage", name, &conf->stage[i], &other->stage[i]);
	}
	diff_groups(&d, conf, other);
	diff_variants(&d, conf, other);
	return d.count;
}

/*
 * conf_compare.c - compares configurations section by section, and each by the table of keys.
 *
 * Any thread.
 */
#include "conf_compare.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"

static const void *base_of(const struct conf *conf, const struct conf_part *part)
{
	return (const char *)conf + part->offset;
}

/* Returns the section's next row whose values differ, from *index on; NULL: no other does. */
static const struct conf_key *next_different(const struct conf_section *section, const void *a,
                                             const void *b, size_t *index)
{
	const struct conf_key *key;

	while ((key = conf_key_at((*index)++)))
		if (strcmp(key->section, section->name) == 0 && !conf_value_equals(key, a, b))
			return key;
	return NULL;
}

/* ---- taking live keys ---- */

/* Returns the number of live keys that were taken. */
static unsigned take_part(const struct conf_part *part, void *to, const void *from,
                          struct text *others)
{
	const struct conf_key *key;
	unsigned taken = 0;

	for (size_t i = 0; (key = next_different(part->section, to, from, &i));) {
		/* Each thread of a source has a listener, which only a restart can open. */
		if (key->is_live && !part->is_source) {
			conf_value_copy(key, to, from);
			taken++;
		} else {
			text_printf(others, "%s.%s\n", part->name, key->name);
		}
	}
	return taken;
}

/* Groups and variants change as a whole: added, removed and changed ones together. */
static unsigned take_all(void *to, const void *from, size_t size)
{
	bool is_equal = memcmp(to, from, size) == 0;

	memcpy(to, from, size);
	return !is_equal;
}

unsigned conf_take_live(struct conf *conf, const struct conf *next, struct text *others)
{
	struct conf_part part;
	unsigned taken = 0;

	for (size_t i = 0; conf_part_at(conf, i, &part); i++)
		if (!part.section->max)
			taken += take_part(&part, (char *)conf + part.offset, base_of(next, &part),
			                   others);
	taken += take_all(conf->group, next->group, sizeof conf->group);
	taken += take_all(conf->variant, next->variant, sizeof conf->variant);
	conf->group_count = next->group_count;
	conf->variant_count = next->variant_count;
	return taken;
}

/* ---- reports ---- */

void conf_print_live(const struct conf *conf, struct text *to)
{
	static const struct conf_group empty; /* so that all keys of groups are reported */
	static struct conf defaults;
	const struct conf_key *key;
	struct conf_part part;
	struct text ignored;

	text_init_growable(&ignored, 1);
	conf_load(&defaults, NULL, NULL, NULL, 0, &ignored);
	text_fini(&ignored);
	text_printf(to, "policy %s", conf->scheduler.policy);
	memcpy(defaults.scheduler.policy, conf->scheduler.policy, sizeof defaults.scheduler.policy);
	for (size_t i = 0; conf_part_at(conf, i, &part); i++) {
		const void *base = base_of(conf, &part),
			   *other = part.section->max ? &empty : base_of(&defaults, &part);

		if (strcmp(part.section->name, "variant") == 0)
			continue;
		for (size_t row = 0; (key = next_different(part.section, base, other, &row));) {
			if (!key->is_live)
				continue;
			text_printf(to, ", %s.%s = ", part.name, key->name);
			conf_value_print(key, base, to);
		}
	}
}

unsigned conf_diff(const struct conf *conf, const struct conf *other, const char *where,
                   struct text *to)
{
	const struct conf_key *key;
	struct conf_part part, same;
	unsigned count = 0;

	for (size_t i = 0; conf_part_at(conf, i, &part); i++) {
		if (!conf_part_find(other, part.name, &same)) {
			text_printf(to, "  %s (%s: it is not there)\n", part.name, where);
			count++;
			continue;
		}
		const void *a = base_of(conf, &part), *b = base_of(other, &same);

		for (size_t row = 0; (key = next_different(part.section, a, b, &row)); count++) {
			text_printf(to, "  %s.%s = ", part.name, key->name);
			conf_value_print(key, a, to);
			text_printf(to, " (%s: ", where);
			conf_value_print(key, b, to);
			text_puts(to, ")\n");
		}
	}
	for (size_t i = 0; conf_part_at(other, i, &part); i++) {
		if (conf_part_find(conf, part.name, &same))
			continue;
		text_printf(to, "  no %s (%s: it is there)\n", part.name, where);
		count++;
	}
	return count;
}

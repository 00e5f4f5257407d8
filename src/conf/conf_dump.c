/*
 * conf_dump.c - writes a configuration as an INI file. Walks the table of keys. Any thread.
 */
#include "conf_dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"
#include "stage_table.h"

/* Appends the value so that reading gives it back. False: no notation does. */
static bool quote(const char *value, struct text *to)
{
	const char *mark = strchr(value, '"') ? "'" : "\"";

	if (!strpbrk(value, ";#\\") && *value != '"' && *value != '\'') {
		text_puts(to, value);
		return true;
	}
	text_printf(to, "%s%s%s", mark, value, mark);
	return !strchr(value, *mark);
}

static int dump_section(struct text *to, const char *class, const char *section, const void *base)
{
	const struct conf_key *key;
	int err = 0;

	text_printf(to, "[%s]\n", section);
	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		char data[2 * CONF_TEXT_MAX];
		struct text value;

		if (strcmp(key->section, class) != 0)
			continue;
		text_init(&value, data, sizeof data);
		conf_value_print(key, base, &value);
		text_printf(to, "%s = ", key->name);
		if (!quote(data, to))
			err = -EILSEQ;
		text_puts(to, "\n");
	}
	text_puts(to, "\n");
	return err;
}

int conf_dump(const struct conf *conf, struct text *to)
{
	const struct conf_section *plain;
	char section[64];
	int err = 0;

	for (size_t i = 0; (plain = conf_section_at(i)); i++)
		err = dump_section(to, plain->name, plain->name, conf) ? -EILSEQ : err;
	for (unsigned i = 0; i < stage_table_count; i++) {
		snprintf(section, sizeof section, "stage.%s", stage_table[i].name);
		err = dump_section(to, "stage", section, &conf->stage[i]) ? -EILSEQ : err;
	}
	for (unsigned i = 0; i < conf->group_count; i++) {
		snprintf(section, sizeof section, "group.%s", conf->group[i].name);
		err = dump_section(to, "group", section, &conf->group[i]) ? -EILSEQ : err;
	}
	for (unsigned i = 0; i < conf->variant_count; i++) {
		snprintf(section, sizeof section, "variant.%s", conf->variant[i].name);
		err = dump_section(to, "variant", section, &conf->variant[i]) ? -EILSEQ : err;
	}
	return to->overflowed ? -ENOMEM : err;
}

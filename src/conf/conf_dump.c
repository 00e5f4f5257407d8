/*
 * conf_dump.c - a configuration as the INI file that it could have come from: every key, whether it
 * was set or not. Walks the table of conf_keys.c. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_value.h"
#include "sched/graph.h"

/* Appends the value so that reading gives it back; false if no notation does. */
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
	const char *plain;
	char section[64];
	int err = 0;

	for (size_t i = 0; (plain = conf_section_at(i)); i++)
		err = dump_section(to, plain, plain, conf) ? -EILSEQ : err;
	for (unsigned i = 0; i < graph_row_count; i++) {
		snprintf(section, sizeof section, "stage.%s", graph_rows[i].class->name);
		err = dump_section(to, "stage", section, &conf->stage[i]) ? -EILSEQ : err;
	}
	for (unsigned i = 0; i < conf->variant_count; i++) {
		snprintf(section, sizeof section, "variant.%s", conf->variant[i].name);
		err = dump_section(to, "variant", section, &conf->variant[i]) ? -EILSEQ : err;
	}
	return to->overflowed ? -ENOMEM : err;
}

/*
 * conf_print.c - writes the table of keys as a commented INI file, and a configuration as an INI
 * file.
 *
 * Each key has its help text, then in parentheses what it accepts, and whether it is live.
 * scripts/keys-to-mdoc and scripts/completion.bash read this form. Any thread.
 */
#include "conf_print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"
#include "policy/policy.h"
#include "stage_table.h"

#define HELP_COLUMNS 70 /* of a policy */

static const char head[] =
	"; darkroomd.ini - every key with its default, as darkroomd --keys prints them.\n"
	";\n"
	"; Check a file with: darkroomd -t -c FILE. Set a key on the command line with:\n"
	"; -o SECTION.KEY=VALUE. A key that is left out has the default that is shown here.\n"
	"; The line below a description tells what the key accepts. A key that is \"live\" can change\n"
	"; while the daemon runs: edit the file and send SIGHUP, or darkroomd ctl set SECTION.KEY VALUE.\n"
	"; Sizes take K, M and G (powers of 1024; for pixels powers of 1000), durations us, ms, s, m,\n"
	"; h and d. A comment begins with ; or # at the beginning of a line or after a space. A value\n"
	"; that contains one of those needs double quotation marks.\n";

/* Appends every line of the text as a comment. */
static void print_comment(struct text *to, const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		text_printf(to, "; %.*s\n", (int)length, lines);
		lines += length + (lines[length] == '\n');
	}
}

/* Appends a policy as a row of a table, wrapped. */
static void print_policy(struct text *to, const struct policy_class *policy)
{
	const char *name = policy->name, *help = policy->help;

	while (*help) {
		size_t length = strlen(help);

		if (length > HELP_COLUMNS) {
			length = HELP_COLUMNS;
			while (length > 0 && help[length] != ' ')
				length--;
		}
		text_printf(to, ";   %-21s  %.*s\n", name, (int)length, help);
		help += length + (help[length] == ' ');
		name = "";
	}
}

static void print_key(struct text *to, const struct conf_key *key, const char *lead)
{
	text_puts(to, "\n");
	print_comment(to, key->help);
	for (size_t i = 0; key == conf_key_find("scheduler", "policy") && policy_at(i); i++)
		print_policy(to, policy_at(i));
	for (unsigned i = 0;
	     key == conf_key_find("variant", "operations") && operation_table_help(i); i++)
		print_comment(to, operation_table_help(i));
	text_puts(to, "; (");
	conf_value_describe(key, to);
	text_printf(to, ")%s\n", key->is_live ? " live" : "");
	text_printf(to, "%s%s =%s%s\n", lead, key->name,
	            key->default_value && *key->default_value ? " " : "",
	            key->default_value ? key->default_value : "");
}

static void print_stage_names(struct text *to)
{
	text_puts(to, "; Stages, in the order of the pipeline:");
	for (unsigned i = 0; i < stage_table_count(); i++)
		text_printf(to, "%s%s", i == 4 ? "\n; " : " ", stage_table_name(i));
	text_puts(to, ".\n");
}

static void print_reference_variants(struct text *to)
{
	const struct conf_variant *v;

	for (size_t i = 0; (v = conf_reference_variant_at(i)); i++)
		text_printf(to, "\n[variant.%s]\noperations = %s\nquality = %" PRIu64 "\n", v->name,
		            v->operations, v->quality);
}

static void print_section(struct text *to, const struct conf_section *s)
{
	const char *lead = strchr(s->title, '.') ? ";" : ""; /* a file need not have it */
	const struct conf_key *key;

	text_puts(to, "\n");
	if (strcmp(s->name, "stage") == 0)
		print_stage_names(to);
	if (s->help)
		print_comment(to, s->help);
	text_printf(to, "%s[%s]\n", lead, s->title);
	for (size_t i = 0; (key = conf_key_at(i)); i++)
		if (strcmp(key->section, s->name) == 0)
			print_key(to, key, lead);
	if (strcmp(s->name, "variant") == 0)
		print_reference_variants(to);
}

void conf_print_keys(struct text *to, bool has_experiments)
{
	const struct conf_section *s;

	text_puts(to, head);
	for (size_t i = 0; (s = conf_section_at(i)); i++)
		if (has_experiments || !s->is_for_experiments)
			print_section(to, s);
}

/* ---- a configuration ---- */

/* Appends a row with its value so that reading gives it back. Returns false if no notation does. */
static bool dump_key(struct text *to, const struct conf_key *key, const void *base)
{
	struct text value = TEXT_LOCAL(2 * CONF_TEXT_MAX);

	conf_value_print(key, base, &value);
	text_printf(to, "%s = ", key->name);
	const char *end = value.data + value.length;
	bool is_bare = !strpbrk(value.data, ";#\\") &&
	               (end == value.data || (!strchr("\"' ", *value.data) && end[-1] != ' '));
	const char *mark = is_bare ? "" : strchr(value.data, '"') ? "'" : "\"";

	text_printf(to, "%s%s%s\n", mark, value.data, mark);
	return is_bare || !strchr(value.data, *mark);
}

int conf_dump(const struct conf *conf, struct text *to)
{
	const struct conf_key *key;
	struct conf_part part;
	int err = 0;

	for (size_t i = 0; conf_part_at(conf, i, &part); i++) {
		text_printf(to, "[%s]\n", part.name);
		for (size_t k = 0; (key = conf_key_at(k)); k++)
			if (strcmp(key->section, part.section->name) == 0 &&
			    !dump_key(to, key, (const char *)conf + part.offset))
				err = -EILSEQ;
		text_puts(to, "\n");
	}
	return to->overflowed ? -ENOMEM : err;
}

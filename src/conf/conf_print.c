/*
 * conf_print.c - writes the table of keys as a commented INI file.
 *
 * Each key has its help text, then in parentheses what it accepts, and whether it is live.
 * scripts/keys-to-mdoc and scripts/completion.bash read this form. Any thread.
 */
#include "conf_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "conf.h"
#include "conf_keys.h"
#include "policy/policy.h"
#include "stage_table.h"

#define HELP_COLUMNS 70 /* of a policy */

static const char head[] =
	"; darkroomd.ini - the configuration of darkroomd: every key with its default.\n"
	"; Generated from the table of keys (make conf/darkroomd.ini); darkroomd --keys prints it.\n"
	";\n"
	"; Check a file with: darkroomd -t -c FILE. Set a key on the command line with:\n"
	"; -o SECTION.KEY=VALUE. A key that is left out has the default that is shown here.\n"
	"; The line below a description tells what the key accepts. A key that is \"live\" can change\n"
	"; while the daemon runs: edit the file and send SIGHUP, or darkroomd ctl set SECTION.KEY VALUE.\n"
	"; Sizes take K, M and G (powers of 1024; for pixels powers of 1000), durations us, ms, s, m\n"
	"; and h. A comment begins with ; or # at the beginning of a line or after a space. A value\n"
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
	text_puts(to, "; (");
	conf_value_describe(key, to);
	text_printf(to, ")%s\n", key->is_live ? " live" : "");
	text_printf(to, "%s%s =%s%s\n", lead, key->name,
	            key->default_value && *key->default_value ? " " : "",
	            key->default_value ? key->default_value : "");
}

static void print_section(struct text *to, const char *class, const char *section, const char *help,
                          const char *lead)
{
	const struct conf_key *key;

	text_puts(to, "\n");
	if (help)
		print_comment(to, help);
	text_printf(to, "%s[%s]\n", lead, section);
	for (size_t i = 0; (key = conf_key_at(i)); i++)
		if (strcmp(key->section, class) == 0)
			print_key(to, key, lead);
}

static void print_stages(struct text *to)
{
	char data[512];
	struct text help;

	text_init(&help, data, sizeof data);
	text_puts(&help, "Stages, in the order of the pipeline:");
	for (unsigned i = 0; i < stage_table_count; i++)
		text_printf(&help, "%s%s", i == 4 ? "\n" : " ", stage_table[i].name);
	text_puts(&help, ".\nEach may have a section.");
	print_section(to, "stage", "stage.NAME", data, ";");
}

static void print_groups(struct text *to)
{
	print_section(
		to, "group", "group.NAME",
		"Stages with a policy and threads of their own, up to 8 groups. NAME consists of\n"
		"a-z, 0-9, _ and -. The other stages stay in the group main, which has\n"
		"scheduler.policy and scheduler.threads. accept_read and disk_write have threads\n"
		"of their own in any case. More than one group needs layout.mode = shared.",
		";");
}

static void print_variants(struct text *to)
{
	const struct conf_variant *v;

	print_section(
		to, "variant", "variant.NAME",
		"What is made of every image: GET /images/ID/NAME.jpg. A file must have 1 to 16\n"
		"variants. NAME consists of a-z, 0-9, _ and -. Without a file there are the\n"
		"three at the end.",
		";");
	for (size_t i = 0; (v = conf_reference_variant_at(i)); i++)
		text_printf(to, "\n[variant.%s]\noperations = %s\nquality = %" PRIu64 "\n", v->name,
		            v->operations, v->quality);
}

void conf_print_keys(struct text *to)
{
	const struct conf_section *section;

	text_puts(to, head);
	for (size_t i = 0; (section = conf_section_at(i)); i++)
		print_section(to, section->name, section->name, section->help, "");
	print_groups(to);
	print_stages(to);
	print_variants(to);
}

/*
 * conf.c - turns settings into a configuration: names become keys, texts become values.
 *
 * conf_source.c reads the settings, conf_value.c knows the notation of values, and conf_keys.h has
 * the table of keys. Main thread.
 */
#include "conf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/suggest.h"
#include "base/text.h"
#include "conf_keys.h"
#include "conf_source.h"
#include "stage_table.h"

struct load {
	struct conf *conf;
	const struct conf_source *source;
	struct text *errors;
	bool has_failed;
};

/* ---- messages ---- */

__attribute__((format(printf, 3, 4))) static void report(struct load *l,
                                                         const struct conf_setting *at,
                                                         const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	l->has_failed = true;
	conf_source_report(l->source, at, message, l->errors);
}

/* Returns what follows the lead of the key of a controller, which had no lead in [overload]; NULL:
 * the key has none. */
static const char *without_lead(const char *name)
{
	static const char *const leads[] = { "overload_", "welsh_" };

	for (size_t i = 0; i < COUNT_OF(leads); i++)
		if (strncmp(name, leads[i], strlen(leads[i])) == 0)
			return name + strlen(leads[i]);
	return NULL;
}

/* Returns the key of experiments that had this name in earlier versions, or NULL. The own decoder
 * decoded Huffman codes only. */
static const struct conf_key *find_former(const struct conf_section *section, const char *name)
{
	bool is_overload = strcmp(section->name, "overload") == 0;
	const char *now = section->is_of_stage ? "experiment_stage" : "experiment";
	const struct conf_key *key;

	for (size_t i = 0; !section->max && (key = conf_key_at(i)); i++) {
		bool is_renamed = strcmp(key->name, "pixel_own") == 0;
		const char *former = is_renamed    ? "own_huffman"
		                     : is_overload ? without_lead(key->name)
		                                   : key->name;

		if (strcmp(key->section, now) == 0 && former && strcmp(former, name) == 0)
			return key;
	}
	return NULL;
}

static const char *title_of(const char *section)
{
	size_t i = 0;

	while (strcmp(conf_section_at(i)->name, section) != 0)
		i++;
	return conf_section_at(i)->title;
}

static void report_unknown_key(struct load *l, const struct conf_setting *at, const char *section)
{
	struct suggest suggest = { .wanted = at->key };
	const char *elsewhere = NULL;
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, section) == 0)
			suggest_offer(&suggest, key->name);
		else if (!elsewhere && strcmp(key->name, at->key) == 0)
			elsewhere = key->section;
	}
	if (elsewhere)
		report(l, at, "unknown key; it belongs to [%s]", title_of(elsewhere));
	else if (suggest.best)
		report(l, at, "unknown key; did you mean %s? CHANGES.md names former keys",
		       suggest.best);
	else
		report(l, at, "unknown key; CHANGES.md names former keys");
}

static void report_unknown_stage(struct load *l, const struct conf_setting *at, const char *name)
{
	struct suggest suggest = { .wanted = name };

	for (unsigned i = 0; i < stage_table_count(); i++)
		suggest_offer(&suggest, stage_table_name(i));
	report(l, at, "unknown stage%s", suggest_phrase(&suggest));
}

static void report_unknown_section(struct load *l, const struct conf_setting *at)
{
	struct suggest suggest = { .wanted = at->section };
	const struct conf_section *s;
	struct text titles = TEXT_LOCAL(256);

	for (size_t i = 0; (s = conf_section_at(i)); i++) {
		suggest_offer(&suggest, s->name);
		if (!s->is_for_experiments)
			text_printf(&titles, "%s%s", i ? ", " : "", s->title);
	}
	if (suggest.best)
		report(l, at, "unknown section; did you mean %s?", title_of(suggest.best));
	else
		report(l, at, "unknown section; expected one of %s", titles.data);
}

/* ---- sections ---- */

bool conf_is_variant_name(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length < CONF_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

static void set_defaults(const struct conf_section *section, void *base)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		char expected[256];

		if (strcmp(key->section, section->name) != 0 || !key->default_value)
			continue;
		int err =
			conf_value_parse(key, key->default_value, base, expected, sizeof expected);
		assert(!err); /* the row refuses its own default */
	}
}

const struct conf_variant *conf_variant_find(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (strcmp(conf->variant[i].name, name) == 0)
			return &conf->variant[i];
	return NULL;
}

/* Adds a group or a variant with its defaults. NULL: there is none to add, or no room, which is
 * reported if may_report. */
static void *add_section(struct load *l, const struct conf_setting *at, bool may_report)
{
	const char *name = NULL;
	const struct conf_section *s = conf_section_find(at->section, &name);
	unsigned *count = s ? (unsigned *)(void *)((char *)l->conf + s->count) : NULL;

	if (s && s->max && conf_is_variant_name(name) && *count < s->max) {
		char *added = (char *)l->conf + s->offset + (*count)++ * s->size;

		memcpy(added, name, strlen(name) + 1); /* a struct with a name begins with it */
		set_defaults(s, added);
		return added;
	}
	if (!may_report)
		return NULL;
	if (!s)
		report_unknown_section(l, at);
	else if (s->is_of_stage)
		report_unknown_stage(l, at, name);
	else if (!conf_is_variant_name(name))
		report(l, at, "expected %s with at most %d of a-z, 0-9, '_' and '-'", s->title,
		       CONF_NAME_MAX - 1);
	else
		report(l, at, "too many %ss: expected at most %u", s->name, s->max);
	return NULL;
}

static void apply_setting(struct load *l, const struct conf_setting *at)
{
	const char *ignored;
	struct conf_part part;
	char expected[512];
	/* A wrong section is reported once: at its head, or at the override. */
	void *base = conf_part_find(l->conf, at->section, &part)
	                     ? (char *)l->conf + part.offset
	                     : add_section(l, at, !at->key || at->override);

	if (!base || !at->key)
		return;
	const struct conf_section *section = conf_section_find(at->section, &ignored);
	const struct conf_key *key = conf_key_find(section->name, at->key),
			      *moved = key ? NULL : find_former(section, at->key);

	if (moved && (at->override || strcasecmp(at->value, moved->default_value) != 0))
		report(l, at, "now experiment%s.%s", strchrnul(at->section, '.'), moved->name);
	else if (!key && !moved)
		report_unknown_key(l, at, section->name);
	else if (key && conf_value_parse(key, at->value, base, expected, sizeof expected))
		report(l, at, "%s", expected);
	/* A moved key with its default, as in the shipped file of an earlier version, changes
	 * nothing. */
}

/* Applies every setting. 0 or -EINVAL. */
static int apply(struct conf *conf, const struct conf_source *source, struct text *errors)
{
	struct load load = { .conf = conf, .source = source, .errors = errors };

	for (size_t i = 0; i < source->count; i++)
		apply_setting(&load, &source->setting[i]);
	return load.has_failed ? -EINVAL : 0;
}

/* ---- public ---- */

int conf_load(struct conf *conf, struct conf_source *source, const char *path,
              const char *const *overrides, size_t override_count, struct text *errors)
{
	struct conf_source read;
	struct conf_part part;

	assert(stage_table_count() <= STAGE_COUNT_MAX);
	*conf = (struct conf){ 0 };
	for (size_t i = 0; conf_part_at(conf, i, &part); i++)
		set_defaults(part.section, (char *)conf + part.offset);
	for (size_t i = 0; !path && conf_reference_variant_at(i); i++)
		conf->variant[conf->variant_count++] = *conf_reference_variant_at(i);
	int err = conf_source_read(&read, path, overrides, override_count, errors);

	if ((!err || err == -EINVAL) && apply(conf, &read, errors))
		err = -EINVAL;
	if (source)
		*source = read;
	else
		conf_source_fini(&read);
	return err;
}

int conf_change(struct conf *conf, struct conf_source *source, const char *setting,
                struct text *errors)
{
	struct conf changed = *conf;
	int err = conf_source_read_one(source, setting, errors);

	if (!err)
		err = apply(&changed, source, errors);
	if (!err)
		*conf = changed;
	return err;
}

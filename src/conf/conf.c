/*
 * conf.c - turns settings into a configuration: names become keys, texts become values.
 *
 * conf_source.c reads the settings, conf_value.c knows the notation of values, and conf_keys.h has
 * the table of keys. Main thread.
 */
#include "conf.h"

#include <errno.h>
#include <string.h>

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

/* ---- names ---- */

static const char stage_prefix[] = "stage.", variant_prefix[] = "variant.",
		  group_prefix[] = "group.";

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The section's name in the table of keys: "stage" for "stage.blur". */
static const char *class_of(const char *section)
{
	return has_prefix(section, stage_prefix)     ? "stage"
	       : has_prefix(section, variant_prefix) ? "variant"
	       : has_prefix(section, group_prefix)   ? "group"
	                                             : section;
}

static bool has_instances(const char *class)
{
	return strcmp(class, "stage") == 0 || strcmp(class, "variant") == 0 ||
	       strcmp(class, "group") == 0;
}

static int stage_index(const char *name)
{
	for (unsigned i = 0; i < stage_table_count; i++)
		if (strcmp(stage_table[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* ---- messages ---- */

static void report(struct load *l, const struct conf_setting *at, const char *message)
{
	l->has_failed = true;
	conf_source_report(l->source, at, message, l->errors);
}

static void report_unknown_key(struct load *l, const struct conf_setting *at)
{
	const char *class = class_of(at->section), *elsewhere = NULL;
	struct suggest suggest = { .wanted = at->key };
	const struct conf_key *key;
	struct text message;
	char data[256];

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, class) == 0)
			suggest_offer(&suggest, key->name);
		else if (!elsewhere && strcmp(key->name, at->key) == 0)
			elsewhere = key->section;
	}
	text_init(&message, data, sizeof data);
	text_puts(&message, "unknown key");
	if (elsewhere)
		text_printf(&message, "; it belongs to [%s%s]", elsewhere,
		            has_instances(elsewhere) ? ".NAME" : "");
	else if (suggest.best)
		text_printf(&message, "; did you mean %s?", suggest.best);
	report(l, at, data);
}

static void report_unknown_stage(struct load *l, const struct conf_setting *at)
{
	struct suggest suggest = { .wanted = at->section + strlen(stage_prefix) };
	struct text message;
	char data[256];

	for (unsigned i = 0; i < stage_table_count; i++)
		suggest_offer(&suggest, stage_table[i].name);
	text_init(&message, data, sizeof data);
	text_puts(&message, "unknown stage");
	if (suggest.best)
		text_printf(&message, "; did you mean %s?", suggest.best);
	report(l, at, data);
}

static void report_unknown_section(struct load *l, const struct conf_setting *at)
{
	struct suggest suggest = { .wanted = at->section };
	struct text message;
	char data[256];

	for (size_t i = 0; conf_key_at(i); i++)
		suggest_offer(&suggest, conf_key_at(i)->section);
	text_init(&message, data, sizeof data);
	text_puts(&message, "unknown section; ");
	if (suggest.best && has_instances(suggest.best)) {
		text_printf(&message, "did you mean [%s.NAME]?", suggest.best);
	} else if (suggest.best) {
		text_printf(&message, "did you mean %s?", suggest.best);
	} else {
		text_puts(&message, "expected ");
		for (size_t i = 0; conf_section_at(i); i++)
			text_printf(&message, "%s, ", conf_section_at(i)->name);
		text_puts(&message, "stage.NAME, group.NAME or variant.NAME");
	}
	report(l, at, data);
}

/* ---- sections ---- */

bool conf_is_variant_name(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length < CONF_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

static void set_defaults(const char *class, void *base)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		char expected[256];

		if (strcmp(key->section, class) != 0 || !key->default_value)
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

const struct conf_group *conf_group_find(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->group_count; i++)
		if (strcmp(conf->group[i].name, name) == 0)
			return &conf->group[i];
	return NULL;
}

/* Returns whether a section of that name can be added, where `count` of at most `max` exist.
 * Otherwise it is reported if may_report. */
static bool may_add(struct load *l, const struct conf_setting *at, const char *name, unsigned count,
                    unsigned max, bool may_report)
{
	const char *class = class_of(at->section);
	struct text message;
	char data[128];

	text_init(&message, data, sizeof data);
	if (!conf_is_variant_name(name))
		text_printf(&message, "expected %s.NAME with at most %d of a-z, 0-9, '_' and '-'",
		            class, CONF_NAME_MAX - 1);
	else if (count == max)
		text_printf(&message, "too many %ss: expected at most %u", class, max);
	if (message.length && may_report)
		report(l, at, data);
	return !message.length;
}

/* Finds or adds the section's variant. NULL: it cannot be added, which is reported if may_report.
 */
static struct conf_variant *variant_of(struct load *l, const struct conf_setting *at,
                                       bool may_report)
{
	const char *name = at->section + strlen(variant_prefix);
	const struct conf_variant *found = conf_variant_find(l->conf, name);
	struct conf_variant *v;

	if (found)
		return &l->conf->variant[found - l->conf->variant];
	if (!may_add(l, at, name, l->conf->variant_count, CONF_VARIANT_MAX, may_report))
		return NULL;
	v = &l->conf->variant[l->conf->variant_count++];
	memcpy(v->name, name, strlen(name) + 1);
	set_defaults("variant", v);
	return v;
}

/* Does the same for a group. */
static struct conf_group *group_of(struct load *l, const struct conf_setting *at, bool may_report)
{
	const char *name = at->section + strlen(group_prefix);
	const struct conf_group *found = conf_group_find(l->conf, name);
	struct conf_group *g;

	if (found)
		return &l->conf->group[found - l->conf->group];
	if (!may_add(l, at, name, l->conf->group_count, CONF_GROUP_MAX, may_report))
		return NULL;
	g = &l->conf->group[l->conf->group_count++];
	memcpy(g->name, name, strlen(name) + 1);
	set_defaults("group", g);
	return g;
}

/* The struct with the section's fields; NULL if the section is wrong. That is reported once: at the
 * section's head, or at the override. */
static void *section_base(struct load *l, const struct conf_setting *at)
{
	bool may_report = !at->key || at->override;

	if (has_prefix(at->section, variant_prefix))
		return variant_of(l, at, may_report);
	if (has_prefix(at->section, group_prefix))
		return group_of(l, at, may_report);
	if (has_prefix(at->section, stage_prefix)) {
		int index = stage_index(at->section + strlen(stage_prefix));

		if (index >= 0)
			return &l->conf->stage[index];
		if (may_report)
			report_unknown_stage(l, at);
		return NULL;
	}
	for (size_t i = 0; conf_section_at(i); i++)
		if (strcmp(conf_section_at(i)->name, at->section) == 0)
			return l->conf;
	if (may_report)
		report_unknown_section(l, at);
	return NULL;
}

static void apply_setting(struct load *l, const struct conf_setting *at)
{
	const struct conf_key *key;
	char expected[512];
	void *base = section_base(l, at);

	if (!base || !at->key)
		return;
	key = conf_key_find(class_of(at->section), at->key);
	if (!key)
		report_unknown_key(l, at);
	else if (conf_value_parse(key, at->value, base, expected, sizeof expected))
		report(l, at, expected);
}

/* Applies every setting. 0 or -EINVAL. */
static int apply(struct conf *conf, const struct conf_source *source, struct text *errors)
{
	struct load load = { .conf = conf, .source = source, .errors = errors };

	for (size_t i = 0; i < source->count; i++)
		apply_setting(&load, &source->setting[i]);
	return load.has_failed ? -EINVAL : 0;
}

/* Hands the source to the caller, or releases it. */
static void finish(struct conf_source *source, struct conf_source *to)
{
	if (to)
		*to = *source;
	else
		conf_source_fini(source);
}

/* ---- public ---- */

int conf_load(struct conf *conf, struct conf_source *source, const char *path,
              const char *const *overrides, size_t override_count, struct text *errors)
{
	struct conf_source read;

	assert(stage_table_count <= STAGE_COUNT_MAX);
	*conf = (struct conf){ 0 };
	for (size_t i = 0; conf_section_at(i); i++)
		set_defaults(conf_section_at(i)->name, conf);
	for (unsigned i = 0; i < stage_table_count; i++)
		set_defaults("stage", &conf->stage[i]);
	for (size_t i = 0; !path && conf_reference_variant_at(i); i++)
		conf->variant[conf->variant_count++] = *conf_reference_variant_at(i);
	int err = conf_source_read(&read, path, overrides, override_count, errors);

	if ((!err || err == -EINVAL) && apply(conf, &read, errors))
		err = -EINVAL;
	finish(&read, source);
	return err;
}

int conf_change(struct conf *conf, struct conf_source *source, const char *setting,
                struct text *errors)
{
	struct conf changed = *conf;
	struct conf_source read;
	int err = conf_source_read_one(&read, setting, errors);

	if (!err)
		err = apply(&changed, &read, errors);
	if (!err)
		*conf = changed;
	finish(&read, source);
	return err;
}

/*
 * conf.c - the configuration: settings become values, and what must hold between them.
 *
 * Reading is conf_source.c's matter, the notation of values conf_value.c's, which keys there are
 * conf_keys.c's. Main thread.
 */
#include "conf.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/suggest.h"
#include "base/text.h"
#include "conf_source.h"
#include "conf_value.h"
#include "sched/graph.h"
#include "sched/schedule.h"
#include "sched/schedule_build.h"

struct load {
	struct conf *conf;
	const struct conf_source *source;
	struct text *errors;
	bool has_failed;
};

/* ---- names ---- */

static const char stage_prefix[] = "stage.", variant_prefix[] = "variant.";

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The section's name in the table: "stage" for "stage.blur". */
static const char *class_of(const char *section)
{
	return has_prefix(section, stage_prefix)     ? "stage"
	       : has_prefix(section, variant_prefix) ? "variant"
	                                             : section;
}

static const struct conf_key *find_key(const char *class, const char *name)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++)
		if (strcmp(key->section, class) == 0 && strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

/* ---- messages ---- */

static void report_place(struct load *l, const struct conf_setting *at)
{
	l->has_failed = true;
	conf_source_where(l->source, at, l->errors);
	text_puts(l->errors, ": ");
	if (at && at->override)
		return; /* names it already */
	if (at && at->key) {
		text_printf(l->errors, "%s.%s = ", at->section, at->key);
		conf_quote(l->errors, at->value);
		text_puts(l->errors, ": ");
	} else if (at) {
		text_printf(l->errors, "[%s]: ", at->section);
	}
}

static void report(struct load *l, const struct conf_setting *at, const char *message)
{
	report_place(l, at);
	text_printf(l->errors, "%s\n", message);
}

static void report_unknown_key(struct load *l, const struct conf_setting *at)
{
	const char *class = class_of(at->section), *elsewhere = NULL;
	struct suggest suggest = { .wanted = at->key };
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		if (strcmp(key->section, class) == 0)
			suggest_offer(&suggest, key->name);
		else if (strcmp(key->name, at->key) == 0)
			elsewhere = key->section;
	}
	report_place(l, at);
	text_puts(l->errors, "unknown key");
	if (elsewhere)
		text_printf(l->errors, "; it belongs to [%s%s]", elsewhere,
		            strcmp(elsewhere, "stage") == 0 || strcmp(elsewhere, "variant") == 0
		                    ? ".NAME"
		                    : "");
	else if (suggest.best)
		text_printf(l->errors, "; did you mean %s?", suggest.best);
	text_puts(l->errors, "\n");
}

static void report_unknown_section(struct load *l, const struct conf_setting *at)
{
	struct suggest suggest = { .wanted = at->section };

	report_place(l, at);
	if (has_prefix(at->section, stage_prefix)) {
		suggest.wanted += strlen(stage_prefix);
		for (unsigned i = 0; i < graph_row_count; i++)
			suggest_offer(&suggest, graph_rows[i].class->name);
		text_puts(l->errors, "unknown stage");
	} else {
		for (size_t i = 0; conf_key_at(i); i++)
			suggest_offer(&suggest, conf_key_at(i)->section);
		text_puts(l->errors, "unknown section");
	}
	if (suggest.best &&
	    (strcmp(suggest.best, "stage") == 0 || strcmp(suggest.best, "variant") == 0))
		text_printf(l->errors, "; did you mean [%s.NAME]?\n", suggest.best);
	else if (suggest.best)
		text_printf(l->errors, "; did you mean %s?\n", suggest.best);
	else
		text_puts(
			l->errors,
			"; expected server, log, scheduler, layout, limits, access, stage.NAME or variant.NAME\n");
}

/* ---- sections ---- */

static bool is_variant_name(const char *name)
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
		assert(!err); /* a default that its own row refuses */
	}
}

static struct conf_variant *find_variant(struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (strcmp(conf->variant[i].name, name) == 0)
			return &conf->variant[i];
	return NULL;
}

/* Finds or makes it; NULL: it cannot be, reported if may_report. */
static struct conf_variant *variant_of(struct load *l, const struct conf_setting *at,
                                       bool may_report)
{
	const char *name = at->section + strlen(variant_prefix);
	struct conf_variant *v = find_variant(l->conf, name);

	if (v)
		return v;
	if (!is_variant_name(name)) {
		if (may_report)
			report(l, at,
			       "expected variant.NAME with at most 31 of a-z, 0-9, '_' and '-'");
		return NULL;
	}
	if (l->conf->variant_count == CONF_VARIANT_MAX) {
		if (may_report)
			report(l, at, "too many variants: expected at most 16");
		return NULL;
	}
	v = &l->conf->variant[l->conf->variant_count++];
	memcpy(v->name, name, strlen(name) + 1);
	set_defaults("variant", v);
	return v;
}

static_assert(CONF_VARIANT_MAX == 16 && CONF_NAME_MAX == 32, "messages name these");

/* Where the section's keys are kept; NULL if there is no such section. What is wrong with it is
 * reported once: at its head, or at the override. */
static void *section_base(struct load *l, const struct conf_setting *at)
{
	bool may_report = !at->key || at->override;

	if (has_prefix(at->section, variant_prefix))
		return variant_of(l, at, may_report);
	if (has_prefix(at->section, stage_prefix)) {
		int index = graph_stage_index(at->section + strlen(stage_prefix));

		if (index >= 0)
			return &l->conf->stage[index];
	} else {
		for (size_t i = 0; conf_section_at(i); i++)
			if (strcmp(conf_section_at(i), at->section) == 0)
				return l->conf;
	}
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
	key = find_key(class_of(at->section), at->key);
	if (!key)
		report_unknown_key(l, at);
	else if (conf_value_parse(key, at->value, base, expected, sizeof expected))
		report(l, at, expected);
}

/* ---- contradictions ---- */

static void check_stage(struct load *l, unsigned index)
{
	const struct stage_class *class = graph_rows[index].class;
	const struct conf_stage *stage = &l->conf->stage[index];
	const struct conf_setting *kind, *pass;
	char section[sizeof stage_prefix + 64];

	snprintf(section, sizeof section, "%s%s", stage_prefix, class->name);
	kind = conf_source_find(l->source, section, "kind");
	pass = conf_source_find(l->source, section, "pass_through");
	if (class->poll) {
		if (stage->pass_through == CONF_YES)
			report(l, pass, "this stage is where events come from: expected no");
		if (stage->kind == STAGE_SHARED)
			report(l, kind,
			       "expected exclusive or partitioned: one event loop belongs to one thread");
	} else {
		if (stage->kind == STAGE_PARTITIONED)
			report(l, kind,
			       "expected shared or exclusive: only accept_read has instances");
		if (stage->kind == STAGE_EXCLUSIVE && stage->pass_through == CONF_YES)
			report(l, kind ? kind : pass,
			       "pass_through = yes lets any thread call it at any time: expected shared, or "
			       "pass_through = no");
	}
}

static void check_variants(struct load *l)
{
	for (unsigned i = 0; i < l->conf->variant_count; i++) {
		const struct conf_variant *v = &l->conf->variant[i];
		char section[sizeof variant_prefix + CONF_NAME_MAX];
		const struct conf_setting *at;

		snprintf(section, sizeof section, "%s%s", variant_prefix, v->name);
		if (v->operations[0] || conf_source_find(l->source, section, "operations"))
			continue; /* good, or reported already */
		at = conf_source_find(l->source, section, NULL);
		report(l, at ? at : conf_source_find(l->source, section, "quality"),
		       "has no operations: expected for example operations = scale 800x800 inside");
	}
}

/* A variant's name is that of its file. */
static void check_originals(struct load *l)
{
	if (l->conf->server.keep_originals == CONF_YES && find_variant(l->conf, "original"))
		report(l, conf_source_find(l->source, "variant.original", NULL),
		       "with server.keep_originals = yes, original.jpg is the uploaded file: expected another name");
}

static void check_limits(struct load *l)
{
	const struct conf_setting *body = conf_source_find(l->source, "limits", "body_bytes");
	const struct conf_setting *budget = conf_source_find(l->source, "limits", "memory_budget");
	struct text message;
	char data[256];

	if (l->conf->limits.body_bytes <= l->conf->limits.memory_budget / 2)
		return;
	text_init(&message, data, sizeof data);
	text_puts(&message, "bodies get at most half of limits.memory_budget = ");
	conf_value_format(find_key("limits", "memory_budget"), l->conf->limits.memory_budget,
	                  &message);
	text_puts(&message, ", and limits.body_bytes = ");
	conf_value_format(find_key("limits", "body_bytes"), l->conf->limits.body_bytes, &message);
	text_puts(&message, " is more: expected less or a larger budget");
	report(l, body ? body : budget, message.data);
}

/* One core: more would only matter where the machine's own number is asked for. */
static void check_schedule(struct load *l)
{
	struct schedule ignored;
	struct text message;
	char data[256];

	text_init(&message, data, sizeof data);
	if (schedule_build(&ignored, l->conf, 1, NULL, &message))
		report(l,
		       l->conf->layout.mode == CONF_LAYOUT_SHARED
		               ? conf_source_find(l->source, "scheduler", "policy")
		               : conf_source_find(l->source, "layout", "mode"),
		       message.data);
}

/* Without either nobody knows how to divide the stages. */
static void check_profile(struct load *l)
{
	if (l->conf->layout.mode == CONF_LAYOUT_PARTITION && !l->conf->layout.profile[0] &&
	    l->conf->layout.online != CONF_YES)
		report(l, conf_source_find(l->source, "layout", "mode"),
		       "expected layout.profile with what the stages weigh (darkroomd --profile, scripts/partition), or layout.online = yes");
}

/* Values that were refused are still at their defaults: what would follow from those is left
 * unsaid. */
static void check_contradictions(struct load *l, bool is_syntax_good)
{
	bool is_good = is_syntax_good && !l->has_failed;

	for (unsigned i = 0; i < graph_row_count; i++)
		check_stage(l, i);
	check_variants(l);
	if (!is_good)
		return;
	check_originals(l);
	check_limits(l);
	check_schedule(l);
	check_profile(l);
	if (l->conf->variant_count == 0) {
		text_printf(l->errors,
		            "%s: no variant: expected at least one section [variant.NAME]\n",
		            l->source->path);
		l->has_failed = true;
	}
}

/* ---- public ---- */

int conf_load(struct conf *conf, const char *path, const char *const *overrides,
              size_t override_count, struct text *errors)
{
	struct conf_source source;
	struct load load = { .conf = conf, .source = &source, .errors = errors };
	int err;

	assert(graph_row_count <= STAGE_COUNT_MAX);
	*conf = (struct conf){ 0 };
	for (size_t i = 0; conf_section_at(i); i++)
		set_defaults(conf_section_at(i), conf);
	for (unsigned i = 0; i < graph_row_count; i++)
		set_defaults("stage", &conf->stage[i]);
	for (size_t i = 0; !path && conf_reference_variant_at(i); i++)
		conf->variant[conf->variant_count++] = *conf_reference_variant_at(i);
	err = conf_source_read(&source, path, overrides, override_count, errors);
	if (err && err != -EINVAL)
		goto out;
	for (size_t i = 0; i < source.count; i++)
		apply_setting(&load, &source.setting[i]);
	check_contradictions(&load, !err);
	if (load.has_failed)
		err = -EINVAL;
out:
	conf_source_fini(&source);
	return err;
}

int conf_change(struct conf *conf, const char *setting, struct text *errors)
{
	struct conf changed = *conf;
	struct conf_source source;
	struct load load = { .conf = &changed, .source = &source, .errors = errors };
	int err = conf_source_read_one(&source, setting, errors);

	for (size_t i = 0; i < source.count; i++)
		apply_setting(&load, &source.setting[i]);
	check_contradictions(&load, !err);
	conf_source_fini(&source);
	if (err || load.has_failed)
		return err ? err : -EINVAL;
	*conf = changed;
	return 0;
}

void conf_where(const char *path, const char *const *overrides, size_t override_count,
                const char *section, const char *key, char *out, size_t size)
{
	struct conf_source source;
	struct text ignored, to;

	text_init(&to, out, size);
	text_init_growable(&ignored, 1 << 16);
	conf_source_read(&source, path, overrides, override_count,
	                 &ignored); /* what could be read is enough */
	conf_source_where(&source, conf_source_find(&source, section, key), &to);
	conf_source_fini(&source);
	text_fini(&ignored);
}

/*
 * check_all.c - checks across keys, and where in the file their problems are reported.
 *
 * Knows no file and no thread of its own: the scheduler, the tokens and the program check what is
 * theirs, here in one order. Main thread.
 */
#include "check_all.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "access/tokens.h"
#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_degrade.h"
#include "conf/conf_files.h"
#include "conf/conf_keys.h"
#include "conf/conf_source.h"
#include "conf/stage_table.h"
#include "layout/partition.h"
#include "options.h"
#include "program.h"
#include "sched/core/graph_table.h"
#include "sched/core/profile.h"
#include "sched/core/schedule.h"

#define ERRORS_MAX ((size_t)64 << 10)
#define S3 "store.kind = s3 "
#define FROM_ORIGINALS \
	"variants are made from the originals: expected no, or server.keep_originals = yes"
#define FROM_ORIGINALS_IDLE \
	"the files are made from the originals: expected upload, or server.keep_originals = yes"

struct checking {
	const struct check *check;
	const struct conf *conf;
	struct text *errors;
	int err;
};

/* ---- messages ---- */

static const struct conf_setting *find(const struct checking *c, const char *section,
                                       const char *key)
{
	return c->check->source ? conf_source_find(c->check->source, section, key) : NULL;
}

/* Reports a problem of the key, or with key NULL of the section. */
__attribute__((format(printf, 4, 5))) static void report(struct checking *c, const char *section,
                                                         const char *key, const char *format, ...)
{
	char message[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	c->err = -EINVAL;
	if (c->check->source)
		conf_source_report(c->check->source, find(c, section, key), message, c->errors);
	else
		text_printf(c->errors, "%s%s%s: %s\n", section, key ? "." : "", key ? key : "",
		            message);
}

/* Appends lines that name the key, behind its place. */
static void report_lines(struct checking *c, const char *section, const char *key,
                         const char *lines)
{
	if (c->check->source) {
		conf_source_where(c->check->source, find(c, section, key), c->errors);
		text_puts(c->errors, ": ");
	}
	text_puts(c->errors, lines);
}

struct rule {
	bool is_broken;
	const char *section, *key, *message;
};

static void report_broken(struct checking *c, const struct rule *rule, size_t count)
{
	for (const struct rule *end = rule + count; rule < end; rule++)
		if (rule->is_broken)
			report(c, rule->section, rule->key, "%s", rule->message);
}

/* ---- stages ---- */

static void check_stage(struct checking *c, unsigned index)
{
	const struct conf_stage *stage = &c->conf->stage[index];
	char section[64], experiment[64];

	snprintf(section, sizeof section, "stage.%s", stage_table_name(index));
	snprintf(experiment, sizeof experiment, "experiment.%s", stage_table_name(index));
	if ((stage->queue_max || stage->rate_max) && stage_table_is_source(index))
		report(c, section, stage->queue_max ? "queue_max" : "rate_max",
		       "expected 0: events enter the graph at this stage");
	else if (stage->queue_max && graph_stage_is_called(c->conf, index, false))
		report(c, section, "queue_max",
		       "the stage is called directly, so no event waits: expected 0, or "
		       "experiment.STAGE.pass_through = no");
	if (stage_table_is_source(index)) {
		if (stage->pass_through == CONF_YES)
			report(c, experiment, "pass_through",
			       "expected no: events enter the graph at this stage");
		if (stage->kind == STAGE_SHARED)
			report(c, experiment, "kind",
			       "expected exclusive or partitioned: an event loop belongs to one "
			       "thread");
		return;
	}
	if (stage->kind == STAGE_PARTITIONED)
		report(c, experiment, "kind",
		       "expected shared or exclusive: only accept_read has instances");
	if (stage->kind == STAGE_EXCLUSIVE && stage->pass_through == CONF_YES)
		report(c, experiment, find(c, experiment, "kind") ? "kind" : "pass_through",
		       "pass_through = yes lets any thread call it at any time: expected shared, "
		       "or pass_through = no");
}

/* ---- variants ---- */

static void check_operations(struct checking *c)
{
	for (unsigned i = 0; i < c->conf->variant_count; i++) {
		const struct conf_variant *v = &c->conf->variant[i];
		char section[CONF_NAME_MAX + 16];

		snprintf(section, sizeof section, "variant.%s", v->name);
		if (v->operations[0] || find(c, section, "operations"))
			continue; /* present, or refused and reported */
		report(c, section, find(c, section, NULL) ? NULL : "quality",
		       "has no operations: expected for example operations = scale 800x800 "
		       "inside");
	}
}

/* Refuses what has no effect, or none that anybody wants. */
static void check_formats(struct checking *c, const struct conf_variant *v)
{
	bool is_idle = v->when == CONF_WHEN_IDLE, has_avif = conf_variant_has(v, FILE_AVIF),
	     has_webp = conf_variant_has(v, FILE_WEBP);
	char section[CONF_NAME_MAX + 16];
	const struct rule rules[] = {
		{ v->effort == CONF_EFFORT_SMALL && !has_avif, section, "effort",
		  "small is of an AVIF: expected fast, or avif among the formats" },
		{ is_idle && !has_avif && !has_webp, section, "when",
		  "the JPEG is made at the upload: expected upload, or formats with avif or "
		  "webp" },
		{ is_idle && c->conf->server.keep_originals != CONF_YES, section, "when",
		  FROM_ORIGINALS_IDLE },
		{ is_idle && c->conf->store.kind == CONF_STORE_S3, section, "when",
		  S3 "does not provide when = idle: expected upload" },
		{ has_webp && v->chroma == CONF_CHROMA_444, section, "chroma",
		  "a WebP has half the resolution of colours: expected 420, or no webp" },
	};

	snprintf(section, sizeof section, "variant.%s", v->name);
	report_broken(c, rules, COUNT_OF(rules));
}

static void check_files_made(struct checking *c)
{
	unsigned count = conf_files_count(c->conf);

	for (unsigned i = 0; i < c->conf->variant_count; i++)
		check_formats(c, &c->conf->variant[i]);
	if (count > CONF_FILE_MAX)
		report(c, "variant", "formats",
		       "all variants together have %u files: expected at most %d", count,
		       CONF_FILE_MAX);
}

static void check_names(struct checking *c)
{
	const struct conf_source *source = c->check->source;

	if (c->conf->variant_count == 0) {
		c->err = -EINVAL;
		text_printf(c->errors,
		            "%s: no variant: expected at least one section [variant.NAME]\n",
		            source && source->path ? source->path : "configuration");
	}
	/* The file of a variant has its name. */
	if (conf_variant_find(c->conf, "original"))
		report(c, "variant.original", NULL,
		       "original.jpg is the uploaded file: expected another name");
}

static void check_plan(struct checking *c)
{
	char error[CONF_TEXT_MAX * 2], section[CONF_NAME_MAX + 16];
	unsigned variant;

	if (!program_check_variants(c->conf, &variant, error, sizeof error))
		return;
	snprintf(section, sizeof section, "variant.%s", c->conf->variant[variant].name);
	c->err = -EINVAL;
	report_lines(c, section, "operations", error);
	text_puts(c->errors, "\n");
}

/* ---- degradation ---- */

static void check_skipped(struct checking *c, const struct conf_degrade *degrade)
{
	const struct conf *conf = c->conf;
	unsigned skipped = 0;
	struct text names = TEXT_LOCAL(CONF_VARIANT_MAX * (CONF_NAME_MAX + 2));

	for (unsigned k = 0; k < conf->variant_count; k++)
		text_printf(&names, "%s %s", k ? "," : "", conf->variant[k].name);
	for (unsigned i = 0; i < degrade->count; i++) {
		const struct conf_degrade_step *step = &degrade->step[i];

		if (step->kind != CONF_DEGRADE_SKIP)
			continue;
		skipped++;
		if (conf_variant_find(conf, step->variant))
			continue;
		report(c, "overload", "degrade", "%s: expected one of the variants%s", step->text,
		       names.data);
		return;
	}
	if (skipped == conf->variant_count)
		report(c, "overload", "degrade",
		       "all variants would be skipped: expected at least one that remains");
}

static void check_degrade(struct checking *c)
{
	struct conf_degrade degrade;

	if (!conf_degrade_parse(c->conf->overload.degrade, &degrade) || degrade.count == 0)
		return; /* refused and reported, or off */
	if (c->conf->overload.controller == CONF_CONTROLLER_OFF)
		report(c, "overload", "degrade",
		       "the controller measures the load: expected another overload.controller "
		       "than off");
	check_skipped(c, &degrade);
}

/* ---- limits, schedule, layout ---- */

static bool needs_costs(const struct conf *conf)
{
	return conf->layout.mode == CONF_LAYOUT_PARTITION;
}

/* Keys that need others. */
static void check_rules(struct checking *c)
{
	const struct conf *conf = c->conf;
	bool has_originals = conf->server.keep_originals == CONF_YES;
	const struct rule rules[] = {
		{ conf->server.proxy_protocol == CONF_YES && !conf->server.trusted_proxies[0],
		  "server", "proxy_protocol",
		  "expected server.trusted_proxies with the addresses of the proxies" },
		{ conf->overload.backfill == CONF_YES && !has_originals, "overload", "backfill",
		  FROM_ORIGINALS },
		{ conf->store.make_missing == CONF_YES && !has_originals, "store", "make_missing",
		  FROM_ORIGINALS },
		/* A forgotten unit would remove every image. */
		{ conf->store.max_bytes && conf->store.max_bytes < conf->limits.body_bytes, "store",
		  "max_bytes",
		  "the store could not keep one upload: expected 0, or at least "
		  "limits.body_bytes" },
		{ needs_costs(conf) && !conf->layout.profile[0] && conf->layout.online != CONF_YES,
		  "layout", "mode",
		  "expected layout.profile with the costs of the stages (ctl profile, "
		  "scripts/partition), or layout.online = yes" },
	};

	report_broken(c, rules, COUNT_OF(rules));
}

/* What an S3 store needs. What works only with files is refused, and not ignored. */
static void check_store(struct checking *c)
{
	const struct conf *conf = c->conf;
	const struct rule rules[] = {
		{ !*conf->store.s3_endpoint, "store", "s3_endpoint",
		  S3 "needs store.s3_endpoint: expected a URL" },
		{ !*conf->store.s3_bucket, "store", "s3_bucket",
		  S3 "needs store.s3_bucket: expected a name" },
		{ !*conf->store.s3_credentials, "store", "s3_credentials",
		  S3 "needs store.s3_credentials: expected a path" },
		{ conf->server.respond_after == CONF_RESPOND_DECODE &&
		          conf->store.s3_spool == CONF_SPOOL_NONE,
		  "server", "respond_after",
		  S3 "does not provide server.respond_after = decode without store.s3_spool: "
		     "expected file" },
		{ conf->store.make_missing == CONF_YES, "store", "make_missing",
		  S3 "does not provide store.make_missing: expected no" },
		{ conf->overload.backfill == CONF_YES, "overload", "backfill",
		  S3 "does not provide overload.backfill: expected no" },
		{ conf->store.max_bytes > 0, "store", "max_bytes",
		  S3 "does not provide store.max_bytes: expected 0" },
	};

	if (conf->store.kind == CONF_STORE_S3)
		report_broken(c, rules, COUNT_OF(rules));
}

static void check_limits(struct checking *c)
{
	uint64_t budget = c->conf->limits.memory_budget, bytes = c->conf->limits.body_bytes;
	struct text budget_text = TEXT_LOCAL(32), bytes_text = TEXT_LOCAL(32);

	if (bytes <= budget / 2)
		return;
	conf_value_format(conf_key_find("limits", "memory_budget"), budget, &budget_text);
	conf_value_format(conf_key_find("limits", "body_bytes"), bytes, &bytes_text);
	report(c, "limits", find(c, "limits", "body_bytes") ? "body_bytes" : "memory_budget",
	       "bodies get at most half of limits.memory_budget = %s, and limits.body_bytes = %s "
	       "is more: expected less or a larger budget",
	       budget_text.data, bytes_text.data);
}

/* Returns whether the groups are right. */
static bool check_groups(struct checking *c)
{
	struct stage_groups_place place;
	struct text message = TEXT_LOCAL(256);
	char section[CONF_NAME_MAX + 16];
	const struct conf_setting *at = NULL;

	if (!stage_groups_check(c->conf, &place, &message))
		return true;
	snprintf(section, sizeof section, "group.%s", c->conf->group[place.group].name);
	/* The key's setting if there is one, or any of the section. */
	const char *const keys[] = { place.key, NULL, "stages", "policy", "threads" };

	for (size_t i = !place.key; i < COUNT_OF(keys) && !at; i++)
		at = find(c, section, keys[i]);
	c->err = -EINVAL;
	if (at)
		conf_source_report(c->check->source, at, message.data, c->errors);
	else /* another key, or a merged configuration */
		text_printf(c->errors, "%s%s%s: %s\n", section, place.key ? "." : "",
		            place.key ? place.key : "", message.data);
	return false;
}

/* Builds a schedule for one core. With more cores only their number could differ. */
static void check_schedule(struct checking *c)
{
	bool is_shared = c->conf->layout.mode == CONF_LAYOUT_SHARED;
	struct schedule ignored;
	struct text message = TEXT_LOCAL(256);

	if (schedule_build(&ignored, c->conf, 1, NULL, &message))
		report(c, is_shared ? "scheduler" : "layout", is_shared ? "policy" : "mode", "%s",
		       message.data);
}

/* ---- files ---- */

static void check_files(struct checking *c)
{
	struct partition_weights ignored;
	struct text profile_errors;

	c->err = tokens_check_file(c->conf->access.tokens_file, c->errors);
	if (c->err || !needs_costs(c->conf) || !c->conf->layout.profile[0])
		return;
	text_init_growable(&profile_errors, ERRORS_MAX);
	c->err = profile_read(&ignored, c->conf->layout.profile, &profile_errors);
	if (c->err)
		report_lines(c, "layout", "profile", profile_errors.data);
	text_fini(&profile_errors);
}

/* ---- all ---- */

int check_all(const struct check *check, const struct conf *conf, struct text *errors)
{
	struct checking c = { .check = check, .conf = conf, .errors = errors };

	for (unsigned i = 0; i < stage_table_count(); i++)
		check_stage(&c, i);
	check_operations(&c);
	/* A refused value still has its default, and conclusions from it would mislead. */
	if (check->has_errors)
		return -EINVAL;
	check_names(&c);
	check_files_made(&c);
	check_limits(&c);
	check_degrade(&c);
	check_rules(&c);
	check_store(&c);
	if (check_groups(&c))
		check_schedule(&c);
	if (!c.err)
		check_plan(&c);
	if (!c.err && check->check_files)
		check_files(&c);
	return c.err;
}

int check_load(const struct options *o, bool check_files, struct conf *conf, struct text *errors)
{
	struct conf_source source;
	int err = conf_load(conf, &source, o->config_path, o->overrides, o->override_count, errors);
	const struct check check = { .source = conf_source_keep(&source),
		                     .has_errors = err != 0,
		                     .check_files = check_files };

	if (!err || err == -EINVAL)
		err = check_all(&check, conf, errors);
	return err;
}

int check_change(const char *setting, struct conf *conf, struct text *errors)
{
	struct conf_source source;
	struct conf changed = *conf;
	int err = conf_change(&changed, &source, setting, errors);
	const struct check check = { .source = &source, .has_errors = err != 0 };

	if (!err)
		err = check_all(&check, &changed, errors);
	conf_source_fini(&source);
	if (!err)
		*conf = changed;
	return err;
}

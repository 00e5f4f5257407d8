/*
 * stage_groups.c - the checks of the sections [group.NAME], and the stage groups made from them.
 *
 * Knows stages by their rows only. Pure.
 */
#include "stage_groups.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/suggest.h"
#include "base/text.h"
#include "conf/conf.h"
#include "graph_table.h"
#include "mechanisms.h"
#include "policy/policy.h"
#include "schedule.h"

#define SEPARATORS " \t"

/* ---- names of stages ---- */

/* Moves *at behind the next name, which it copies. Returns false after the last. */
static bool next_name(const char **at, char name[static CONF_TEXT_MAX])
{
	const char *start = *at + strspn(*at, SEPARATORS);
	size_t length = strcspn(start, SEPARATORS);

	memcpy(name, start, length);
	name[length] = '\0';
	*at = start + length;
	return length > 0;
}

static void print_unknown(const char *name, struct text *error)
{
	struct suggest suggest = { .wanted = name };

	for (unsigned i = 0; i < graph_row_count; i++)
		suggest_offer(&suggest, graph_rows[i].class->name);
	text_printf(error, "%s is not a stage", name);
	if (suggest.best)
		text_printf(error, "; did you mean %s?", suggest.best);
}

/* Adds the named stage to *own, unless it is in *all, the stages of this and earlier groups. */
static int add_stage(const char *name, stage_set *all, stage_set *own, struct text *error)
{
	int index = graph_stage_index(name);

	if (index < 0)
		print_unknown(name, error);
	else if (graph_stage_group((unsigned)index) != GROUP_MAIN)
		text_printf(error, "%s has threads of its own in any case: expected other stages",
		            name);
	else if (stage_set_has(*all, (unsigned)index))
		text_printf(error, "%s is named twice: expected each stage in one group", name);
	if (error->length)
		return -EINVAL;
	*all |= stage_set_of((unsigned)index);
	*own |= stage_set_of((unsigned)index);
	return 0;
}

static int parse_stages(const struct conf_group *g, stage_set *all, stage_set *own,
                        struct text *error)
{
	const char *at = g->stages;
	char name[CONF_TEXT_MAX];
	int err = 0;

	while (!err && next_name(&at, name))
		err = add_stage(name, all, own, error);
	return err;
}

/* ---- checks ---- */

static stage_set queued_stages(const struct conf *conf)
{
	stage_set stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN && !graph_stage_is_called(conf, i))
			stages |= stage_set_of(i);
	return stages;
}

/* Checks the section, and adds its stages to *all. */
static int check_group(const struct conf *conf, const struct conf_group *g, stage_set *all,
                       const char **key, struct text *error)
{
	stage_set own = 0;

	*key = NULL;
	if (!strcmp(g->name, "main") || !strcmp(g->name, "io") || !strcmp(g->name, "disk")) {
		text_puts(error, "io, main and disk are groups of the daemon: expected another "
		                 "name");
		return -EINVAL;
	}
	if (!g->stages[0]) {
		text_puts(error, "has no stages: expected for example stages = scale blur");
		return -EINVAL;
	}
	*key = "stages";
	int err = parse_stages(g, all, &own, error);

	if (!err && !(own & queued_stages(conf))) {
		text_puts(error, "expected a stage that has a queue (pass_through = no)");
		err = -EINVAL;
	}
	return err;
}

static bool is_per_connection(const char *policy)
{
	return policy_find(policy)->mechanism == POLICY_THREAD_PER_CONNECTION;
}

/* Checks what several groups cannot have. */
static int check_together(const struct conf *conf, bool has_main, struct stage_groups_place *place,
                          struct text *error)
{
	*place = (struct stage_groups_place){ .group = 0 };
	if (conf->layout.mode != CONF_LAYOUT_SHARED)
		text_puts(error, "several groups need layout.mode = shared");
	else if (has_main && is_per_connection(conf->scheduler.policy))
		text_puts(error, "scheduler.policy = thread-per-connection calls the stages of all "
		                 "groups: expected another policy");
	for (unsigned i = 0; i < conf->group_count && !error->length; i++)
		if (is_per_connection(conf->group[i].policy)) {
			*place = (struct stage_groups_place){ .group = i, .key = "policy" };
			text_puts(error, "thread-per-connection calls the stages of all groups: "
			                 "expected another policy");
		}
	return error->length ? -EINVAL : 0;
}

int stage_groups_check(const struct conf *conf, struct stage_groups_place *place,
                       struct text *error)
{
	stage_set all = 0;

	for (place->group = 0; place->group < conf->group_count; place->group++) {
		int err = check_group(conf, &conf->group[place->group], &all, &place->key, error);

		if (err)
			return err;
	}
	bool has_main = queued_stages(conf) & ~all;

	return conf->group_count + has_main > 1 ? check_together(conf, has_main, place, error) : 0;
}

/* ---- building ---- */

static void add_group(struct schedule *s, const char *name, const char *policy, uint64_t threads,
                      stage_set stages)
{
	const struct policy_class *class = policy_find(policy);
	unsigned index = s->group_count++;
	struct stage_group *g = &s->group[index];

	assert(class); /* validated with the configuration */
	*g = (struct stage_group){ .policy = class,
		                   .policy_index = policy_index(class),
		                   .mechanism = mechanism_of(class->mechanism),
		                   .can_steal = class->wants_ready,
		                   .threads = threads };
	snprintf(g->name, sizeof g->name, "%s", name);
	for (unsigned i = 0; i < graph_row_count; i++)
		if (stage_set_has(stages, i))
			s->stage[i].group = index;
}

static int check(const struct conf *conf, struct text *error)
{
	struct stage_groups_place place;
	struct text message;
	char data[256];

	text_init(&message, data, sizeof data);
	int err = stage_groups_check(conf, &place, &message);

	if (err && error)
		text_printf(error, "group.%s%s%s: %s", conf->group[place.group].name,
		            place.key ? "." : "", place.key ? place.key : "", data);
	return err;
}

int stage_groups_build(struct schedule *s, const struct conf *conf, struct text *error)
{
	stage_set all = 0, own[CONF_GROUP_MAX] = { 0 };
	struct text ignored;
	char data[1];
	int err = check(conf, error);

	if (err)
		return err;
	text_init(&ignored, data, sizeof data);
	for (unsigned i = 0; i < conf->group_count; i++)
		parse_stages(&conf->group[i], &all, &own[i], &ignored);
	/* Stages that are called directly and that no section names are in the first group, whose
	 * workers serve what was queued before. */
	if (queued_stages(conf) & ~all || conf->group_count == 0)
		add_group(s, "main", conf->scheduler.policy, conf->scheduler.threads, 0);
	for (unsigned i = 0; i < conf->group_count; i++)
		add_group(s, conf->group[i].name, conf->group[i].policy, conf->group[i].threads,
		          own[i]);
	return 0;
}

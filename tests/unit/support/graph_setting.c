/* graph_setting.c - the configuration of a setting, and what must hold under it. */
#include <stdio.h>
#include <string.h>

#include "graph_harness.h"

/* An exclusive source has one I/O thread, but thread-per-connection needs several. */
static enum stage_kind kind_of(const struct setting *setting, unsigned stage)
{
	bool is_per_connection =
		policy_find(setting->policy)->mechanism == POLICY_THREAD_PER_CONNECTION;

	if (setting->kinds == AS_DECLARED ||
	    (stage == REPLY && (setting->kinds == ALL_SHARED || is_per_connection)))
		return graph_rows[stage].class->kind;
	return setting->kinds == ALL_SHARED ? STAGE_SHARED : STAGE_EXCLUSIVE;
}

static void add_group(struct conf *conf, const char *policy)
{
	struct conf_group *g = &conf->group[conf->group_count++];

	snprintf(g->name, sizeof g->name, "back");
	snprintf(g->stages, sizeof g->stages, "third");
	snprintf(g->policy, sizeof g->policy, "%s", policy);
	g->threads = 2;
}

void run_conf(struct conf *conf, const struct setting *setting)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", setting->policy);
	conf->scheduler.threads = WORKERS;
	conf->experiment.spin_us = setting->spin_us;
	conf->scheduler.service = setting->service;
	conf->experiment.service_events = 3;
	conf->experiment.service_time_us = 20;
	conf->experiment.cutoff_us = 1;
	conf->scheduler.discipline = setting->discipline;
	conf->experiment.age_ms = 1;
	conf->layout.mode = setting->layout;
	conf->layout.replicas = conf->layout.parts = setting->domains ? setting->domains : 2;
	conf->experiment.steal = setting->steals_across_replicas ? CONF_YES : CONF_NO;
	conf->layout.online = setting->is_online ? CONF_YES : CONF_NO;
	conf->experiment.online_interval_ms = 1000;
	for (unsigned i = 0; i < graph_row_count; i++) {
		conf->stage[i].threads = CONF_AUTO;
		conf->stage[i].kind = kind_of(setting, i);
		conf->stage[i].threads_max = 6;
	}
	conf->stage[FIRST].threshold_events = 5;
	conf->stage[THIRD].threshold_interval_us = 200;
	conf->stage[THIRD].threads = WORKERS; /* seda */
	conf->stage[DISK].threads = 2;
	conf->stage[REPLY].threads = IO_THREADS;
	if (setting->third_policy)
		add_group(conf, setting->third_policy);
}

void run_describe(const struct setting *setting)
{
	static const char *const layout[] = { "shared", "replicate", "partition" };

	snprintf(
		run.name, sizeof run.name,
		"policy %s and %s, service %d, discipline %d, kinds %d, layout %s (%u%s), spin %u us, "
		"%u events",
		setting->policy, setting->third_policy ? setting->third_policy : "no other",
		(int)setting->service, (int)setting->discipline, (int)setting->kinds,
		layout[setting->layout], setting->domains ? setting->domains : 2,
		setting->steals_across_replicas ? ", with help" : "", setting->spin_us, run.events);
}

/* Under drain, the first stage serves the smallest event. */
static bool is_by_size(const struct setting *setting, unsigned stage)
{
	return setting->discipline == CONF_DISCIPLINE_SRPT ||
	       (setting->discipline == CONF_DISCIPLINE_AUTO && stage == FIRST &&
	        strcmp(setting->policy, "drain") == 0);
}

void run_expect(const struct setting *setting)
{
	for (unsigned i = 0; i < STAGES; i++) {
		run.is_exclusive[i] = kind_of(setting, i) == STAGE_EXCLUSIVE;
		run.is_ordered[i] =
			kind_of(setting, i) == STAGE_PARTITIONED ||
			(run.is_exclusive[i] && !is_by_size(setting, i) && !setting->is_switched);
	}
}

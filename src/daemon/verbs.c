/*
 * verbs.c - prints the configuration and what follows from it. Main thread.
 */
#include "verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "check_all.h"
#include "conf/conf.h"
#include "conf/conf_print.h"
#include "daemon/sandbox/sandbox.h"
#include "layout/cores.h"
#include "layout/topology.h"
#include "log/log.h"
#include "options.h"
#include "sched/core/graph_table.h"
#include "sched/core/profile.h"
#include "sched/core/schedule.h"

#define OUTPUT_MAX ((size_t)1 << 20)

/* Prints the text and releases it. */
static int finish(struct text *text)
{
	fputs(text->data, stdout);
	text_fini(text);
	return options_finish_output();
}

int verb_check(const struct options *o, const struct conf *conf)
{
	struct text sandbox = TEXT_LOCAL(512);

	if (check_start(conf))
		return EX_CONFIG;
	if (o->quiet)
		return EXIT_SUCCESS;
	sandbox_describe(conf, &sandbox);
	fprintf(stderr, "%s: the configuration is valid\n%s\n",
	        o->config_path ? o->config_path : "built-in values", sandbox.data);
	return EXIT_SUCCESS;
}

int verb_dump(const struct conf *conf)
{
	struct text text;

	text_init_growable(&text, OUTPUT_MAX);
	int err = conf_dump(conf, &text);

	if (!err)
		return finish(&text);
	fprintf(stderr, "darkroomd: cannot write the configuration as an INI file: %s\n",
	        err == -EILSEQ ? "a value has both kinds of quotation marks" : strerror(-err));
	text_fini(&text);
	return EXIT_FAILURE;
}

/* ---- the place of every worker under a configuration ---- */

struct report {
	struct text *to;
	struct topology *topology;
	bool has_profile;
	struct partition_weights weights; /* from the profile */
	struct schedule schedule;
};

static double per_cent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_worker(const struct report *r, unsigned worker)
{
	const struct schedule *s = &r->schedule;
	struct topology_range cores = domains_worker_cores(s, worker);

	text_printf(r->to, "  worker %-3u", worker);
	if (cores.count == 1)
		text_printf(r->to, "  core %u  CPU %u  node %u", cores.first,
		            topology_core(r->topology, cores.first)->cpu,
		            topology_core(r->topology, cores.first)->node);
	else if (cores.count)
		text_printf(r->to, "  cores %u-%u", cores.first, cores.first + cores.count - 1);
	else
		text_puts(r->to, "  any core");
	bool is_pool = schedule_group_of_worker(s, worker)->policy->mechanism == POLICY_POOL;

	for (unsigned i = 0; i < graph_row_count && is_pool; i++)
		if (stage_set_has(s->visit_set[worker] & ~s->pass_through, i))
			text_printf(r->to, "  %s", graph_rows[i].class->name);
	text_puts(r->to, "\n");
}

/* Appends the stages of a part, with their shares of the work if that is known. */
static void print_stages(const struct report *r, unsigned part)
{
	const struct partition *p = &r->schedule.partition;
	uint64_t load_ns = 0;

	for (unsigned i = 0; i < p->part_count; i++)
		load_ns += p->load_ns[i];
	if (r->has_profile)
		text_printf(r->to, ", %.1f %% of the work", per_cent(p->load_ns[part], load_ns));
	text_puts(r->to, ":");
	for (unsigned i = 0; i < p->stage_count; i++) {
		if (p->part[i] == part)
			text_printf(r->to, " %s", graph_rows[i].class->name);
		if (p->part[i] == part && r->has_profile)
			text_printf(r->to, " (%.1f %%)", per_cent(r->weights.stage_ns[i], load_ns));
	}
}

static void print_group_stages(const struct report *r, unsigned group)
{
	text_puts(r->to, ":");
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN && r->schedule.stage[i].group == group &&
		    !stage_set_has(r->schedule.pass_through, i))
			text_printf(r->to, " %s", graph_rows[i].class->name);
}

static void print_domain(const struct report *r, unsigned domain)
{
	static const char *const name[] = { [CONF_LAYOUT_SHARED] = "Shared",
		                            [CONF_LAYOUT_REPLICATE] = "Replica",
		                            [CONF_LAYOUT_PARTITION] = "Part" };
	const struct schedule *s = &r->schedule;

	if (s->group_count > 1)
		text_printf(r->to, "\nGroup %s, policy %s", s->group[domain].name,
		            s->group[domain].policy->name);
	else
		text_printf(r->to, "\n%s %u", name[s->layout], domain);
	text_printf(r->to, ", workers %u", worker_set_count(&s->domain_workers[domain]));
	if (s->layout == CONF_LAYOUT_PARTITION)
		print_stages(r, domain);
	if (s->group_count > 1)
		print_group_stages(r, domain);
	text_puts(r->to, "\n");
	for (unsigned i = 0; i < s->worker_count; i++)
		if (s->domain[i] == domain)
			print_worker(r, i);
}

static void print_report(const struct report *r)
{
	const struct schedule *s = &r->schedule;
	unsigned cores = topology_core_count(r->topology), quota = cores_usable();

	text_printf(r->to, "Cores: %u", cores);
	if (!topology_is_here(r->topology))
		text_puts(r->to, " of another machine: nothing is bound");
	else if (quota < cores)
		text_printf(r->to, ", CPU quota %u: nothing is bound", quota);
	text_puts(r->to, "\n");
	if (s->group_count == 1)
		text_printf(r->to, "Policy: %s\n", s->group[0].policy->name);
	text_printf(r->to, "Threads that are not bound: %u I/O, %u disk\n", s->io_count,
	            s->disk_count);
	if (r->has_profile)
		text_printf(r->to, "Imbalance: %.2f\nEdge cut: %" PRIu64 " event%s\n",
		            s->partition.imbalance, s->partition.cut, plural(s->partition.cut));
	else if (s->layout == CONF_LAYOUT_PARTITION)
		text_puts(r->to, "No profile: all stages have the same weight\n");
	for (unsigned i = 0; i < s->domain_count; i++)
		print_domain(r, i);
}

static int print_topology(const struct conf *conf, struct text *to)
{
	struct report r = { .to = to };
	struct text error = TEXT_LOCAL(512);
	int err = topology_new(&r.topology);

	if (err)
		return err;
	r.has_profile = conf->layout.mode == CONF_LAYOUT_PARTITION && conf->layout.profile[0];
	if (r.has_profile)
		err = profile_read(&r.weights, conf->layout.profile, &error);
	if (!err)
		err = schedule_build(&r.schedule, conf, cores_usable(),
		                     r.has_profile ? &r.weights : NULL, &error);
	if (err)
		log_error("%s", error.data);
	else
		err = domains_place(r.topology, &r.schedule);
	if (!err)
		print_report(&r);
	topology_free(r.topology);
	return err;
}

int verb_topology(const struct conf *conf)
{
	struct text text;

	log_set_level(LOG_LEVEL_WARNING); /* notices would repeat the output */
	text_init_growable(&text, OUTPUT_MAX);
	if (!print_topology(conf, &text))
		return finish(&text);
	text_fini(&text);
	return EXIT_FAILURE;
}

int verb_keys(bool has_experiments)
{
	struct text text;

	text_init_growable(&text, OUTPUT_MAX);
	conf_print_keys(&text, has_experiments);
	return finish(&text);
}

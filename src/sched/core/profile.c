/*
 * profile.c - the work of a running graph as weights of its stages, and these as an INI file.
 *
 * A faulty file is reported with all its faults, line by line. Main thread.
 */
#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf_number.h"
#include "conf/conf_source.h"
#include "graph_table.h"
#include "layout/partition.h"
#include "runtime.h"

#define SECTION_LEAD "stage."
#define EDGE_LEAD "to_"

/* Keeps the sums over all stages and all edges below 2^64. */
#define VALUE_MAX (UINT64_MAX / (STAGE_COUNT_MAX * STAGE_COUNT_MAX))

struct reading {
	const struct conf_source *source;
	struct text *errors;
	int err;
};

void stage_costs_collect(struct partition_weights *w, const struct graph *g)
{
	*w = (struct partition_weights){ .stage_count = graph_row_count };
	w->stages = atomic_load_explicit(&g->schedule, memory_order_relaxed)->part_stages;
	for (struct worker *from = NULL; (from = graph_next_worker(g, from));)
		for (unsigned i = 0; i < graph_row_count; i++) {
			w->stage_ns[i] += counter_read(&from->stage[i].service.sum_ns);
			w->stage_events[i] += counter_read(&from->stage[i].events);
			for (unsigned k = 0; k < graph_row_count; k++)
				w->edge_events[i][k] += counter_read(&from->edge[i][k]);
		}
}

/* ---- reading ---- */

static void report(struct reading *r, const struct conf_setting *at, const char *message)
{
	conf_source_report(r->source, at, message, r->errors);
	r->err = -EINVAL;
}

/* Returns the index of the stage whose name follows lead, or -1. */
static int stage_after(const char *name, const char *lead)
{
	size_t length = strlen(lead);

	return strncmp(name, lead, length) == 0 ? graph_stage_index(name + length) : -1;
}

static bool has_edge(unsigned from, unsigned to)
{
	const struct graph_row *row = &graph_rows[from];

	for (unsigned i = 0; i < COUNT_OF(row->targets) && row->targets[i]; i++)
		if (graph_stage_index(row->targets[i]) == (int)to)
			return true;
	return false;
}

/* Returns the member that the key of the section is stored in, or NULL. */
static uint64_t *place_of(struct partition_weights *w, unsigned stage, const char *key)
{
	int to = stage_after(key, EDGE_LEAD);

	if (strcmp(key, "service_ns") == 0)
		return &w->stage_ns[stage];
	if (strcmp(key, "events") == 0)
		return &w->stage_events[stage];
	return to >= 0 && has_edge(stage, (unsigned)to) ? &w->edge_events[stage][to] : NULL;
}

static void apply_setting(struct reading *r, struct partition_weights *w,
                          const struct conf_setting *s)
{
	int stage = stage_after(s->section, SECTION_LEAD);
	uint64_t *place;

	if (stage < 0) {
		if (!s->key)
			report(r, s, "expected [stage.NAME] with the name of a stage");
		return; /* its keys are covered by this message */
	}
	if (!s->key)
		return;
	place = place_of(w, (unsigned)stage, s->key);
	if (!place)
		report(r, s,
		       "expected service_ns, events, or to_NAME with a stage that this one may "
		       "send to");
	else if (!s->value || !conf_units_parse(s->value, conf_units_none, place) ||
	         *place > VALUE_MAX)
		report(r, s, "expected a whole number, not more than 2^56");
}

int profile_read(struct partition_weights *w, const char *path, struct text *errors)
{
	struct conf_source source;
	struct reading r = { .source = &source, .errors = errors };
	uint64_t total_ns = 0;

	*w = (struct partition_weights){ .stage_count = graph_row_count };
	int err = conf_source_read(&source, path, NULL, 0, errors);

	for (size_t i = 0; i < source.count && (err == 0 || err == -EINVAL); i++)
		apply_setting(&r, w, &source.setting[i]);
	conf_source_fini(&source);
	if (err || r.err)
		return err ? err : r.err;
	for (unsigned i = 0; i < graph_row_count; i++)
		total_ns += w->stage_ns[i];
	if (total_ns)
		return 0;
	return text_refuse(errors,
	                   "%s: no stage has taken any time: "
	                   "expected [stage.NAME] with service_ns above 0\n",
	                   path);
}

static_assert(STAGE_COUNT_MAX > 16 || (VALUE_MAX >> 56 == 0 && VALUE_MAX >> 55),
              "the message names 2^56");

/* ---- writing ---- */

void profile_print(const struct partition_weights *w, struct text *to)
{
	text_puts(to,
	          "; Processing times of the stages of darkroomd, and events sent between them.\n"
	          "; For [layout] profile; `darkroomd --topology` prints the parts that result.\n");
	for (unsigned i = 0; i < w->stage_count; i++) {
		text_printf(to,
		            "\n[" SECTION_LEAD "%s]\nservice_ns = %" PRIu64 "\nevents = %" PRIu64
		            "\n",
		            graph_rows[i].class->name, w->stage_ns[i], w->stage_events[i]);
		for (unsigned k = 0; k < w->stage_count; k++)
			if (w->edge_events[i][k])
				text_printf(to, EDGE_LEAD "%s = %" PRIu64 "\n",
				            graph_rows[k].class->name, w->edge_events[i][k]);
	}
}

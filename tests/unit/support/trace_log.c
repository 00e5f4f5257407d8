/* trace_log.c - takes records of a trace apart. */
#include "trace_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/round.h"
#include "sched/core/graph_table.h"
#include "sched/core/trace.h"

static struct trace_log_item *add(struct trace_log *log)
{
	if (log->count == log->size) {
		log->size = log->size ? 2 * log->size : 1024;
		log->item = realloc(log->item, log->size * sizeof *log->item);
		assert_non_null(log->item);
	}
	memset(&log->item[log->count], 0, sizeof *log->item);
	return &log->item[log->count++];
}

static void take(struct trace_log *log, const struct trace_record *record)
{
	struct trace_log_item *item = add(log);
	const char *content = (const char *)(record + 1);

	item->head = *record;
	if (record->type == TRACE_LOST)
		log->lost += record->events;
	if (record->type == TRACE_SCHEDULE)
		memcpy(&item->schedule, content, sizeof item->schedule);
	if (record->type == TRACE_ORDER) {
		assert_true(record->events <= TRACE_LOG_SLOTS && record->queued <= STAGE_COUNT_MAX);
		memcpy(item->position, content, record->events);
		memcpy(item->rate, content + round_up(record->events, 8),
		       record->queued * sizeof item->rate[0]);
	}
}

void trace_log_add(struct trace_log *log, const struct trace_record *record, size_t count)
{
	for (size_t i = 0; i < count; i += 1u + record[i].cells)
		take(log, &record[i]);
}

void trace_log_read(struct trace_log *log, struct graph *g)
{
	struct trace_record record[64];
	size_t size;

	while ((size = trace_read(g, record, sizeof record)) > 0)
		trace_log_add(log, record, size / sizeof *record);
}

void trace_log_free(struct trace_log *log)
{
	free(log->item);
	*log = (struct trace_log){ 0 };
}

const struct trace_record *trace_log_next(const struct trace_log *log, size_t *at, unsigned group,
                                          unsigned index, struct trace_log_worker *worker,
                                          bool *has_order)
{
	*has_order = false;
	for (; *at < log->count; ++*at) {
		const struct trace_log_item *item = &log->item[*at];

		if (item->head.group != group || item->head.worker != index)
			continue;
		if (item->head.type == TRACE_SCHEDULE)
			worker->schedule = item->schedule;
		if (item->head.type == TRACE_ORDER) {
			worker->order = item;
			*has_order = true;
		}
		if (item->head.type == TRACE_VISIT) {
			++*at;
			return &item->head;
		}
	}
	return NULL;
}

int trace_log_position(const struct trace_log_worker *worker, unsigned stage)
{
	for (unsigned i = 0; i < worker->schedule.polled; i++)
		if (worker->schedule.visit_set[i] == stage)
			return (int)i;
	return -1;
}

/* Returns whether the worker may visit the stage that is called directly, if it finds events. */
static bool is_in_visit_set(const struct trace_log_worker *worker, unsigned stage)
{
	for (unsigned i = worker->schedule.polled; i < worker->schedule.stages; i++)
		if (worker->schedule.visit_set[i] == stage)
			return true;
	return false;
}

static bool visits_of_are_possible(const struct trace_log *log, unsigned group, unsigned index)
{
	struct trace_log_worker worker = { 0 };
	const struct trace_record *visit;
	bool has_order;
	size_t at = 0;

	while ((visit = trace_log_next(log, &at, group, index, &worker, &has_order)) != NULL) {
		int position = trace_log_position(&worker, visit->stage);

		if (position < 0 && !(visit->events && is_in_visit_set(&worker, visit->stage)))
			return false;
		for (unsigned i = 0; i < worker.schedule.polled; i++)
			if (worker.schedule.pass_through >> worker.schedule.visit_set[i] & 1)
				return false;
	}
	return true;
}

bool trace_log_visits_are_possible(const struct trace_log *log)
{
	for (unsigned group = 1; group < GROUP_COUNT; group++)
		for (unsigned i = 0; i < CONF_THREADS_MAX; i++)
			if (!visits_of_are_possible(log, group, i))
				return false;
	return true;
}

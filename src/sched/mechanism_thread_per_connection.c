/*
 * mechanism_thread_per_connection.c - I/O threads that each serve one connection at a time and call
 * all its stages.
 *
 * scheduler.threads is the number of I/O threads, which take a connection only while they have none
 * (visit_is_thread_per_connection()). The main group has a worker per core for the stages that keep
 * a queue because they are exclusive.
 */
#include "mechanism_thread_per_connection.h"

#include <errno.h>

#include "base/text.h"
#include "domains.h"
#include "graph_table.h"
#include "mechanism_poll.h"
#include "schedule.h"

/* A thread runs all stages of its connection, so that a layout cannot divide them among cores. */
static int check_layout(const struct schedule *s, struct text *error)
{
	if (s->layout == CONF_LAYOUT_SHARED)
		return 0;
	if (error)
		text_puts(
			error,
			"scheduler.policy = thread-per-connection: expected layout.mode = shared");
	return -EINVAL;
}

/* An exclusive source has one I/O thread, which would serve one connection. */
static int check_source(const struct conf *conf, struct text *error)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].class->poll && graph_stage_kind(conf, i) == STAGE_EXCLUSIVE) {
			if (error)
				text_printf(error,
				            "each of its threads needs an instance of the source: "
				            "expected stage.%s.kind = partitioned",
				            graph_rows[i].class->name);
			return -EINVAL;
		}
	return 0;
}

static int assign(struct schedule *s, const struct schedule_input *input, unsigned group)
{
	int err = check_layout(s, input->error);

	if (!err)
		err = check_source(input->conf, input->error);
	if (err)
		return err;
	if (s->listener_count)
		s->io_count = domains_threads_of_cores(s, s->group[group].threads, input->cores);
	return domains_assign(s, input, group,
	                      domains_threads_of_cores(s, CONF_AUTO, input->cores));
}

const struct mechanism mechanism_thread_per_connection = {
	.has_core_per_worker = true,
	.has_stacks = true,
	.assign = assign,
	.reassign = domains_reassign,
	.visit = poll_visit,
};

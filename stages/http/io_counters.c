/* io_counters.c - adds up the I/O threads' counters. Any thread. */
#include "io_counters.h"

#include "telemetry/counter.h"

void io_totals_collect(struct io_totals *totals, const struct io_counters *counters, unsigned count)
{
	*totals = (struct io_totals){ 0 };
	for (unsigned i = 0; i < count; i++) {
		const struct io_counters *c = &counters[i];

		totals->received_bytes += counter_read(&c->received_bytes);
		totals->sent_bytes += counter_read(&c->sent_bytes);
		for (unsigned k = 0; k < RESPONSE_STATUS_MAX; k++)
			totals->responses[k] += counter_read(&c->responses[k]);
		for (unsigned k = 0; k < PROBLEM_TYPE_MAX; k++)
			totals->rejections[k] += counter_read(&c->rejections[k]);
	}
}

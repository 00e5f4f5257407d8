/* io_counters.c - adds up the I/O threads' counters. Any thread. */
#include "io_counters.h"

#include "base/check.h"
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
		for (unsigned k = 0; k < ROUTE_CLASS_COUNT; k++)
			for (unsigned s = 0; s < IO_STATUS_CLASSES; s++)
				totals->requests[k][s] += counter_read(&c->requests[k][s]);
	}
}

void io_durations_collect(struct histogram_sum *sum, const struct io_counters *counters,
                          unsigned count, enum route_class class)
{
	*sum = (struct histogram_sum){ 0 };
	for (unsigned i = 0; i < count; i++)
		histogram_collect(sum, &counters[i].durations[class]);
}

void io_counters_add_request(struct io_counters *c, enum route_class class, unsigned status,
                             uint64_t ns)
{
	assert(status >= 200 && status < 600);
	histogram_add(&c->durations[class], ns, 1);
	counter_add(&c->requests[class][status / 100 - 2], 1);
}

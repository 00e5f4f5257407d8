/* request_stats.c - adds up counters of client threads. */
#include "request_stats.h"

#include <stdarg.h>
#include <stdio.h>

void request_stats_merge(struct request_stats *to, const struct request_stats *from)
{
	latency_merge(&to->response, &from->response);
	latency_merge(&to->exchange, &from->exchange);
	latency_merge(&to->latency, &from->latency);
	for (unsigned i = 0; i < EXCHANGE_RESULT_COUNT; i++)
		counter_add(&to->results[i], counter_read(&from->results[i]));
	for (unsigned i = 0; i < STATUS_COUNT; i++)
		counter_add(&to->statuses[i], counter_read(&from->statuses[i]));
	counter_add(&to->unexpected, counter_read(&from->unexpected));
	counter_add(&to->input_bytes, counter_read(&from->input_bytes));
	counter_add(&to->opened, counter_read(&from->opened));
	counter_add(&to->variants, counter_read(&from->variants));
	counter_add(&to->variants_wrong, counter_read(&from->variants_wrong));
	counter_add(&to->repeated, counter_read(&from->repeated));
	counter_add(&to->late, counter_read(&from->late));
	counter_add(&to->doubled, counter_read(&from->doubled));
	counter_add(&to->lost, counter_read(&from->lost));
	counter_add(&to->aborted, counter_read(&from->aborted));
}

void request_stats_merge_ended(struct request_stats *to, const struct request_stats *from)
{
	request_stats_merge(to, from);
	if (from->first_ns > 0 && (to->first_ns == 0 || from->first_ns < to->first_ns))
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	to->cpu_ns += from->cpu_ns;
	if (from->busiest > to->busiest)
		to->busiest = from->busiest;
	if (from->problem[0])
		request_stats_problem(to, "%s", from->problem);
}

uint64_t request_stats_answered(const struct request_stats *s)
{
	return counter_read(&s->results[EXCHANGE_OK]);
}

uint64_t request_stats_failed(const struct request_stats *s)
{
	uint64_t n = 0;

	for (unsigned i = EXCHANGE_OK + 1; i < EXCHANGE_RESULT_COUNT; i++)
		n += counter_read(&s->results[i]);
	return n;
}

void request_stats_problem(struct request_stats *s, const char *format, ...)
{
	va_list args;

	if (s->problem[0])
		return;
	va_start(args, format);
	vsnprintf(s->problem, sizeof s->problem, format, args);
	va_end(args);
}

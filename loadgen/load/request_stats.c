/* request_stats.c - what a worker counts, and one record per request. */
#include "request_stats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "command_line.h"

#define CHUNK_RECORDS 16384

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

const char *exchange_result_name(enum exchange_result result)
{
	static const char *const names[EXCHANGE_RESULT_COUNT] = { "pending", "",        "connect",
		                                                  "reset",   "timeout", "short",
		                                                  "parse" };

	assert(result < EXCHANGE_RESULT_COUNT);
	return names[result];
}

/* ---- records ---- */

struct request_record_chunk {
	struct request_record_chunk *next;
	size_t count;
	struct request_record records[CHUNK_RECORDS];
};

void request_records_add(struct request_records *r, const struct request_record *record)
{
	struct request_record_chunk *chunk = r->last;

	if (!chunk || chunk->count == CHUNK_RECORDS) {
		chunk = malloc(sizeof *chunk);
		if (!chunk) {
			r->lost++;
			return;
		}
		chunk->next = NULL;
		chunk->count = 0;
		*(r->last ? &r->last->next : &r->first) = chunk;
		r->last = chunk;
	}
	chunk->records[chunk->count++] = *record;
}

void request_records_fini(struct request_records *r)
{
	while (r->first) {
		struct request_record_chunk *next = r->first->next;

		free(r->first);
		r->first = next;
	}
	*r = (struct request_records){ 0 };
}

struct cursor {
	const struct request_record_chunk *chunk;
	size_t at;
};

/* The record at the cursor, or NULL at the end. */
static const struct request_record *look(struct cursor *c)
{
	while (c->chunk && c->at == c->chunk->count)
		*c = (struct cursor){ .chunk = c->chunk->next };
	return c->chunk ? &c->chunk->records[c->at] : NULL;
}

/* RFC 4180 */
static void write_name(FILE *out, const char *name)
{
	if (!strpbrk(name, ",\"\r\n")) {
		fputs(name, out);
		return;
	}
	putc('"', out);
	for (; *name; name++) {
		if (*name == '"')
			putc('"', out);
		putc(*name, out);
	}
	putc('"', out);
}

static void write_time(FILE *out, uint64_t ns, uint64_t zero_ns)
{
	if (ns >= zero_ns)
		fprintf(out, "%.9f,", (double)(ns - zero_ns) / 1e9);
	else
		putc(',', out);
}

static void write_record(FILE *out, const struct request_record *r, uint64_t zero_ns,
                         const struct corpus *files)
{
	write_time(out, r->intended_ns, zero_ns);
	write_time(out, r->start_ns, zero_ns);
	write_time(out, r->sent_ns, zero_ns);
	write_time(out, r->done_ns, zero_ns);
	fprintf(out, "%" PRIu64 ",", files->list[r->file].size);
	if (r->status)
		fprintf(out, "%u", (unsigned)r->status);
	fprintf(out, ",%s,%" PRIu32 ",", exchange_result_name((enum exchange_result)r->result),
	        r->connection);
	write_name(out, files->list[r->file].name);
	putc('\n', out);
}

int request_records_write(FILE *out, const struct request_records *const *records, unsigned count,
                          uint64_t zero_ns, const struct corpus *files)
{
	struct cursor cursors[THREADS_MAX] = { 0 };

	assert(count <= THREADS_MAX);
	for (unsigned i = 0; i < count; i++)
		cursors[i].chunk = records[i]->first;
	fputs("intended,start,sent,done,bytes,status,error,connection,file\n", out);
	for (;;) {
		const struct request_record *next = NULL;
		unsigned from = 0;

		for (unsigned i = 0; i < count; i++) {
			const struct request_record *r = look(&cursors[i]);

			if (r && (!next || r->done_ns < next->done_ns)) {
				next = r;
				from = i;
			}
		}
		if (!next)
			return ferror(out) ? -1 : 0;
		write_record(out, next, zero_ns, files);
		cursors[from].at++;
	}
}

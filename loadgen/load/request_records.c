/* request_records.c - keeps records in chunks and merges those of all threads into one CSV file. */
#include "request_records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "connection.h"

#define CHUNK_RECORDS 16384

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

/* Returns the record at the cursor, or NULL at the end. */
static const struct request_record *current(struct cursor *c)
{
	while (c->chunk && c->at == c->chunk->count)
		*c = (struct cursor){ .chunk = c->chunk->next };
	return c->chunk ? &c->chunk->records[c->at] : NULL;
}

/* Quotes the text as RFC 4180 requires. */
static void write_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
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
	if (r->file == RECORD_UNSENT) {
		fputs(",,unsent,,,\n", out);
		return;
	}
	fprintf(out, "%" PRIu64 ",", files->list[r->file].size);
	if (r->status)
		fprintf(out, "%u", (unsigned)r->status);
	fprintf(out, ",%s,%" PRIu32 ",", exchange_result_name((enum exchange_result)r->result),
	        r->connection);
	write_text(out, files->list[r->file].name);
	putc(',', out);
	write_text(out, r->id);
	putc('\n', out);
}

int request_records_write(FILE *out, const struct request_records *const *records, unsigned count,
                          uint64_t zero_ns, const struct corpus *files)
{
	struct cursor cursors[RECORD_LISTS_MAX] = { 0 };

	assert(count <= RECORD_LISTS_MAX);
	for (unsigned i = 0; i < count; i++)
		cursors[i].chunk = records[i]->first;
	fputs("intended,start,sent,done,bytes,status,error,connection,file,id\n", out);
	for (;;) {
		const struct request_record *next = NULL;
		unsigned from = 0;

		for (unsigned i = 0; i < count; i++) {
			const struct request_record *r = current(&cursors[i]);

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

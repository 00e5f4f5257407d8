/* disk_reads.c - a line behind a counter, under one lock. Any thread. */
#include "disk_reads.h"

#include <stddef.h>

#include "base/check.h"
#include "disk_job.h"

void disk_reads_init(struct disk_reads *r, unsigned max)
{
	*r = (struct disk_reads){ .max = max };
	pthread_mutex_init(&r->lock, NULL);
}

void disk_reads_fini(struct disk_reads *r)
{
	pthread_mutex_destroy(&r->lock);
}

static void append(struct disk_reads *r, struct disk_job *job)
{
	job->next = NULL;
	job->previous = r->last;
	*(r->last ? &r->last->next : &r->first) = job;
	r->last = job;
	job->is_in_line = true;
}

static void take_out(struct disk_reads *r, struct disk_job *job)
{
	*(job->previous ? &job->previous->next : &r->first) = job->next;
	*(job->next ? &job->next->previous : &r->last) = job->previous;
	job->is_in_line = false;
}

bool disk_reads_begin(struct disk_reads *r, struct disk_job *job)
{
	pthread_mutex_lock(&r->lock);
	bool may_start = r->active < r->max;

	if (may_start)
		r->active++;
	else
		append(r, job);
	pthread_mutex_unlock(&r->lock);
	return may_start;
}

struct disk_job *disk_reads_end(struct disk_reads *r)
{
	pthread_mutex_lock(&r->lock);
	struct disk_job *next = r->first;

	assert(r->active > 0);
	if (next)
		take_out(r, next);
	else
		r->active--;
	pthread_mutex_unlock(&r->lock);
	return next;
}

bool disk_reads_cancel(struct disk_reads *r, struct disk_job *job)
{
	pthread_mutex_lock(&r->lock);
	bool was_in_line = job->is_in_line;

	if (was_in_line)
		take_out(r, job);
	pthread_mutex_unlock(&r->lock);
	return was_in_line;
}

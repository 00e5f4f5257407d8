/* disk_job.c - sends jobs to disk_write and disk_read; the line of those that read. Any thread. */
#include "disk_job.h"

#include "base/check.h"
#include "sched/core/stage.h"
#include "stage_ids.h"

/* ---- the line ---- */

void disk_reads_init(struct disk_reads *r, unsigned max)
{
	*r = (struct disk_reads){ .max = max };
	pthread_mutex_init(&r->lock, NULL);
}

void disk_reads_fini(struct disk_reads *r)
{
	pthread_mutex_destroy(&r->lock);
}

void disk_reads_set_max(struct disk_reads *r, unsigned max)
{
	pthread_mutex_lock(&r->lock);
	r->max = max;
	pthread_mutex_unlock(&r->lock);
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

/* Returns true if the job may be sent. Otherwise it joins the line, its event parked. */
static bool disk_reads_begin(struct disk_reads *r, struct disk_job *job)
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
	if (r->active > r->max)
		next = NULL; /* there are fewer threads now */
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

/* ---- jobs ---- */

struct disk_job *disk_job_of(struct event *ev)
{
	return CONTAINER_OF(ev, struct disk_job, event);
}

void disk_job_send_image(struct visit *v, struct disk_job *job, enum disk_work work, uint64_t size)
{
	job->work = work;
	job->event.size = size;
	visit_unpark(v, &job->event);
	visit_send(v, STAGE_DISK_WRITE, &job->event);
}

void disk_job_send(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                   enum disk_work work, struct event *reply, unsigned reply_instance)
{
	assert(work != DISK_READ || job->length <= DISK_READ_MAX);
	if (work != DISK_READ)
		job->length = 0;
	job->work = work;
	job->reply = reply;
	job->reply_instance = reply_instance;
	if (work >= DISK_FIND && work != DISK_LIST && !disk_reads_begin(reads, job))
		return;
	visit_unpark(v, &job->event);
	visit_send(v, work < DISK_FIND ? STAGE_DISK_WRITE : STAGE_DISK_READ, &job->event);
}

void disk_job_reply(struct visit *v, struct disk_job *job)
{
	struct event *ev = job->reply;
	unsigned instance = job->reply_instance;

	visit_park(v, &job->event); /* before the reply */
	visit_resume(v, STAGE_ACCEPT_READ, instance, ev);
}

/* disk_job.c - sends jobs to disk_write. Any worker. */
#include "disk_job.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "disk_reads.h"
#include "sched/stage.h"
#include "stage_ids.h"

struct disk_job *disk_job_of(struct event *ev)
{
	return CONTAINER_OF(ev, struct disk_job, event);
}

static void send(struct visit *v, struct disk_job *job)
{
	visit_unpark(v, &job->event);
	visit_send(v, STAGE_DISK_WRITE, &job->event);
}

void disk_job_send_image(struct visit *v, struct disk_job *job, enum disk_work work, uint64_t size)
{
	job->work = work;
	job->event.size = size;
	send(v, job);
}

static void set_reply(struct disk_job *job, struct event *reply, unsigned reply_instance)
{
	job->reply = reply;
	job->reply_instance = reply_instance;
}

/* Sends it when the jobs that read leave room. */
static void send_to_read(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                         struct event *reply, unsigned reply_instance)
{
	set_reply(job, reply, reply_instance);
	if (disk_reads_begin(reads, job))
		send(v, job);
}

void disk_job_send_removal(struct visit *v, struct disk_job *job, const char *id,
                           struct event *reply, unsigned reply_instance)
{
	job->work = DISK_REMOVE;
	memcpy(job->id, id, sizeof job->id);
	set_reply(job, reply, reply_instance);
	send(v, job);
}

void disk_job_send_find(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                        const char *id, const char *name, struct event *reply,
                        unsigned reply_instance)
{
	job->work = DISK_FIND;
	job->length = 0;
	memcpy(job->id, id, sizeof job->id);
	snprintf(job->name, sizeof job->name, "%s", name);
	send_to_read(v, reads, job, reply, reply_instance);
}

void disk_job_send_read(struct visit *v, struct disk_reads *reads, struct disk_job *job, int fd,
                        uint64_t at, size_t length, struct event *reply, unsigned reply_instance)
{
	assert(length <= DISK_READ_MAX);
	job->work = DISK_READ;
	job->fd = fd;
	job->at = at;
	job->length = length;
	send_to_read(v, reads, job, reply, reply_instance);
}

void disk_job_send_fetch(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                         struct event *reply, unsigned reply_instance)
{
	job->work = DISK_FETCH;
	job->length = 0;
	send_to_read(v, reads, job, reply, reply_instance);
}

void disk_job_send_explanation(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                               const char *id, const char *variant, struct problem *problem,
                               struct event *reply, unsigned reply_instance)
{
	job->work = DISK_EXPLAIN;
	job->length = 0;
	memcpy(job->id, id, sizeof job->id);
	snprintf(job->name, sizeof job->name, "%s", variant);
	job->problem = problem;
	send_to_read(v, reads, job, reply, reply_instance);
}

void disk_job_send_list(struct visit *v, struct disk_job *job, struct stored_list *list,
                        struct event *reply, unsigned reply_instance)
{
	job->work = DISK_LIST;
	job->list = list;
	set_reply(job, reply, reply_instance);
	send(v, job);
}

void disk_job_send_key(struct visit *v, struct disk_job *job, enum disk_work work,
                       struct upload_key *key, struct event *reply, unsigned reply_instance)
{
	job->work = work;
	job->key = key;
	set_reply(job, reply, reply_instance);
	send(v, job);
}

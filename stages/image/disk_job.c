/* disk_job.c - sends jobs to disk_write. Any worker. */
#include "disk_job.h"

#include <string.h>

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

void disk_job_send_removal(struct visit *v, struct disk_job *job, const char *id,
                           struct event *reply, unsigned reply_instance)
{
	job->work = DISK_REMOVE;
	memcpy(job->id, id, sizeof job->id);
	job->reply = reply;
	job->reply_instance = reply_instance;
	send(v, job);
}

void disk_job_send_list(struct visit *v, struct disk_job *job, struct stored_list *list,
                        struct event *reply, unsigned reply_instance)
{
	job->work = DISK_LIST;
	job->list = list;
	job->reply = reply;
	job->reply_instance = reply_instance;
	send(v, job);
}

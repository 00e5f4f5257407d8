/*
 * disk_job.h - the event type of disk_write: one piece of work on the store that may block.
 */
#ifndef DARKROOM_IMAGE_DISK_JOB_H
#define DARKROOM_IMAGE_DISK_JOB_H

#include "sched/event.h"
#include "store/ulid.h"

struct image;
struct stored_list;
struct visit;

enum disk_work {
	DISK_STORE = 1, /* all files of an image; its event then goes to stats */
	DISK_SPOOL,     /* the uploaded file; image_spooled() follows */
	DISK_REMOVE,    /* a finished image; the reply then goes to accept_read */
	DISK_LIST       /* of stored images; the reply as for DISK_REMOVE */
};

struct disk_job {
	struct event event; /* first */
	enum disk_work work;
	struct image *image;      /* store, spool: borrowed */
	char id[ULID_LENGTH + 1]; /* remove */
	struct stored_list *list; /* list: borrowed */
	struct event *reply;      /* remove, list: parked by its owner before the job is sent */
	unsigned reply_instance;
	int result; /* remove, list: 0, -ENOENT or -errno, set before the reply is sent */
};

struct disk_job *disk_job_of(struct event *ev);

/* Sends the image to be stored or spooled. size: bytes to write. */
void disk_job_send_image(struct visit *v, struct disk_job *job, enum disk_work work, uint64_t size);

/* Sends the removal of an image. The reply goes to the given instance of accept_read. */
void disk_job_send_removal(struct visit *v, struct disk_job *job, const char *id,
                           struct event *reply, unsigned reply_instance);

/* Sends a list to be made. The reply goes to the given instance of accept_read. */
void disk_job_send_list(struct visit *v, struct disk_job *job, struct stored_list *list,
                        struct event *reply, unsigned reply_instance);

#endif

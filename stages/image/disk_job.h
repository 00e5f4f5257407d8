/*
 * disk_job.h - the event type of disk_write: one piece of work on the store that may block.
 */
#ifndef DARKROOM_IMAGE_DISK_JOB_H
#define DARKROOM_IMAGE_DISK_JOB_H

#include "sched/event.h"
#include "store/store.h"

struct image;

enum disk_work {
	DISK_STORE = 1, /* all files of an image; then its event goes to stats */
	DISK_SPOOL,     /* the file that was uploaded; then image_spooled() */
	DISK_REMOVE     /* a finished image; then the reply's event goes to accept_read */
};

struct disk_job {
	struct event event; /* first */
	enum disk_work work;
	struct image *image;      /* store, spool: borrowed */
	char id[ULID_LENGTH + 1]; /* remove */
	struct event *reply;      /* remove: set aside by its owner before the job is sent */
	unsigned reply_instance;
	int result; /* remove: 0, -ENOENT or -errno, set before the reply is sent */
};

#endif

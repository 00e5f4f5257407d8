/*
 * disk_job.h - the event type of disk_write: one piece of work on the store or its files that may
 * block.
 */
#ifndef DARKROOM_IMAGE_DISK_JOB_H
#define DARKROOM_IMAGE_DISK_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "sched/event.h"
#include "store/store_find.h"
#include "store/ulid.h"

struct disk_reads;
struct image;
struct image_service;
struct problem;
struct stored_list;
struct upload_key;
struct visit;

#define DISK_JOB_NAME_MAX (CONF_NAME_MAX + 5) /* "medium.jpg", with its zero */

enum disk_work {
	DISK_STORE = 1, /* all files of an image; its event then goes to stats */
	DISK_SPOOL,     /* the uploaded file; image_spooled() follows */
	DISK_REMOVE,    /* a finished image; the reply then goes to accept_read */
	DISK_FIND,      /* a file to respond with; the same */
	DISK_FOUND,     /* it was found by another thread, and was DISK_FIND before */
	DISK_READ,      /* a piece of it into the page cache; the same */
	DISK_FETCH,     /* the next part of it from an S3 store, as DISK_FOUND; the same */
	DISK_EXPLAIN,   /* which variants an image has instead of the one asked for; the same */
	DISK_LIST,      /* of stored images; the same */
	DISK_KEY_BEGIN, /* upload_key_begin(); the same */
	DISK_KEY_END,   /* upload_key_end(); the same */
	DISK_WORK_COUNT
};

struct disk_job {
	struct event event; /* first */
	enum disk_work work;
	struct image *image;      /* store, spool: borrowed */
	char id[ULID_LENGTH + 1]; /* remove, find, explain */
	struct event *reply;      /* not of images: parked by its owner before the job is sent */
	unsigned reply_instance;
	int result; /* of all but find: 0, -ENOENT or -errno, set before the reply is sent */
	char name[DISK_JOB_NAME_MAX];  /* find: of the file; explain: of the variant */
	struct problem *problem;       /* explain: filled in; borrowed */
	bool has_original;             /* explain: the image has its original */
	struct stored_list *list;      /* list: borrowed */
	struct upload_key *key;        /* key: borrowed */
	struct store_found found;      /* find, fetch: the result */
	struct image_service *service; /* find, by another thread; so is round, of its requests */
	unsigned round;
	int fd; /* read: borrowed */
	uint64_t at;
	size_t length; /* at most DISK_READ_MAX */
	/* of disk_reads.h, under its lock */
	struct disk_job *next, *previous;
	bool is_in_line;
};

struct disk_job *disk_job_of(struct event *ev);

/* Sends the image to be stored or spooled. size: bytes to write. */
void disk_job_send_image(struct visit *v, struct disk_job *job, enum disk_work work, uint64_t size);

/* Sends the removal of an image. The reply goes to the given instance of accept_read. */
void disk_job_send_removal(struct visit *v, struct disk_job *job, const char *id,
                           struct event *reply, unsigned reply_instance);

/* The largest piece that one job reads. */
#define DISK_READ_MAX ((size_t)256 << 10)

/* Sends a job that finds the file of an image, or lets it wait in line. The reply goes to the given
 * instance of accept_read. disk_reads_cancel() takes the job back while it is in line. */
void disk_job_send_find(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                        const char *id, const char *name, struct event *reply,
                        unsigned reply_instance);

/* The same for a job that reads a piece of an open file. */
void disk_job_send_read(struct visit *v, struct disk_reads *reads, struct disk_job *job, int fd,
                        uint64_t at, size_t length, struct event *reply, unsigned reply_instance);

/* The same for a job that reads the next part of job->found. */
void disk_job_send_fetch(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                         struct event *reply, unsigned reply_instance);

/* The same for a job that fills in the 404 of an image without the variant. Its result is -ENOENT
 * if there is no such image. */
void disk_job_send_explanation(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                               const char *id, const char *variant, struct problem *problem,
                               struct event *reply, unsigned reply_instance);

/* Sends a list to be made. The reply goes to the given instance of accept_read. */
void disk_job_send_list(struct visit *v, struct disk_job *job, struct stored_list *list,
                        struct event *reply, unsigned reply_instance);

/* Sends the key of an upload to begin or end. The reply goes to the given instance of accept_read.
 */
void disk_job_send_key(struct visit *v, struct disk_job *job, enum disk_work work,
                       struct upload_key *key, struct event *reply, unsigned reply_instance);

#endif

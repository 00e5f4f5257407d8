/*
 * disk_job.h - the event type of disk_write and disk_read: one piece of work on the store or its
 * files that may block.
 */
#ifndef DARKROOM_IMAGE_DISK_JOB_H
#define DARKROOM_IMAGE_DISK_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "sched/core/event.h"
#include "store/store_find.h"
#include "store/ulid.h"

struct disk_reads;
struct image;
struct graph;
struct problem;
struct stored_list;
struct upload_key;
struct visit;

#define DISK_JOB_NAME_MAX CONF_FILE_NAME_MAX

enum disk_work {
	/* of disk_write */
	DISK_STORE = 1, /* all files of an image; its event then goes to stats */
	DISK_SPOOL,     /* the uploaded file; image_spooled() follows */
	DISK_REMOVE,    /* a finished image; the reply then goes to accept_read */
	DISK_KEY,       /* upload_key_serve(); the same */
	/* of disk_read; the reply goes to accept_read */
	DISK_FIND,    /* a file to respond with */
	DISK_FOUND,   /* it was found by another thread, and was DISK_FIND before */
	DISK_MISSING, /* the same, and there is none */
	DISK_AGAIN,   /* DISK_FIND once more, after the image was copied */
	DISK_READ,    /* a piece of it into the page cache */
	DISK_FETCH,   /* the next part of it from an S3 store, as DISK_FOUND */
	DISK_VERIFY,  /* compares what was found with its checksum */
	DISK_EXPLAIN, /* which variants an image has instead of the one asked for */
	DISK_LIST     /* of stored images */
};

struct disk_job {
	struct event event; /* first */
	enum disk_work work;
	struct image *image;      /* store, spool: borrowed */
	char id[ULID_LENGTH + 1]; /* remove, find, verify, explain */
	struct event *reply;      /* not of images: parked by its owner before the job is sent */
	unsigned reply_instance;
	int result; /* of all but find: 0, -ENOENT or -errno, set before the reply is sent */
	char name[DISK_JOB_NAME_MAX]; /* find, verify: of the file; explain: of the variant */
	struct problem *problem;      /* explain, verify: filled in; borrowed */
	bool has_original;            /* explain: the image has its original */
	bool is_lost;                 /* explain: the image had the variant, or the original */
	struct stored_list *list;     /* list: borrowed */
	struct upload_key *key;       /* key: borrowed */
	struct store_found found;     /* find, fetch: the result; verify */
	struct graph *graph;          /* find, fetch: where the job comes back; borrowed */
	int fd;                       /* read: borrowed */
	uint64_t at;
	size_t length; /* at most DISK_READ_MAX; 0: none of the others reads so far */
	/* of struct disk_reads, under its lock */
	struct disk_job *next, *previous;
	bool is_in_line;
};

struct disk_job *disk_job_of(struct event *ev);

/* The largest piece that one job reads. */
#define DISK_READ_MAX ((size_t)256 << 10)

/* Sends the image to be stored or spooled. size: bytes to write. */
void disk_job_send_image(struct visit *v, struct disk_job *job, enum disk_work work, uint64_t size);

/* Sends another job, whose members for that work are set. The reply goes to the instance of
 * accept_read. A job that finds or reads files may have to wait in line. */
void disk_job_send(struct visit *v, struct disk_reads *reads, struct disk_job *job,
                   enum disk_work work, struct event *reply, unsigned reply_instance);

/* Sends the reply. Its owner may reuse or free the job. */
void disk_job_reply(struct visit *v, struct disk_job *job);

/* ---- the line of jobs that find and read files; any thread ---- */

/* As many jobs are at disk_read as it has threads. The others may be taken back: a client may not
 * wait that long. A connection has one such job at most. Locked inside. */
struct disk_reads {
	pthread_mutex_t lock;
	struct disk_job *first, *last; /* in line; linked by disk_job.next and .previous */
	unsigned active, max;
};

/* max: jobs at disk_read at once. */
void disk_reads_init(struct disk_reads *r, unsigned max);
void disk_reads_set_max(struct disk_reads *r, unsigned max);
void disk_reads_fini(struct disk_reads *r);

/* A job has ended. Returns the next one, which the caller sends, or NULL. */
struct disk_job *disk_reads_end(struct disk_reads *r);

/* Takes the job out of the line. Returns false if it is not in line: its reply will come. */
bool disk_reads_cancel(struct disk_reads *r, struct disk_job *job);

#endif

/*
 * disk_reads.h - the line of jobs that read the disk. Few of them are at disk_write at once, so
 * that a thread of it remains for uploads.
 *
 * A connection has one such job at most. Locked inside; the lock is held for a few instructions.
 * Any thread.
 */
#ifndef DARKROOM_IMAGE_DISK_READS_H
#define DARKROOM_IMAGE_DISK_READS_H

#include <pthread.h>
#include <stdbool.h>

struct disk_job;

struct disk_reads {
	pthread_mutex_t lock;
	struct disk_job *first, *last; /* in line; linked by disk_job.next and .previous */
	unsigned active, max;
};

/* max: jobs at disk_write at once. */
void disk_reads_init(struct disk_reads *r, unsigned max);
void disk_reads_fini(struct disk_reads *r);

/* Returns true if the job may be sent. Otherwise it joins the line, its event parked. */
bool disk_reads_begin(struct disk_reads *r, struct disk_job *job);

/* A job has ended. Returns the next one, which the caller sends, or NULL. */
struct disk_job *disk_reads_end(struct disk_reads *r);

/* Takes the job out of the line. Returns false if it is not in line: its reply will come. */
bool disk_reads_cancel(struct disk_reads *r, struct disk_job *job);

#endif

/*
 * admission.h - admits uploads before their bodies are read, and lets those wait that may.
 *
 * overload.h decides. This file has the lock, the clock and the line of waiting uploads. An upload
 * in the line is admitted when an image ends, higher classes first. Any thread.
 */
#ifndef DARKROOM_IMAGE_ADMISSION_H
#define DARKROOM_IMAGE_ADMISSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client_work.h"
#include "conf/conf_classes.h"
#include "conf/conf_degrade.h"
#include "overload.h"

struct conf;
struct event;
struct image;
struct image_service;
struct problem;
struct upload;
struct visit;

/* An upload that waits to be admitted. The caller sets the first members, and parks the event. */
struct admission_waiter {
	struct event *event;
	unsigned instance; /* of accept_read */
	unsigned class;
	uint64_t work;
	bool is_heavy; /* its client has most of the images in flight */
	struct client_key client;
	unsigned full_stage; /* that had enough at the last look: its index + 1; 0: none */
	/* the line's own, under the lock */
	struct overload_ticket ticket;
	struct admission_waiter *next;
	bool is_waiting;
};

struct admission {
	pthread_mutex_t lock;
	struct overload overload;
	struct client_work clients;
	struct admission_waiter *first; /* by class, then by arrival */
	struct conf_classes classes;    /* under the lock */
	uint64_t admitted[CONTROL_CLASSES_MAX], refused[CONTROL_CLASSES_MAX]; /* since startup */
	uint64_t waited;
	struct conf_degrade degrade;
	uint64_t degraded[CONF_DEGRADE_MAX]; /* stored images by step, since it was configured */
	unsigned level[CONTROL_CLASSES_MAX]; /* that was logged */
};

/* A snapshot for reports. */
struct admission_report {
	uint64_t waited, waiting;
	double backlog_s, p90_s;
	unsigned class_count;
	struct conf_degrade degrade;
	uint64_t degraded[CONF_DEGRADE_MAX];
	struct {
		char name[CONF_CLASS_NAME_MAX];
		uint64_t admitted, refused;
		double target_s;
		double limit_s; /* backlog: what may be admitted; 0: not known */
		double rate;    /* welsh: uploads per second */
		unsigned level; /* of degrade */
	} class[CONTROL_CLASSES_MAX];
};

/* ---- main thread ---- */

void admission_init(struct admission *a, const struct conf *conf);
void admission_fini(struct admission *a);

/* Applies another configuration. */
void admission_change(struct admission *a, const struct conf *conf);

/* ---- any thread ---- */

/* Returns whether an upload of `bytes` is admitted. w->ticket then holds its place, until
 * admission_begin() or admission_cancel(). */
bool admission_try(struct image_service *s, struct admission_waiter *w);

/* The same, but an upload that is not admitted is in the line: returns false, and its event is no
 * longer the caller's. It is sent to accept_read when the upload is admitted. */
bool admission_wait(struct image_service *s, struct admission_waiter *w);

/* Removes an upload from the line. Returns true if it waited: its event is the caller's. */
bool admission_leave(struct image_service *s, struct admission_waiter *w);

/* Fills in the problem of an upload that is refused. */
void admission_set_problem(struct image_service *s, const struct admission_waiter *w,
                           struct problem *problem);

/* The upload will not begin. An empty ticket is ignored. */
void admission_cancel(struct image_service *s, struct overload_ticket *ticket);

/* All images of the upload begin. */
void admission_begin(struct image_service *s, struct upload *u);

/* Returns whether images have been made as configured again for a while. */
bool admission_is_calm(struct admission *a);

/* An image ends: admits uploads of the line. */
void admission_end(struct visit *v, struct image *image);

/* The same without an image. Uploads that were admitted may have ended without one. */
void admission_poll(struct visit *v, struct image_service *s);

void admission_report(struct admission *a, struct admission_report *report);

#endif

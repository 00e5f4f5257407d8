/*
 * remake_report.h - what remake does: its counters, and lines of the log.
 */
#ifndef DARKROOM_IMAGE_REMAKE_REPORT_H
#define DARKROOM_IMAGE_REMAKE_REPORT_H

struct remake;
struct text;

/* Appends the counters as a line of JSON. Any thread. */
void remake_report(struct remake *r, struct text *to);

/* An image is about to begin. Logs it if it is the first one. Remake's thread. */
void remake_tell_begin(struct remake *r);

/* The queue has been empty for a while. Logs what became of the images. Remake's thread. */
void remake_tell_end(struct remake *r);

#endif

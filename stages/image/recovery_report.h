/*
 * recovery_report.h - how recovery ended, in one line of the log.
 */
#ifndef DARKROOM_IMAGE_RECOVERY_REPORT_H
#define DARKROOM_IMAGE_RECOVERY_REPORT_H

struct recovery;

/* Logs how many images left the spool since the last call, and how. Logs nothing if none did, or
 * if images still wait because recovery is stopping. Recovery's thread. */
void recovery_report(struct recovery *r);

#endif

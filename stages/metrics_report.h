/*
 * metrics_report.h - the document of GET /metrics.
 */
#ifndef DARKROOM_METRICS_REPORT_H
#define DARKROOM_METRICS_REPORT_H

struct report_source;
struct text;

/* Appends the whole document. Any thread, in a visit. */
void metrics_report(const struct report_source *source, struct text *to);

#endif

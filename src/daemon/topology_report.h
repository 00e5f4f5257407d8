/*
 * topology_report.h - what --topology prints: the machine, and where a configuration puts workers,
 * replicas and parts on it.
 */
#ifndef DARKROOM_DAEMON_TOPOLOGY_REPORT_H
#define DARKROOM_DAEMON_TOPOLOGY_REPORT_H

struct conf;
struct text;

/* Appends it, by the same code that lays out a graph that is to run. 0 or -errno, the reason
 * logged. Main thread. */
int topology_report_print(const struct conf *conf, struct text *to);

#endif

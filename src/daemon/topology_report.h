/* topology_report.h - the text that --topology prints. */
#ifndef DARKROOM_DAEMON_TOPOLOGY_REPORT_H
#define DARKROOM_DAEMON_TOPOLOGY_REPORT_H

struct conf;
struct text;

/* Appends the cores that the configuration gives to workers, replicas and parts. They are
 * determined by the same code as for a running daemon. Returns 0 or -errno, with the reason
 * logged. Main thread. */
int topology_report_print(const struct conf *conf, struct text *to);

#endif

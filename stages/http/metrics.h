/* metrics.h - the document of GET /metrics. */
#ifndef DARKROOM_HTTP_METRICS_H
#define DARKROOM_HTTP_METRICS_H

struct server;
struct text;

/* Appends all of it. Any thread. */
void server_metrics(struct server *s, struct text *to);

#endif

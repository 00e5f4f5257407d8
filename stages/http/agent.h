/*
 * agent.h - answers the agent-check of HAProxy with the server's weight: "up 75%".
 *
 * The weight is the share of the room for uploads that is free: of limits.images_in_flight, or of
 * the work that overload.target_p90 allows, whichever is less. It is 1 to 100, and 0 before the
 * threads have started and once the end is announced. The answer never has the words drain, maint
 * or ready: they would overrule what an operator has set in HAProxy. Main thread.
 */
#ifndef DARKROOM_HTTP_AGENT_H
#define DARKROOM_HTTP_AGENT_H

#include <stdbool.h>

struct conf;
struct http_server;

struct agent {
	int fd; /* readable when a client waits; -1: off */
};

/* Listens at server.agent_listen, if that is set. Returns 0, or -errno with the reason logged. */
int agent_open(struct agent *a, const struct conf *conf);
void agent_close(struct agent *a);

/* Answers the clients that wait. Waits for none of them. */
void agent_serve(const struct agent *a, struct http_server *http);

/* Returns the weight, in percent, of a server with room for images_max images and work of limit_s
 * seconds (0: not known). Any thread. */
unsigned agent_weight(double images, double images_max, double backlog_s, double limit_s);

#endif

/*
 * listener_set.h - all sockets on which the daemon listens: those of server.listen or those that
 * the service manager passed, and the administrative one. Fixed after start.
 */
#ifndef DARKROOM_HTTP_LISTENER_SET_H
#define DARKROOM_HTTP_LISTENER_SET_H

#include <stdbool.h>

#include "admin.h"
#include "conf/conf.h"

struct listener_set {
	/* One SO_REUSEPORT listener per I/O thread. If is_activated, the service manager's sockets,
	 * from which all I/O threads accept and which outlive the process. */
	int fd[CONF_THREADS_MAX];
	unsigned count;
	bool is_activated;
	bool is_local; /* only this machine can connect */
	struct admin admin;
	char url[CONF_TEXT_MAX]; /* of the first listener, with its actual port */
};

/* Takes the service manager's sockets, or opens `count` listeners at server.listen; then opens the
 * administrative one. Returns 0, or -errno with the reason logged and nothing open. Main thread. */
int listener_set_open(struct listener_set *l, const struct conf *conf, unsigned count);

/* Logs each configured address whose host cannot be resolved. Main thread. */
void listener_set_check(const struct conf *conf);
void listener_set_close(struct listener_set *l);

#endif

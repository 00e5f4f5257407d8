/*
 * admin.h - where /stats and /metrics are served: from a listener of their own, the public ones, or
 * both. Fixed after start. Main thread.
 */
#ifndef DARKROOM_HTTP_ADMIN_H
#define DARKROOM_HTTP_ADMIN_H

#include <stdbool.h>

#include "base/unix_socket.h"
#include "conf/conf.h"

/* Open connections per accepting thread; limits.connections does not count them. */
#define ADMIN_CONNS_MAX 32
/* Upper bound of their events: one thread accepts them all, or each of 64 threads one at a time. */
#define ADMIN_EVENTS_MAX 256

struct admin {
	int fd;                    /* -1: no listener of its own */
	struct unix_socket socket; /* of fd, if it is a path that we made */
	bool is_local_port;        /* fd is a TCP port, and only this machine can connect */
	bool is_on_public;         /* the public listeners serve it as well */
	char url[CONF_TEXT_MAX];
};

/* Opens the configured listener, or takes the passed one (-1: none). The public ones must be open.
 * Returns 0, or -errno with the reason logged. */
int admin_open(struct admin *a, const struct conf *conf, const int *public_fd,
               unsigned public_count, int passed_fd);
void admin_close(struct admin *a);

#endif

/*
 * admin.h - where /stats and /metrics are served: a listener of their own, the public ones, or
 * both.
 *
 * Fixed after start. Main thread.
 */
#ifndef DARKROOM_HTTP_ADMIN_H
#define DARKROOM_HTTP_ADMIN_H

#include <stdbool.h>

#include "base/unix_socket.h"
#include "conf/conf.h"

#define ADMIN_CONNS_MAX \
	32 /* open at a time, for each thread that accepts them; not of limits.connections */
#define ADMIN_EVENTS_MAX                                                                         \
	256 /* of those connections at most: one thread accepts them, or each of 64 has one at a \
	       time */

struct admin {
	int fd;                    /* -1: no listener of its own */
	struct unix_socket socket; /* what fd is, if it is a path of ours */
	bool is_on_public;         /* the public listeners have it, too */
	char url[CONF_TEXT_MAX];
};

/*
 * Opens the listener that the configuration asks for, or takes the one that was passed (-1: none),
 * once the public ones are open. 0 or -errno, the reason logged.
 */
int admin_open(struct admin *a, const struct conf *conf, const int *public_fd,
               unsigned public_count, int passed_fd);
void admin_close(struct admin *a);

#endif

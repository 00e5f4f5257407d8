/*
 * ctl_socket.h - the daemon's control socket: who may use it, and its few clients.
 *
 * Nothing here ever waits: a client that does not finish its line, or does not read, costs a place
 * until a newcomer needs it. Main thread.
 */
#ifndef DARKROOM_DAEMON_CTL_SOCKET_H
#define DARKROOM_DAEMON_CTL_SOCKET_H

#include <stddef.h>

#include "ctl.h"
#include "base/unix_socket.h"

#define CTL_CLIENTS 8

struct reload;

struct ctl_client {
	int fd; /* -1: a free place */
	size_t length;
	char line[CTL_LINE_MAX];
};

struct ctl_socket {
	int fd; /* readable when there is something to serve; -1: there is no socket */
	struct unix_socket listener;
	struct ctl_client client[CTL_CLIENTS];
	unsigned next; /* whose place a newcomer gets if none is free */
};

/*
 * Opens the socket that the configuration asks for. The socket of a daemon that is no more is
 * replaced. 0 or -errno, the reason logged; with server.control = auto a failure is logged, and no
 * failure. ctl_socket_close() in any case.
 */
int ctl_socket_open(struct ctl_socket *s, const struct conf *conf);
void ctl_socket_close(struct ctl_socket *s);

/* Serves what has come, when fd is readable. */
void ctl_socket_serve(struct ctl_socket *s, struct reload *r);

#endif

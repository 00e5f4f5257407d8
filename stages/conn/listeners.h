/*
 * listeners.h - the sockets on which the daemon listens: those of server.listen, or those that the
 * service manager opened, and the administrative one. Main thread; fixed after start.
 *
 * Sockets of the service manager outlive the process: clients that connect during a restart wait in
 * their queue. They come by the protocol of sd_listen_fds(3), without its library.
 */
#ifndef DARKROOM_CONN_LISTENERS_H
#define DARKROOM_CONN_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/unix_socket.h"
#include "conf/conf.h"
#include "log/log.h"

/* ---- one socket ---- */

#define LISTEN_BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */

/* Returns a bound and listening TCP socket at HOST:PORT or [HOST]:PORT, whose syntax the
 * configuration has checked; or -errno with the reason logged under the key. */
int listener_open_at(const char *key, const char *listen, enum log_level level);

/* Writes http://HOST:PORT or unix:PATH. */
void listener_url(int fd, char *url, size_t size);

/* Returns whether only this machine can connect: to a loopback address, or a path. */
bool listener_is_local(int fd);

/* ---- the administrative listener ---- */

/* Open connections per accepting thread; limits.connections does not count them. */
#define ADMIN_CONNS_MAX 32
/* Upper bound of their events: one thread accepts them all, or each thread one at a time. */
#define ADMIN_EVENTS_MAX (2 * CONF_THREADS_MAX)

struct admin {
	int fd;                    /* -1: no listener of its own */
	struct unix_socket socket; /* of fd, if it is a path that we made */
	bool is_local;             /* only this machine can connect to fd */
	bool is_local_port;        /* the same, and fd is a TCP port */
	bool is_on_public;         /* the public listeners serve it as well */
	char url[CONF_TEXT_MAX];
};

/* ---- all of them ---- */

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

/* Logs each configured address that is not one of this machine, or that two keys have. Ports that
 * others use are not seen: they may be those of the running daemon. Returns 0 or -errno. Main
 * thread. */
int listener_set_check(const struct conf *conf);
void listener_set_close(struct listener_set *l);

#endif

/*
 * ctl_socket.h - the daemon's control socket and its clients.
 *
 * Nothing here waits for a client. One that does not finish its line, or does not read its answer,
 * occupies a place until a new client needs it. Main thread.
 */
#ifndef DARKROOM_DAEMON_CTL_SOCKET_H
#define DARKROOM_DAEMON_CTL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/unix_socket.h"
#include "ctl.h"

#define CTL_CLIENTS 8

struct reload;

struct ctl_client {
	int fd; /* -1: a free place */
	size_t length;
	char line[CTL_LINE_MAX];
	bool is_due; /* the answer waits until the change is applied; the message is in use */
	uint64_t answer_ns; /* as reload.h */
	struct text message;
};

struct ctl_socket {
	int fd; /* readable when a client needs service; -1: closed */
	struct unix_socket listener;
	struct ctl_client client[CTL_CLIENTS];
	unsigned next; /* the place that a new client gets if none is free */
};

/*
 * Opens the socket of the configuration. Replaces the socket of a daemon that has ended. Returns 0
 * or -errno, logged; with server.control = auto a failure is logged as a warning and 0 returned.
 * The caller calls ctl_socket_close() in any case.
 */
int ctl_socket_open(struct ctl_socket *s, const struct conf *conf);
void ctl_socket_close(struct ctl_socket *s);

/* Answers clients whose change is applied, or not applied in time. */
void ctl_socket_answer(struct ctl_socket *s, const struct reload *r);

/* Serves one event, when fd is readable. */
void ctl_socket_serve(struct ctl_socket *s, struct reload *r);

#endif

/*
 * ctl_socket.h - the daemon's control socket, its clients and their commands.
 *
 * Nothing here waits for a client. One that does not finish its line, or does not read its answer,
 * occupies a place until a new client needs it. Main thread.
 */
#ifndef DARKROOM_DAEMON_CTL_SOCKET_H
#define DARKROOM_DAEMON_CTL_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/unix_socket.h"
#include "ctl.h"

#define CTL_CLIENTS 8
#define CTL_DESCRIPTORS (CTL_CLIENTS + 1) /* and the listener */

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
void ctl_socket_answer(struct ctl_socket *s);

/* Runs a command line, which it takes apart, and appends the result. */
enum ctl_status ctl_command(struct reload *r, char *line, struct text *answer);

/* Appends the commands with their meaning, one line each. */
void ctl_print_commands(struct text *to);

/* Writes what poll(2) is to wait for. */
void ctl_socket_watch(const struct ctl_socket *s, struct pollfd fds[CTL_DESCRIPTORS]);

/* Serves what is ready. */
void ctl_socket_serve(struct ctl_socket *s, const struct pollfd fds[CTL_DESCRIPTORS],
                      struct reload *r);

#endif

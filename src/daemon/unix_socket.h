/*
 * unix_socket.h - a Unix socket that listens at a path: made, and removed again if it is still
 * ours.
 *
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_UNIX_SOCKET_H
#define DARKROOM_DAEMON_UNIX_SOCKET_H

#include <sys/types.h>

#include "conf/conf.h"

struct unix_socket {
	int fd; /* -1: none */
	char path[CONF_SOCKET_MAX];
	dev_t device; /* of the path, to know it again */
	ino_t inode;  /* 0: it is not there */
};

/*
 * Listens at the path, which gets the mode, less the umask. The socket of a process that is no more
 * is replaced. 0 or -errno, which unix_socket_reason() has words for. unix_socket_close() in any
 * case.
 */
int unix_socket_open(struct unix_socket *s, const char *path, mode_t mode, int backlog);
void unix_socket_close(struct unix_socket *s);

const char *unix_socket_reason(int err);

#endif

/*
 * unix_socket.h - a Unix socket that listens at a path, and is removed on close.
 *
 * Main thread.
 */
#ifndef DARKROOM_BASE_UNIX_SOCKET_H
#define DARKROOM_BASE_UNIX_SOCKET_H

#include <sys/types.h>

#define UNIX_SOCKET_PATH_MAX 108 /* bytes of the path, with the zero: unix(7) */

struct unix_socket {
	int fd; /* -1: closed */
	char path[UNIX_SOCKET_PATH_MAX];
	dev_t device; /* of the path; with the inode it tells whether the path is still ours */
	ino_t inode;  /* 0: there is no path to remove */
};

/*
 * Listens at the path, which gets the mode less the umask. Replaces the socket of a process that
 * has ended. Returns 0 or -errno, for unix_socket_reason(). The caller calls unix_socket_close() in
 * any case.
 */
int unix_socket_open(struct unix_socket *s, const char *path, mode_t mode, int backlog);
void unix_socket_close(struct unix_socket *s);

/* The message for an error of unix_socket_open(). */
const char *unix_socket_reason(int err);

#endif

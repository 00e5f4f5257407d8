/*
 * fd_message.h - a message that passes a descriptor to another process (unix(7), SCM_RIGHTS).
 *
 * The socket has whole messages (SOCK_SEQPACKET). Inline, because darkroom-decode is linked without
 * the objects of src/. Any thread.
 */
#ifndef DARKROOM_BASE_FD_MESSAGE_H
#define DARKROOM_BASE_FD_MESSAGE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union fd_message_control {
	struct cmsghdr align;
	char data[CMSG_SPACE(sizeof(int))];
};

/* Sends data[size], and the descriptor unless it is negative. Returns whether the other end is
 * still there. */
static inline bool fd_message_send(int socket, const void *data, size_t size, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)data, size };
	union fd_message_control control = { .data = { 0 } };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			               .cmsg_type = SCM_RIGHTS,
			               .cmsg_len = CMSG_LEN(sizeof fd) };
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Receives data[size], and sets *fd to the descriptor that came with it, or to -1. flags: of
 * recvmsg(2). Returns 0 or -errno. -EPIPE: the other end is closed, or the message is shorter. */
static inline int fd_message_receive(int socket, void *data, size_t size, int flags, int *fd)
{
	struct iovec iov = { data, size };
	union fd_message_control control;
	struct msghdr message = { .msg_iov = &iov,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof control };
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		return n < 0 ? -errno : -EPIPE;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return 0;
}

#endif

/*
 * opener.c - a socket pair: one byte asks, an error number and a descriptor answer.
 */
#include "opener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "fd_message.h"

static struct {
	int fd; /* -1: there is no process */
	struct opener_file file[OPENER_FILES_MAX];
	unsigned count;
} opener = { .fd = -1 };

/* Returns a descriptor or -errno. */
static int open_here(const char *path, enum opener_use use)
{
	static const int flags[] = {
		[OPENER_READ] = O_RDONLY,
		[OPENER_READ_FILE] = O_RDONLY | O_NONBLOCK,
		[OPENER_APPEND_FILE] = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK,
	};
	int fd = open(path, flags[use] | O_CLOEXEC | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

/* ---- the process ---- */

/* Answers until the other end is closed: by opener_stop() or by the end of that process. */
static void serve(void *arg)
{
	unsigned char index;

	(void)arg;
	while (recv(0, &index, 1, 0) == 1 && index < opener.count) {
		int fd = open_here(opener.file[index].path, opener.file[index].use),
		    err = fd < 0 ? fd : 0;

		if (!fd_message_send(0, &err, sizeof err, fd))
			break;
		if (fd >= 0)
			close(fd);
	}
}

int opener_fork(const char *name, void (*function)(void *arg), void *arg)
{
	int pair[2];
	sigset_t all;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid_t pid = fork();
	int err = pid < 0 ? -errno : 0;

	if (pid == 0) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL); /* a terminal signals the whole group */
		prctl(PR_SET_NAME, name);
		dup2(pair[1], 0);
		closefrom(1);
		function(arg);
		_exit(0);
	}
	close(pair[1]);
	if (err)
		close(pair[0]);
	return err ? err : pair[0];
}

int opener_start(const struct opener_file *files, unsigned count)
{
	assert(opener.fd < 0 && count <= OPENER_FILES_MAX);
	memcpy(opener.file, files, count * sizeof *files);
	opener.count = count;
	int fd = opener_fork("darkroomd-open", serve, NULL);

	if (fd >= 0)
		opener.fd = fd;
	return fd < 0 ? fd : 0;
}

void opener_stop(void)
{
	if (opener.fd >= 0)
		close(opener.fd);
	opener.fd = -1;
}

/* ---- asking it ---- */

/* Receives an answer. Returns the descriptor or -errno. */
static int receive(void)
{
	int err = 0, fd;

	if (fd_message_receive(opener.fd, &err, sizeof err, 0, &fd))
		return -ECHILD;
	/* No descriptor and no error: this process may have too many. */
	return err ? err : fd < 0 ? -EMFILE : fd;
}

int opener_open(const char *path, enum opener_use use)
{
	for (unsigned char i = 0; opener.fd >= 0 && i < opener.count; i++)
		if (opener.file[i].use == use && strcmp(opener.file[i].path, path) == 0)
			return send(opener.fd, &i, 1, MSG_NOSIGNAL) == 1 ? receive() : -ECHILD;
	return open_here(path, use);
}

ssize_t opener_read(const char *path, enum opener_use use, void *data, size_t size, struct stat *st)
{
	int fd = opener_open(path, use);
	size_t length = 0;
	ssize_t n = 1;

	if (st)
		*st = (struct stat){ 0 };
	if (fd < 0)
		return fd;
	if (st && fstat(fd, st))
		n = -1;
	while (n > 0 && length < size) {
		do
			n = read(fd, (char *)data + length, size - length);
		while (n < 0 && errno == EINTR);
		length += n > 0 ? (size_t)n : 0;
	}
	int err = n < 0 ? -errno : 0;

	close(fd);
	return err ? err : (ssize_t)length;
}

/*
 * unix_socket.c - listens at a path that is free, or left over from a process that has ended.
 *
 * Main thread.
 */
#include "unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

static_assert(UNIX_SOCKET_PATH_MAX == sizeof((struct sockaddr_un *)0)->sun_path, "unix(7)");

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, path, strlen(path) + 1);
	return address;
}

/* Makes the path free. Returns 0, -EADDRINUSE if a process listens there, -EEXIST if it is not a
 * socket, or -errno. */
static int clear_path(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* EAGAIN: a process listens, and its queue is full. */
	int err = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
	                          errno == EAGAIN
	                  ? -EADDRINUSE
	                  : -errno;

	close(fd);
	if (err != -ECONNREFUSED)
		return err;
	return unlink(path) ? -errno : 0;
}

static int listen_at(struct unix_socket *s, mode_t mode, int backlog)
{
	const struct sockaddr_un address = address_of(s->path);
	struct stat st;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* The path gets the mode that the socket has when it is bound, so other users can never
	 * connect in between. */
	if (fchmod(s->fd, mode) || bind(s->fd, (const struct sockaddr *)&address, sizeof address))
		return -errno;
	if (listen(s->fd, backlog) || lstat(s->path, &st)) {
		int err = -errno;

		unlink(s->path);
		return err;
	}
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return 0;
}

int unix_socket_open(struct unix_socket *s, const char *path, mode_t mode, int backlog)
{
	*s = (struct unix_socket){ .fd = -1 };
	if (strlen(path) >= sizeof s->path)
		return -ENAMETOOLONG;
	memcpy(s->path, path, strlen(path) + 1);
	int err = clear_path(s->path);

	return err ? err : listen_at(s, mode, backlog);
}

void unix_socket_close(struct unix_socket *s)
{
	struct stat st;

	/* Another daemon may have replaced the path. */
	if (s->inode && lstat(s->path, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode)
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->inode = 0;
}

const char *unix_socket_reason(int err)
{
	return err == -EADDRINUSE     ? "another daemon listens there"
	       : err == -EEXIST       ? "it exists and is not a socket"
	       : err == -ENAMETOOLONG ? "expected a path of at most 107 bytes"
	                              : strerror(-err);
}

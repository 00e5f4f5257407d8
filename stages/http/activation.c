/*
 * activation.c - finds the sockets of the service manager and checks that they can be served.
 *
 * Main thread.
 */
#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/log.h"

#define FIRST_FD 3         /* SD_LISTEN_FDS_START */
#define NAME_MAX_BYTES 255 /* limit of FileDescriptorName= */

/* The variable as a number; -1: it is not set, or not a number from 1 to 2^30. */
static long environment_number(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (!text || text[0] < '1' || text[0] > '9')
		return -1;
	errno = 0;
	long value = strtol(text, &end, 10);

	return *end || errno || value > 1L << 30 ? -1 : value;
}

/* Removes the first name from a list separated by colons; "" at the end of the list. */
static void next_name(const char **list, char name[NAME_MAX_BYTES + 1])
{
	size_t length = *list ? strcspn(*list, ":") : 0;
	size_t kept = length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES;

	if (length)
		memcpy(name, *list, kept);
	name[kept] = '\0';
	if (*list)
		*list = (*list)[length] ? *list + length + 1 : NULL;
}

/* A socket without a name of its own has the name of its unit, or "unknown". */
static bool is_for_http(const char *name)
{
	static const char unit[] = ".socket";
	size_t length = strlen(name);

	return length == 0 || strcmp(name, "http") == 0 || strcmp(name, "unknown") == 0 ||
	       (length >= sizeof unit && strcmp(name + length - (sizeof unit - 1), unit) == 0);
}

static bool is_for_admin(const char *name)
{
	return strcmp(name, "admin") == 0;
}

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t length = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) ? -1 : value;
}

/* NULL if the socket can be served, otherwise what was expected. */
static const char *fault_of(int fd, const char *name)
{
	int domain = socket_option(fd, SO_DOMAIN);

	if (!is_for_http(name) && !is_for_admin(name))
		return "expected the name http or admin";
	if (domain < 0)
		return "expected a socket";
	if ((domain != AF_INET && domain != AF_INET6 &&
	     (domain != AF_UNIX || !is_for_admin(name))) ||
	    socket_option(fd, SO_TYPE) != SOCK_STREAM)
		return is_for_admin(name) ? "expected a stream socket" : "expected a TCP socket";
	return socket_option(fd, SO_ACCEPTCONN) == 1 ? NULL
	                                             : "expected a listening socket (Accept=no)";
}

static int prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	return 0;
}

int activation_take(int *fd, unsigned max, int *admin_fd)
{
	const char *names = getenv("LISTEN_FDNAMES");
	long count = environment_number("LISTEN_FDS");
	int taken = 0;

	*admin_fd = -1;
	if (count < 0 || environment_number("LISTEN_PID") != (long)getpid())
		return 0;
	if (count > (long)max + 1) {
		log_error("socket activation: %ld sockets were passed: expected at most %u", count,
		          max + 1);
		return -E2BIG;
	}
	for (int i = 0; i < (int)count; i++) {
		char name[NAME_MAX_BYTES + 1];

		next_name(&names, name);
		const char *fault = fault_of(FIRST_FD + i, name);

		if (!fault && is_for_admin(name) && *admin_fd >= 0)
			fault = "expected only one with this name";
		if (!fault && !is_for_admin(name) && taken == (int)max)
			fault = "expected fewer sockets";
		int err = fault ? -EINVAL : prepare(FIRST_FD + i);

		if (err) {
			log_error("socket activation: descriptor %d (\"%s\"): %s", FIRST_FD + i,
			          name, fault ? fault : strerror(-err));
			return err;
		}
		if (is_for_admin(name))
			*admin_fd = FIRST_FD + i;
		else
			fd[taken++] = FIRST_FD + i;
	}
	return taken;
}

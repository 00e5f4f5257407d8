/* listener_set.c - opens and closes the daemon's listeners. Main thread. */
#include "listener_set.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "activation.h"
#include "base/check.h"
#include "conf/conf_places.h"
#include "listener.h"
#include "log/log.h"

/* Binds the address once without SO_REUSEPORT. This detects another program on the port, which
 * sockets that share it would not, and replaces port 0 by the port chosen. */
static int claim_port(struct sockaddr_storage *address, socklen_t *length)
{
	int fd = listener_open(address, *length, false);
	int err = fd < 0 ? fd : 0;

	if (fd < 0)
		return err;
	*length = sizeof *address;
	if (getsockname(fd, (struct sockaddr *)address, length))
		err = -errno;
	close(fd);
	return err;
}

static int open_sockets(struct listener_set *l, struct sockaddr_storage *address, socklen_t length,
                        unsigned count)
{
	int err = claim_port(address, &length);

	for (unsigned i = 0; i < count && !err; i++) {
		int fd = listener_open(address, length, count > 1);

		if (fd < 0)
			err = fd;
		else
			l->fd[l->count++] = fd;
	}
	return err;
}

void listener_set_check(const struct conf *conf)
{
	const char *admin = conf->server.admin_listen;
	struct sockaddr_storage address;
	socklen_t length;

	listener_resolve("server.listen", conf->server.listen, &address, &length);
	if (*admin != '/' && strchr(admin, ':'))
		listener_resolve("server.admin_listen", admin, &address, &length);
	if (*conf->server.agent_listen)
		listener_resolve("server.agent_listen", conf->server.agent_listen, &address,
		                 &length);
}

static int open_configured(struct listener_set *l, const struct conf *conf, unsigned count)
{
	struct sockaddr_storage address;
	socklen_t length;
	int err = listener_resolve("server.listen", conf->server.listen, &address, &length);

	if (err)
		return err;
	err = open_sockets(l, &address, length, count);
	if (err)
		log_error("%sserver.listen = %s: %s%s", conf_place("server.listen"),
		          conf->server.listen, strerror(-err),
		          err == -EACCES ? "; a port below 1024 needs darkroomd.socket: "
		                           "EXAMPLES in darkroomd(8)"
		                         : "");
	return err;
}

int listener_set_open(struct listener_set *l, const struct conf *conf, unsigned count)
{
	*l = (struct listener_set){ .admin = { .fd = -1, .socket.fd = -1 } };
	int admin_fd, passed = activation_take(l->fd, COUNT_OF(l->fd), &admin_fd);
	int err = passed < 0 ? passed : 0;

	if (passed > 0) {
		log_notice("server.listen is not used; serving the service manager's sockets (%d)",
		           passed);
		l->count = (unsigned)passed;
		l->is_activated = true;
	} else if (!err) {
		err = open_configured(l, conf, count);
	}
	if (!err) {
		listener_url(l->fd[0], l->url, sizeof l->url);
		l->is_local = listeners_are_local(l->fd, l->count);
		err = admin_open(&l->admin, conf, l->fd, l->count, admin_fd);
	}
	if (err)
		listener_set_close(l);
	return err;
}

void listener_set_close(struct listener_set *l)
{
	for (unsigned i = 0; i < l->count; i++)
		close(l->fd[i]);
	l->count = 0;
	admin_close(&l->admin);
}

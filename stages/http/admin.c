/* admin.c - decides where administrative resources are served, and listens there. Main thread. */
#include "admin.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf_places.h"
#include "listener.h"
#include "log/log.h"

#define AUTO_ADDRESS "127.0.0.1:8081"
#define SOCKET_MODE 0660 /* less the umask; the usual one leaves it to the owner */
#define SOCKET_BACKLOG 16

static int listen_at_path(struct admin *a, const char *path)
{
	int err = unix_socket_open(&a->socket, path, SOCKET_MODE, SOCKET_BACKLOG);

	if (err)
		log_error("%sserver.admin_listen = %s: %s", conf_place("server.admin_listen"), path,
		          unix_socket_reason(err));
	a->fd = err ? -1 : a->socket.fd;
	return err;
}

/* With `auto`, a failure is only logged. */
static int listen_at_address(struct admin *a, const char *listen, bool is_auto)
{
	struct sockaddr_storage address;
	socklen_t length;
	int err = listener_resolve("server.admin_listen", listen, &address, &length);

	if (err)
		return err;
	int fd = listener_open(&address, length, false);

	if (fd >= 0)
		a->fd = fd;
	else
		log_write(is_auto ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
		          "%sserver.admin_listen = %s: %s", conf_place("server.admin_listen"),
		          listen, strerror(-fd));
	return fd < 0 && !is_auto ? fd : 0;
}

static int open_configured(struct admin *a, const struct conf *conf)
{
	const char *listen = conf->server.admin_listen;

	if (strcmp(listen, "no") == 0)
		return 0;
	if (strcmp(listen, "auto") == 0)
		return a->is_on_public ? 0 : listen_at_address(a, AUTO_ADDRESS, true);
	return *listen == '/' ? listen_at_path(a, listen) : listen_at_address(a, listen, false);
}

int admin_open(struct admin *a, const struct conf *conf, const int *public_fd,
               unsigned public_count, int passed_fd)
{
	int err = 0;

	*a = (struct admin){ .fd = passed_fd, .socket.fd = -1 };
	a->is_on_public = conf->server.admin_on_public == CONF_DEFAULT
	                          ? listeners_are_local(public_fd, public_count)
	                          : conf->server.admin_on_public == CONF_YES;
	if (passed_fd < 0)
		err = open_configured(a, conf);
	if (err || a->fd < 0) {
		if (!err && !a->is_on_public)
			log_notice("administration: /stats and /metrics are served nowhere");
		return err;
	}
	listener_url(a->fd, a->url, sizeof a->url);
	a->is_local_port = listener_is_local(a->fd) && strncmp(a->url, "http", 4) == 0;
	log_notice("administration on %s", a->url);
	if (!listener_is_local(a->fd))
		log_warning("administration: other machines can connect to %s, which has no access "
		            "control; serving them",
		            a->url);
	return 0;
}

void admin_close(struct admin *a)
{
	if (a->fd >= 0 && a->fd != a->socket.fd)
		close(a->fd);
	unix_socket_close(&a->socket);
	a->fd = -1;
}

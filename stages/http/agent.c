/* agent.c - one short line for each connection. Main thread. */
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf/conf_places.h"
#include "http_server.h"
#include "listener.h"
#include "log/log.h"

#define TURN_MAX 16 /* clients before other work of the main thread */

int agent_open(struct agent *a, const struct conf *conf)
{
	const char *listen = conf->server.agent_listen;
	struct sockaddr_storage address;
	socklen_t length;
	char url[CONF_TEXT_MAX];

	a->fd = -1;
	if (!*listen)
		return 0;
	int err = listener_resolve("server.agent_listen", listen, &address, &length);

	if (err)
		return err;
	int fd = listener_open(&address, length, false);

	if (fd < 0) {
		log_error("%sserver.agent_listen = %s: %s", conf_place("server.agent_listen"),
		          listen, strerror(-fd));
		return fd;
	}
	a->fd = fd;
	listener_url(fd, url, sizeof url);
	log_notice("agent-check on %s", url + sizeof "http://" - 1);
	return 0;
}

void agent_close(struct agent *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

static double free_share(double used, double max)
{
	return max <= 0 ? 1 : used >= max ? 0 : 1 - used / max;
}

unsigned agent_weight(double images, double images_max, double backlog_s, double limit_s)
{
	double by_images = free_share(images, images_max);
	double by_work = free_share(backlog_s, limit_s);
	unsigned weight = (unsigned)((by_images < by_work ? by_images : by_work) * 100 + 0.5);

	return weight ? weight : 1; /* 0 would end sessions that stick to the server */
}

static unsigned weight_of(struct http_server *http)
{
	struct image_service *images = http->images;
	struct admission_report report;

	/* Relaxed: only the flags matter. */
	if (atomic_load_explicit(&http->is_ending, memory_order_relaxed) ||
	    !atomic_load_explicit(&http->is_ready, memory_order_relaxed))
		return 0;
	admission_report(&images->admission, &report);
	return agent_weight((double)atomic_load_explicit(&images->in_flight, memory_order_relaxed),
	                    (double)http_server_conf(http)->limits.images_in_flight,
	                    report.backlog_s, report.class[0].limit_s);
}

void agent_serve(const struct agent *a, struct http_server *http)
{
	char line[16], asked[64];
	int length = 0;

	for (unsigned i = 0; i < TURN_MAX; i++) {
		int fd = accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (!length)
			length = snprintf(line, sizeof line, "up %u%%\n", weight_of(http));
		/* Unread bytes of agent-send would reset the connection. A new socket has room for
		 * the line; an error means that the client has gone. */
		(void)recv(fd, asked, sizeof asked, MSG_DONTWAIT);
		(void)send(fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		close(fd);
	}
}

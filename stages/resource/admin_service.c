/* admin_service.c - settings between I/O threads and the main thread, and one short line for each
 * connection of an agent-check. */
#include "admin_service.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/http_server.h"
#include "conn/listeners.h"
#include "log/log.h"
#include "sched/core/graph.h"
#include "stage_ids.h"

#define AGENT_TURN_MAX 16 /* clients before other work of the main thread */

/* ---- settings ---- */

void setting_queue_submit(struct setting_queue *c, struct setting_job *job)
{
	pthread_mutex_lock(&c->lock);
	STAILQ_INSERT_TAIL(&c->jobs, job, next);
	pthread_mutex_unlock(&c->lock);
}

struct setting_job *setting_queue_first(struct setting_queue *c)
{
	pthread_mutex_lock(&c->lock);
	struct setting_job *job = STAILQ_FIRST(&c->jobs);
	pthread_mutex_unlock(&c->lock);
	return job;
}

void setting_queue_end(struct setting_queue *c, struct graph *graph, int result, const char *report)
{
	pthread_mutex_lock(&c->lock);
	struct setting_job *job = STAILQ_FIRST(&c->jobs);

	STAILQ_REMOVE_HEAD(&c->jobs, next);
	pthread_mutex_unlock(&c->lock);
	job->result = result;
	snprintf(job->report, sizeof job->report, "%s", report);
	stage_push(graph_stage(graph, STAGE_ACCEPT_READ), job->instance, job->event);
}

/* ---- the agent-check ---- */

int admin_open_agent(struct admin_service *a, const struct conf *conf)
{
	const char *listen = conf->server.agent_listen;
	char url[CONF_TEXT_MAX];

	if (!*listen)
		return 0;
	int fd = listener_open_at("server.agent_listen", listen, LOG_LEVEL_ERROR);

	if (fd < 0)
		return fd;
	a->agent_fd = fd;
	listener_url(fd, url, sizeof url);
	log_notice("agent-check on %s", url + sizeof "http://" - 1);
	return 0;
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
	const char *why;

	if (http_server_not_ready(http, false, &why))
		return 0;
	admission_report(&images->admission, &report);
	return agent_weight((double)admission_in_flight(&images->admission),
	                    (double)http_server_conf(http)->limits.images_in_flight,
	                    report.backlog_s, report.class[0].limit_s);
}

void admin_serve_agent(const struct admin_service *a, struct http_server *http)
{
	char line[16], asked[64];
	int length = 0;

	for (unsigned i = 0; i < AGENT_TURN_MAX; i++) {
		int fd = accept4(a->agent_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

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

/* ---- the service ---- */

int admin_service_init(struct admin_service *a)
{
	a->agent_fd = -1;
	pthread_mutex_init(&a->settings.lock, NULL);
	STAILQ_INIT(&a->settings.jobs);
	return stats_stream_open(&a->stream);
}

void admin_service_fini(struct admin_service *a)
{
	stats_stream_close(&a->stream);
	close(a->stream.wake_fd);
	if (a->agent_fd >= 0)
		close(a->agent_fd);
}

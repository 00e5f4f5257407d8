/* s3_socket.c - libcurl's sockets and timer in the event loop. The client's thread. */
#include <stdlib.h>

#include "base/clock.h"
#include "s3_loop.h"

/* A socket of libcurl. */
struct s3_socket {
	struct s3_client *client;
	int fd;
	struct reactor_watch readable, writable;
};

static void on_readable(void *arg)
{
	struct s3_socket *s = arg;

	s3_loop_act(s->client, s->fd, CURL_CSELECT_IN);
}

static void on_writable(void *arg)
{
	struct s3_socket *s = arg;

	s3_loop_act(s->client, s->fd, CURL_CSELECT_OUT);
}

static void free_socket(struct s3_socket *s)
{
	reactor_watch_fini(&s->readable);
	reactor_watch_fini(&s->writable);
	free(s);
}

static struct s3_socket *new_socket(struct s3_client *c, int fd)
{
	struct s3_socket *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->client = c;
	s->fd = fd;
	if (!reactor_watch_init(&s->readable, c->reactor, fd, false, on_readable, s) &&
	    !reactor_watch_init(&s->writable, c->reactor, fd, true, on_writable, s) &&
	    s3_curl.multi_assign(c->multi, fd, s) == CURLM_OK)
		return s;
	free_socket(s);
	return NULL;
}

static int set_watch(struct reactor_watch *w, bool is_on)
{
	if (is_on)
		return reactor_watch_on(w);
	reactor_watch_off(w);
	return 0;
}

/* libcurl wants to know when a socket is ready. */
int s3_socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct s3_socket *s = of_socket;
	struct s3_client *c = arg;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			free_socket(s);
		return 0;
	}
	if (!s && !(s = new_socket(c, fd)))
		return -1; /* the transfer fails */
	return set_watch(&s->readable, what & CURL_POLL_IN) ||
	                       set_watch(&s->writable, what & CURL_POLL_OUT)
	               ? -1
	               : 0;
}

/* libcurl wants to be called after that time; < 0: never. A timer that fires in vain does no harm.
 */
int s3_timeout_changed(CURLM *multi, long ms, void *arg)
{
	struct s3_client *c = arg;

	(void)multi;
	return ms >= 0 && reactor_timer_set(&c->curl_timer, (uint64_t)ms * NS_PER_MS) ? -1 : 0;
}

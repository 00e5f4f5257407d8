/*
 * ctl_socket.c - the control socket: opens it, checks peers, reads lines, writes answers.
 *
 * Knows no command. Main thread.
 */
#include "ctl_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf/conf_source.h"
#include "log/log.h"
#include "program.h"
#include "reload.h"
#include "trace_output.h"

#define BACKLOG 16
#define ACCEPT_PAUSE_MS 50 /* when the process has no free descriptor */

/* ---- opening ---- */

int ctl_socket_open(struct ctl_socket *s, const struct conf *conf)
{
	bool is_required = strcmp(conf->server.control, "auto") != 0;
	char path[CONF_SOCKET_MAX];

	*s = (struct ctl_socket){ .listener.fd = -1 };
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		s->client[i].fd = -1;
	int err = ctl_path(conf, path);

	if (!err && !*path)
		return 0;
	if (!err)
		err = unix_socket_open(&s->listener, path, 0600, BACKLOG);
	if (!err)
		return 0;
	log_write(is_required ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
	          "%scontrol socket %s: cannot listen: %s%s", conf_place("server.control"), path,
	          unix_socket_reason(err), is_required ? "" : "; running without it");
	ctl_socket_close(s);
	return is_required ? err : 0;
}

/* ---- clients ---- */

static void client_close(struct ctl_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->is_due)
		text_fini(&c->message);
	c->is_due = false;
}

/* Sends an answer, which is shorter than a socket's buffer. Without room the rest is dropped: the
 * main thread must not wait for a client. */
static void answer(const struct ctl_client *c, enum ctl_status status, const char *message)
{
	struct text t;

	text_init_growable(&t, CTL_ANSWER_MAX + 8);
	text_printf(&t, "%d\n", (int)status);
	text_puts(&t, message);
	for (size_t sent = 0; sent < t.length;) {
		ssize_t n =
			send(c->fd, t.data + sent, t.length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			log_info("control socket: a client did not read its answer; closing it");
			break;
		}
		sent += (size_t)n;
	}
	text_fini(&t);
}

/* Runs the command of the line. Returns whether the client was answered, or is another's now. */
static bool run_line(struct ctl_client *c, struct reload *r)
{
	log_info("control socket: %s", c->line);
	text_init_growable(&c->message, CTL_ANSWER_MAX);
	enum ctl_status status = ctl_command(r, c->line, &c->message);

	c->is_due = status == CTL_CHANGED;
	c->answer_ns = r->answer_ns;
	if (c->is_due)
		return false;
	/* The main thread writes the figures later, behind this answer. */
	if (status == CTL_TOP && !program_watch(c->fd)) {
		status = CTL_REFUSED;
		text_puts(&c->message, "too many clients read the figures\n");
	}
	answer(c, status == CTL_TRACE || status == CTL_TOP ? CTL_DONE : status, c->message.data);
	text_fini(&c->message);
	if (status == CTL_TRACE) { /* it owns the socket now, also if it fails */
		trace_output_start(r->trace, *program.graph, c->fd, true);
		c->fd = -1;
	}
	return true;
}

/* Reads the line of the client. Once it is complete, runs the command, answers and closes. */
static void client_read(struct ctl_client *c, struct reload *r)
{
	ssize_t n = recv(c->fd, c->line + c->length, sizeof c->line - c->length, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	c->length += (size_t)n;
	char *end = memchr(c->line, '\n', c->length);

	if (!end && c->length < sizeof c->line)
		return;
	if (end) {
		*end = '\0';
		if (!run_line(c, r))
			return;
	} else {
		answer(c, CTL_REFUSED, "the command is too long\n");
	}
	client_close(c);
}

void ctl_socket_answer(struct ctl_socket *s)
{
	for (unsigned i = 0; i < CTL_CLIENTS; i++) {
		struct ctl_client *c = &s->client[i];

		if (!c->is_due || !reload_can_answer(c->answer_ns))
			continue;
		if (reload_print_behind(&c->message))
			text_puts(&c->message, "\n");
		answer(c, CTL_DONE, c->message.data);
		client_close(c);
	}
}

/* A free place, or the place of another client, each in turn. */
static struct ctl_client *find_place(struct ctl_socket *s)
{
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		if (s->client[i].fd < 0)
			return &s->client[i];
	struct ctl_client *c = &s->client[s->next];

	s->next = (s->next + 1) % CTL_CLIENTS;
	client_close(c);
	return c;
}

/* Checks the peer, in addition to the path's mode: the directory may have changed its owner, or a
 * process of root may have passed its socket on. */
static bool is_allowed(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	*uid = (uid_t)-1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return false;
	*uid = peer.uid;
	return peer.uid == 0 || peer.uid == geteuid();
}

static void client_accept(struct ctl_socket *s)
{
	int fd = accept4(s->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		log_warning("control socket: cannot accept a connection: %s; retrying in %d ms",
		            strerror(errno), ACCEPT_PAUSE_MS);
		poll(NULL, 0, ACCEPT_PAUSE_MS); /* the socket stays readable */
		return;
	}
	struct ctl_client *c = find_place(s);
	uid_t uid;

	c->fd = fd;
	c->length = 0;
	if (!is_allowed(fd, &uid)) {
		log_warning("control socket: rejected uid %u: only root and the daemon's own user "
		            "may connect",
		            (unsigned)uid);
		answer(c, CTL_REFUSED, "only root and the daemon's own user may do this\n");
		client_close(c);
	}
}

/* ---- serving ---- */

void ctl_socket_watch(const struct ctl_socket *s, struct pollfd fds[CTL_DESCRIPTORS])
{
	fds[CTL_CLIENTS] = (struct pollfd){ .fd = s->listener.fd, .events = POLLIN };
	for (unsigned i = 0; i < CTL_CLIENTS; i++) {
		const struct ctl_client *c = &s->client[i];

		/* One that waits for its answer has nothing more to say. */
		fds[i] = (struct pollfd){ .fd = c->is_due ? -1 : c->fd, .events = POLLIN };
	}
}

void ctl_socket_serve(struct ctl_socket *s, const struct pollfd fds[CTL_DESCRIPTORS],
                      struct reload *r)
{
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		if (fds[i].revents)
			client_read(&s->client[i], r);
	if (fds[CTL_CLIENTS].revents) /* last: a new client may get the place of another */
		client_accept(s);
}

void ctl_socket_close(struct ctl_socket *s)
{
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		client_close(&s->client[i]);
	unix_socket_close(&s->listener);
}

/*
 * ctl.c - the client of darkroomd ctl: sends a command to the daemon and prints the answer.
 *
 * Main thread.
 */
#include "ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

#define WAIT_S 60 /* for the answer of a daemon that is busy */

int ctl_path(const struct conf *conf, char path[CONF_SOCKET_MAX])
{
	int length;

	if (strcmp(conf->server.control, "auto") == 0)
		length = snprintf(path, CONF_SOCKET_MAX, "%s/control.sock", conf->server.root);
	else
		length = snprintf(path, CONF_SOCKET_MAX, "%s", conf->server.control);
	return length < CONF_SOCKET_MAX ? 0 : -ENAMETOOLONG;
}

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...)
{
	va_list args;

	fputs("darkroomd ctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	return CTL_REFUSED;
}

/* Joins the words to one line. False: they do not fit, or contain a line break. */
static bool make_line(char *const *words, size_t count, struct text *line)
{
	for (size_t i = 0; i < count; i++) {
		if (strpbrk(words[i], "\r\n"))
			return false;
		text_printf(line, "%s%s", i ? " " : "", words[i]);
	}
	text_puts(line, "\n");
	return !line->overflowed;
}

int ctl_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval wait = { .tv_sec = WAIT_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

const char *ctl_reason(int err)
{
	if (err == ENOENT || err == ECONNREFUSED)
		return "no daemon listens there";
	if (err == EACCES)
		return "only root and the daemon's own user may use it";
	if (err == EPROTO)
		return "the process that listens there is not darkroomd";
	return err == EAGAIN ? "the daemon does not answer" : strerror(err);
}

int ctl_find(const struct conf *conf, char path[CONF_SOCKET_MAX])
{
	if (ctl_path(conf, path))
		return fail("%s...: expected a socket's path of at most 107 bytes; "
		            "server.control can name another",
		            path);
	return *path ? CTL_DONE : fail("server.control is empty: the daemon has no control socket");
}

/* Sends a line and reads the first line of the answer. Returns the exit status that it is, or -1
 * with the reason in errno; EPROTO: the process that listens there is not darkroomd. */
static int ask(int fd, const char *line)
{
	char status[2];
	/* The daemon may answer and close before it has read everything (EPIPE): its answer can
	 * still be read. */
	bool is_sent = send(fd, line, strlen(line), MSG_NOSIGNAL) >= 0 || errno == EPIPE;
	ssize_t n = is_sent ? recv(fd, status, sizeof status, MSG_WAITALL) : -1;

	if (n >= 0 &&
	    (n != sizeof status || status[0] < '0' || status[0] > '2' || status[1] != '\n')) {
		errno = EPROTO;
		n = -1;
	}
	return n < 0 ? -1 : status[0] - '0';
}

/* Prints the rest of the answer as it arrives. is_quiet: only if it reports a failure. is_trace: it
 * must not be empty. Returns the exit status. */
static int print_answer(int fd, const char *path, int status, bool is_quiet, bool is_trace)
{
	FILE *out = status == CTL_DONE ? stdout : stderr;
	char buffer[65536];
	bool is_empty = true;
	ssize_t n;

	for (; (n = recv(fd, buffer, sizeof buffer, 0)) != 0; is_empty = false) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("%s: %s", path, ctl_reason(errno));
		if (is_empty && out == stderr)
			fputs("darkroomd ctl: ", out);
		if (is_quiet && out == stdout && !is_trace)
			continue;
		if (fwrite(buffer, 1, (size_t)n, out) != (size_t)n || fflush(out)) {
			perror("darkroomd ctl: standard output");
			return EXIT_FAILURE;
		}
	}
	return is_empty && is_trace ? fail("%s: the daemon could not start the trace", path)
	                            : status;
}

int ctl_run(const struct conf *conf, char *const *words, size_t count, bool is_quiet)
{
	struct text line = TEXT_LOCAL(CTL_LINE_MAX + 1);
	char path[CONF_SOCKET_MAX];
	bool is_trace = count && strcmp(words[0], "trace") == 0;

	if (!make_line(words, count, &line)) {
		fail("expected a command of less than %d bytes on one line", CTL_LINE_MAX);
		return CTL_USAGE;
	}
	if (is_trace && isatty(STDOUT_FILENO))
		return fail("a trace is binary: expected a file, such as: ctl trace 10 >FILE");
	if (ctl_find(conf, path))
		return CTL_REFUSED;
	int fd = ctl_connect(path), status = fd < 0 ? -1 : ask(fd, line.data);

	status = status < 0 ? fail("%s: %s", path, ctl_reason(errno))
	                    : print_answer(fd, path, status, is_quiet, is_trace);
	if (fd >= 0)
		close(fd);
	return status;
}

int ctl_ask(const struct conf *conf, const char *line, struct text *answer)
{
	char path[CONF_SOCKET_MAX], words[CTL_LINE_MAX], buffer[4096];
	int length = snprintf(words, sizeof words, "%s\n", line);

	if (ctl_path(conf, path) || !*path || length >= (int)sizeof words)
		return -1;
	int fd = ctl_connect(path), status = fd < 0 ? -1 : ask(fd, words);

	for (ssize_t n = 1; status >= 0 && n != 0;) {
		n = recv(fd, buffer, sizeof buffer, 0);
		if (n > 0)
			text_put(answer, buffer, (size_t)n);
		else if (n < 0 && errno != EINTR)
			status = -1;
	}
	if (fd >= 0)
		close(fd);
	return status;
}

/* top_source.c - reads the events of the control socket: ctl.h has the protocol. Main thread. */
#include "top_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"

#define TEXT_MAX ((size_t)4 << 20) /* a document is shorter than 1 MiB */
#define DATA "data: "

void top_source_init(struct top_source *s)
{
	*s = (struct top_source){ .fd = -1 };
}

int top_source_open(struct top_source *s, const char *path, const char *command)
{
	int fd = ctl_connect(path);

	if (fd < 0)
		return -errno;
	if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	top_source_close(s);
	text_init_growable(&s->text, TEXT_MAX);
	s->fd = fd;
	s->is_accepted = false;
	return 0;
}

void top_source_close(struct top_source *s)
{
	if (s->fd < 0)
		return;
	close(s->fd);
	text_fini(&s->text);
	s->fd = -1;
}

/* Notes why the connection ends: one line without control characters. */
static void set_reason(struct top_source *s, const char *reason)
{
	size_t length = strcspn(reason, "\n");

	snprintf(s->reason, sizeof s->reason, "%.*s", (int)length, reason);
	for (char *p = s->reason; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7F)
			*p = '?';
}

/* Receives what is there. Returns false at the end, with the reason set. */
static bool receive(struct top_source *s)
{
	char buffer[16384];

	while (!s->text.overflowed) {
		ssize_t n = recv(s->fd, buffer, sizeof buffer, MSG_DONTWAIT);

		if (n > 0) {
			text_put(&s->text, buffer, (size_t)n);
		} else if (n == 0) {
			set_reason(s, "the daemon has closed the connection");
			return false;
		} else if (errno == EAGAIN) {
			return true;
		} else if (errno != EINTR) {
			set_reason(s, strerror(errno));
			return false;
		}
	}
	set_reason(s, "a document is too long");
	return false;
}

/* Takes the lines that are complete. Returns the number of documents, or -1 with the reason. */
static int take_lines(struct top_source *s, struct top_history *h)
{
	char *at = s->text.data, *end;
	size_t left = s->text.length;
	int documents = 0;

	for (; left && (end = memchr(at, '\n', left));
	     left -= (size_t)(end + 1 - at), at = end + 1) {
		*end = '\0';
		if (!s->is_accepted && strcmp(at, "0") != 0) {
			set_reason(s, left > 2 ? end + 1 : "the daemon has refused");
			return -1;
		}
		s->is_accepted = true;
		if (strncmp(at, DATA, strlen(DATA)) != 0)
			continue;
		at += strlen(DATA);
		left -= strlen(DATA);
		if (!top_document_read(top_history_place(h), at, (size_t)(end - at))) {
			set_reason(s, "the figures are those of another version");
			return -1;
		}
		top_history_add(h);
		documents++;
	}
	if (left && at != s->text.data)
		memmove(s->text.data, at, left);
	s->text.length = left;
	return documents;
}

int top_source_read(struct top_source *s, struct top_history *h)
{
	bool is_open = receive(s);
	int documents = s->text.length ? take_lines(s, h) : 0;

	if (is_open && documents >= 0)
		return documents;
	top_source_close(s);
	return -1;
}

bool top_source_has_answer(struct top_source *s)
{
	if (receive(s))
		return false;
	if (s->text.length > 2)
		set_reason(s, s->text.data + 2);
	top_source_close(s);
	return true;
}

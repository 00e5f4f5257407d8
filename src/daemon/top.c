/*
 * top.c - draws the table of ctl top over the last one, with the escapes of ANSI terminals.
 *
 * The terminal's modes stay as they are, so a signal may end the process at any time. Main thread.
 */
#include "top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "ctl.h"
#include "top_table.h"

#define LINE_MAX_BYTES (1 << 20) /* a document is shorter */
#define TABLE_MAX (64 << 10)
#define DATA "data: "
#define SILENCE_S 3 /* without figures, after which the table has a line about it */
#define ONCE_SILENCE_S 20
#define ONCE_DOCUMENTS 3 /* rates of one second */

struct top {
	char path[CONF_SOCKET_MAX];
	int silence_s;
	FILE *daemon; /* NULL: not connected */
	struct top_history history;
	char line[LINE_MAX_BYTES], table[TABLE_MAX];
};

/* Connects if there is no connection. Returns 0 or -errno. */
static int connect_daemon(struct top *t)
{
	const struct timeval wait = { .tv_sec = t->silence_s };
	int fd = t->daemon ? -1 : ctl_connect(t->path);

	if (t->daemon)
		return 0;
	/* EPIPE: the daemon refuses, and its answer can still be read. */
	if (fd >= 0 && (send(fd, "top\n", 4, MSG_NOSIGNAL) == 4 || errno == EPIPE) &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
	    (t->daemon = fdopen(fd, "r")))
		return 0;
	int err = -errno;

	if (fd >= 0)
		close(fd);
	return err;
}

/* Reads a line without its end. Returns false with the reason in errno; 0: the connection ended. */
static bool read_line(struct top *t)
{
	errno = 0;
	bool is_read = fgets(t->line, sizeof t->line, t->daemon);

	t->line[strcspn(t->line, "\n")] = '\0';
	return is_read;
}

/* Reads until a document has been added. Returns NULL, or why that failed: one line of text. */
static const char *read_document(struct top *t)
{
	while (read_line(t)) {
		if (strncmp(t->line, DATA, strlen(DATA)) == 0) {
			int err = top_history_add(&t->history, t->line + strlen(DATA));

			return err == -EPROTO ? "the figures are those of another version"
			       : err          ? strerror(-err)
			                      : NULL;
		}
		if ((*t->line == '1' || *t->line == '2') && read_line(t)) { /* why it refuses */
			for (char *p = t->line; *p; p++)
				*p = *p >= 0x20 && *p < 0x7F ? *p : '?';
			return t->line;
		}
	}
	return errno == EAGAIN ? "the daemon does not answer"
	       : errno         ? strerror(errno)
	                       : "the daemon has closed the connection";
}

/* Prints the table. live: over the last one, and as much as the terminal has room for. */
static bool print_table(struct top *t, bool is_live, const char *trouble)
{
	struct winsize size = { 0 };
	int rows = 0, columns;
	struct text text;

	text_init(&text, t->table, sizeof t->table);
	if (trouble)
		text_printf(&text, "%s; retrying\n", trouble);
	if (t->history.count)
		top_table(&t->history, &text);
	if (is_live && (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row))
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	columns = is_live ? size.ws_col : (int)text.length;
	fputs(is_live ? "\033[H" : "", stdout);
	for (char *line = t->table, *end; (end = strchr(line, '\n')); line = end + 1)
		if (!is_live || ++rows < size.ws_row) {
			*end = '\0';
			printf("%.*s%s\n", columns, line, is_live ? "\033[K" : "");
		}
	fputs(is_live ? "\033[J" : "", stdout);
	return fflush(stdout) == 0 && !ferror(stdout);
}

static int run(struct top *t, bool is_live)
{
	const char *trouble = NULL;
	int err = connect_daemon(t);

	if (err)
		return ctl_report(t->path, -err);
	for (;;) {
		err = connect_daemon(t);
		trouble = err == -ENOENT || err == -ECONNREFUSED ? "no daemon listens there"
		          : err                                  ? strerror(-err)
		                                                 : read_document(t);
		if (trouble && (!is_live || !t->history.count)) {
			fprintf(stderr, "darkroomd ctl: %s: %s\n", t->path, trouble);
			return CTL_REFUSED;
		}
		if (!is_live && t->history.count < ONCE_DOCUMENTS)
			continue;
		if (!print_table(t, is_live, trouble)) {
			perror("darkroomd ctl: standard output");
			return EXIT_FAILURE;
		}
		if (!is_live)
			return CTL_DONE;
		if (!trouble)
			continue;
		if (t->daemon)
			fclose(t->daemon);
		t->daemon = NULL;
		sleep(1);
	}
}

int top_run(const struct conf *conf, bool is_once)
{
	static struct top t;
	const char *type = getenv("TERM");
	bool is_live = !is_once && isatty(STDOUT_FILENO) && type && strcmp(type, "dumb") != 0;
	int status = ctl_find(conf, t.path);

	t.silence_s = is_live ? SILENCE_S : ONCE_SILENCE_S;
	if (status == CTL_DONE)
		status = run(&t, is_live);
	if (t.daemon)
		fclose(t.daemon);
	top_history_clear(&t.history);
	return status;
}

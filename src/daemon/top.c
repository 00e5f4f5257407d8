/* top.c - waits for keys, figures and signals. Main thread. */
#include "top.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "ctl.h"
#include "policy/policy.h"
#include "top_screen.h"
#include "top_source.h"

#define RETRY_NS NS_PER_S         /* between two attempts to connect */
#define SILENCE_NS (3 * NS_PER_S) /* without figures, after which this is shown */
#define POLL_MS 1000
#define ONCE_DOCUMENTS 3 /* rates of one second */
#define ONCE_WAIT_MS 20000
#define ONCE_COLUMNS 80

struct top {
	char path[CONF_SOCKET_MAX];
	struct top_source figures, change;
	struct top_history history;
	struct top_figures shown;
	struct top_state state;
	uint64_t heard_ns, retry_ns;
	char trouble[TOP_REASON_MAX + CONF_SOCKET_MAX];
};

static volatile sig_atomic_t ending; /* the number of a signal */

static int print_error(const char *path, const char *reason)
{
	fprintf(stderr, "darkroomd ctl: %s: %s\n", path, reason);
	return CTL_REFUSED;
}

/* ---- one table ---- */

static int columns_of_output(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return atoi(columns);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
	                                                                   : ONCE_COLUMNS;
}

/* Prints a line without spaces at its end. */
static void print_line(const char *text)
{
	size_t length = strlen(text);

	while (length && text[length - 1] == ' ')
		length--;
	printf("%.*s\n", (int)length, text);
}

static int print_table(struct top *t)
{
	const struct top_look look = { columns_of_output(), top_screen_is_utf8(), false };
	static struct top_table table;
	static struct top_line title;

	top_figures(&t->history, TOP_BY_PIPELINE, false, &t->shown);
	top_title(&t->shown, look, &title);
	top_table(&t->shown, look, &table);
	print_line(title.text);
	for (unsigned i = 0; i < table.count; i++)
		print_line(table.line[i].text);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CTL_DONE;
	perror("darkroomd ctl: standard output");
	return EXIT_FAILURE;
}

static int run_once(struct top *t)
{
	while (t->history.count < ONCE_DOCUMENTS) {
		struct pollfd fd = { .fd = t->figures.fd, .events = POLLIN };

		if (poll(&fd, 1, ONCE_WAIT_MS) <= 0)
			return print_error(t->path, "the daemon does not answer");
		if (top_source_read(&t->figures, &t->history) < 0)
			return print_error(t->path, t->figures.reason);
	}
	return print_table(t);
}

/* ---- the policy ---- */

static void say(struct top *t, const char *text)
{
	snprintf(t->state.message, sizeof t->state.message, "%s", text);
}

static void start_change(struct top *t)
{
	char command[64];

	t->state.wants_policy = false;
	snprintf(command, sizeof command, "policy %s\n", policy_at(t->state.policy)->name);
	int err = top_source_open(&t->change, t->path, command);

	say(t, err ? strerror(-err) : "switching the policy");
}

/* ---- figures ---- */

static void set_trouble(struct top *t, const char *reason)
{
	snprintf(t->trouble, sizeof t->trouble, "%s; retrying", reason);
	t->retry_ns = clock_ns() + RETRY_NS;
}

static void reconnect(struct top *t)
{
	int err = top_source_open(&t->figures, t->path, "top\n");

	if (err == -ENOENT || err == -ECONNREFUSED)
		set_trouble(t, "no daemon listens there");
	else if (err)
		set_trouble(t, strerror(-err));
}

static void read_figures(struct top *t)
{
	int documents = top_source_read(&t->figures, &t->history);

	if (documents < 0) {
		set_trouble(t, t->figures.reason);
	} else if (documents > 0) {
		t->heard_ns = clock_ns();
		t->trouble[0] = '\0';
	}
}

static void note_silence(struct top *t)
{
	uint64_t silent_ns = clock_ns() - t->heard_ns;

	if (t->figures.fd >= 0 && silent_ns > SILENCE_NS)
		snprintf(t->trouble, sizeof t->trouble, "no figures for %u s; waiting",
		         (unsigned)(silent_ns / NS_PER_S));
}

/* ---- the terminal ---- */

static void on_signal(int number)
{
	ending = number;
}

/* Blocks the signals, which then arrive while the loop waits. */
static void catch_signals(sigset_t *waiting)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		sigaddset(&blocked, ends[i]);
		sigaction(ends[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, waiting);
}

static void end_by_signal(int number, const sigset_t *before)
{
	signal(number, SIG_DFL);
	sigprocmask(SIG_SETMASK, before, NULL);
	raise(number);
}

static void draw(struct top *t)
{
	if (t->history.count)
		top_figures(&t->history, t->state.order, t->state.is_reversed, &t->shown);
	top_screen_draw(&t->state, t->history.count ? &t->shown : NULL,
	                *t->trouble ? t->trouble : NULL);
}

/* Waits for something to happen. Returns false if the terminal has gone. */
static bool wait_and_read(struct top *t, const sigset_t *waiting)
{
	const struct timespec timeout = { .tv_sec = POLL_MS / 1000 };
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
		                { .fd = t->figures.fd, .events = POLLIN },
		                { .fd = t->change.fd, .events = POLLIN } };

	if (ppoll(fds, COUNT_OF(fds), &timeout, waiting) < 0)
		return errno == EINTR;
	if (fds[1].revents)
		read_figures(t);
	if (fds[2].revents && top_source_has_answer(&t->change))
		say(t, t->change.reason);
	if (t->figures.fd < 0 && clock_ns() >= t->retry_ns)
		reconnect(t);
	note_silence(t);
	return !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static int run_live(struct top *t)
{
	sigset_t before;

	catch_signals(&before);
	t->heard_ns = clock_ns();
	do {
		draw(t);
		if (!wait_and_read(t, &before))
			break;
		top_screen_keys(&t->state, t->shown.now ? t->shown.now->policy : "");
		if (t->state.wants_policy)
			start_change(t);
	} while (!t->state.ends && !ending);
	top_screen_close();
	if (ending)
		end_by_signal(ending, &before);
	return CTL_DONE;
}

int top_run(const struct conf *conf, bool is_once)
{
	struct top *t = calloc(1, sizeof *t);
	int err, status;

	if (!t) {
		perror("darkroomd ctl");
		return EXIT_FAILURE;
	}
	setlocale(LC_CTYPE, "");
	top_source_init(&t->figures);
	top_source_init(&t->change);
	if ((status = ctl_find(conf, t->path)) != CTL_DONE)
		goto end;
	if ((err = top_source_open(&t->figures, t->path, "top\n"))) {
		status = ctl_report(t->path, -err);
		goto end;
	}
	bool is_live = !is_once && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

	if (is_live && !top_screen_open()) {
		const char *type = getenv("TERM");

		fprintf(stderr,
		        "darkroomd ctl: cannot use a terminal of the type %s; printing once\n",
		        type ? type : "\"\"");
		is_live = false;
	}
	status = is_live ? run_live(t) : run_once(t);
	top_source_close(&t->figures);
	top_source_close(&t->change);
end:
	free(t);
	return status;
}

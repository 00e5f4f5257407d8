/* command_line.c - the command line. Knows nothing of what the options lead to. */
#include "command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define EXIT_USAGE 2
#define CONNECTIONS_CLOSED 4 /* as in the paper's 4.2.2 */
#define CONNECTIONS_OPEN \
	128 /* a pool, opened as needed: large enough not to queue in front of a healthy server */
#define RATE_MAX 1e7

#ifndef DARKROOM_VERSION
#define DARKROOM_VERSION "unknown"
#endif

const char *const command_line_version = DARKROOM_VERSION;

enum {
	OPTION_SEED = 256,
	OPTION_PER_CONNECTION,
	OPTION_THINK,
	OPTION_RATE,
	OPTION_POISSON,
	OPTION_RAMP,
	OPTION_SPIKE,
	OPTION_FORM,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_VERIFY,
	OPTION_EXPECT,
	OPTION_TIMEOUT,
	OPTION_SERVER_PID
};

static const struct option long_options[] = {
	{ "connections", required_argument, NULL, 'c' },
	{ "threads", required_argument, NULL, 't' },
	{ "requests", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 'd' },
	{ "header", required_argument, NULL, 'H' },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "requests-per-connection", required_argument, NULL, OPTION_PER_CONNECTION },
	{ "think", required_argument, NULL, OPTION_THINK },
	{ "rate", required_argument, NULL, OPTION_RATE },
	{ "poisson", no_argument, NULL, OPTION_POISSON },
	{ "ramp", required_argument, NULL, OPTION_RAMP },
	{ "spike", required_argument, NULL, OPTION_SPIKE },
	{ "form", no_argument, NULL, OPTION_FORM },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "csv", required_argument, NULL, OPTION_CSV },
	{ "verify", no_argument, NULL, OPTION_VERIFY },
	{ "expect", required_argument, NULL, OPTION_EXPECT },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "server-pid", required_argument, NULL, OPTION_SERVER_PID },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: darkroom-load [OPTION]... URL PATH...\n"
	"\n"
	"Uploads JPEG files to an HTTP server and measures how it answers. PATH is a file, or a directory of which\n"
	"everything named .jpg or .jpeg is taken; URL is http://HOST[:PORT][/PATH], where no path means /images.\n"
	"All is read into memory first; the order is shuffled, the same for the same --seed.\n"
	"\n"
	"  -c, --connections N     connections at a time (default: 4; open loop: a pool of up to 128)\n"
	"  -t, --threads N         threads, each with its share of the connections (1)\n"
	"  -n, --requests N        end after N requests (default: every file once)\n"
	"  -d, --duration TIME     take no new request after TIME (30 = 30s, 500ms, 2m); files are used again and again\n"
	"      --form              send multipart/form-data with one file each, not a bare image/jpeg body\n"
	"  -H, --header 'N: V'     add a header field; may be given several times\n"
	"      --seed N            of the order and of Poisson arrivals (1)\n"
	"      --timeout TIME      give up a request after TIME (60s)\n"
	"\n"
	"Closed loop (default): each connection sends its next request when it has its answer.\n"
	"      --requests-per-connection N\n"
	"                          open a new connection after N requests (default: keep it for the whole run)\n"
	"      --think MS          let each connection wait that long after an answer (0)\n"
	"\n"
	"Open loop: requests are due at their times, whether the server keeps up or not; one that finds no free\n"
	"connection waits. Latency counts from when a request was due, so a server that stalls cannot hide it.\n"
	"      --rate R            R requests per second, evenly spaced\n"
	"      --poisson           ... or at random times, R on average\n"
	"      --ramp FROM:TO@TIME the rate goes from FROM to TO within TIME and stays there; without -n and -d the run\n"
	"                          ends with the ramp\n"
	"      --spike FACTOR:MS@START\n"
	"                          FACTOR times the rate for MS milliseconds from START on: 3:1000@20s triples it for\n"
	"                          a second, twenty seconds after the start; may be given several times\n"
	"\n"
	"Reports:\n"
	"      --json              one JSON document on standard output in place of the text\n"
	"      --csv FILE          one row per request, seconds since the start: intended, start, sent, done, bytes,\n"
	"                          status, error, connection, file\n"
	"      --verify            fetch every variant that a 201 announces (after a 202: as soon as it is made), decode\n"
	"                          it and compare its size; costs time, so do not compare the times of such a run\n"
	"      --expect LIST       statuses that are right, like 201 or 2xx,415 (default: 2xx; 4xx for files named\n"
	"                          *.truncated.jpg, *.notjpeg.jpg and *.empty.jpg)\n"
	"      --server-pid PID    the server, to read its CPU time and memory (default: who listens there, if local)\n"
	"  -q, --quiet             no progress and no text\n"
	"  -h, --help              print this\n"
	"  -V, --version           print the version\n"
	"\n"
	"Response time is from the end of sending the request to the end of receiving the response; \"with sending\"\n"
	"begins with the first byte sent. Progress is shown if standard error is a terminal. ^C ends with a report.\n"
	"\n"
	"For example:\n"
	"  darkroom-load http://127.0.0.1:8080/ photos/\n"
	"  darkroom-load --rate 100 --poisson -d 1m --spike 3:1000@20s http://127.0.0.1:8080/images photos/\n"
	"\n"
	"Exit:  0  all answers were as expected     1  some were not, or the run failed or was interrupted\n"
	"       2  wrong usage\n";

static int usage(void)
{
	fputs("Try 'darkroom-load --help'.\n", stderr);
	return EXIT_USAGE;
}

static int wrong(const char *what, const char *value)
{
	fprintf(stderr, "darkroom-load: %s: '%s'\n", what, value);
	return usage();
}

/* What was printed on standard output must have got there. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("darkroom-load: standard output");
	return EXIT_FAILURE;
}

/* A name and a value, without anything that would break the request apart. */
static bool add_header(struct command_line *a, const char *text)
{
	static const char token[] =
		"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t name = strspn(text, token);

	if (name == 0 || text[name] != ':' || strpbrk(text, "\r\n") ||
	    a->header_count == HEADERS_MAX)
		return false;
	a->headers[a->header_count++] = text;
	return true;
}

static bool add_spike(struct command_line *a, const char *text)
{
	struct request_schedule_conf *s = &a->schedule;

	return s->spike_count < RATE_SPIKES_MAX && option_spike(text, &s->spikes[s->spike_count++]);
}

static bool take_rate(struct command_line *a, const char *text)
{
	a->schedule.is_open = true;
	if (!option_double(text, 1e-3, RATE_MAX, &a->schedule.rate_to))
		return false;
	a->schedule.rate_from = a->schedule.rate_to;
	return true;
}

static bool take_small(const char *text, uint64_t max, unsigned *n)
{
	uint64_t value;

	if (!option_uint(text, 1, max, &value))
		return false;
	*n = (unsigned)value;
	return true;
}

/* An option with a value. */
static bool take_value(struct command_line *a, int option, const char *value)
{
	uint64_t n = 0;

	switch (option) {
	case 'c':
		return take_small(value, CONNECTIONS_MAX, &a->connections);
	case 't':
		return take_small(value, THREADS_MAX, &a->threads);
	case 'n':
		return option_uint(value, 1, UINT64_MAX / 2, &a->schedule.requests_max);
	case 'd':
		return option_duration(value, NS_PER_S, &a->schedule.duration_ns) &&
		       a->schedule.duration_ns > 0;
	case 'H':
		return add_header(a, value);
	case OPTION_SEED:
		return option_uint(value, 0, UINT64_MAX, &a->schedule.seed);
	case OPTION_PER_CONNECTION:
		return option_uint(value, 1, UINT64_MAX, &a->requests_per_connection);
	case OPTION_THINK:
		return option_duration(value, NS_PER_MS, &a->think_ns);
	case OPTION_RATE:
		return take_rate(a, value);
	case OPTION_RAMP:
		a->schedule.is_open = true;
		return option_ramp(value, &a->schedule);
	case OPTION_SPIKE:
		return add_spike(a, value);
	case OPTION_CSV:
		a->csv_path = value;
		return *value != '\0';
	case OPTION_EXPECT:
		a->has_expected = true;
		return option_statuses(value, &a->expected);
	case OPTION_TIMEOUT:
		return option_duration(value, NS_PER_S, &a->timeout_ns) && a->timeout_ns > 0;
	default:
		assert(option == OPTION_SERVER_PID);
		if (!option_uint(value, 1, INT32_MAX, &n))
			return false;
		a->server_pid = (pid_t)n;
		return true;
	}
}

/* Handles one option. Returns -1 to go on, else the exit status. */
static int take_option(struct command_line *a, int option, const char *name)
{
	switch (option) {
	case OPTION_POISSON:
		a->schedule.is_poisson = true;
		return -1;
	case OPTION_FORM:
		a->is_form = true;
		return -1;
	case OPTION_JSON:
		a->json = true;
		return -1;
	case OPTION_VERIFY:
		a->verify = true;
		return -1;
	case 'q':
		a->quiet = true;
		return -1;
	case 'h':
		fputs(help_text, stdout);
		return finish_output();
	case 'V':
		printf("darkroom-load %s\n", command_line_version);
		return finish_output();
	case '?':
		return usage(); /* getopt has said what is wrong */
	default:
		if (take_value(a, option, optarg))
			return -1;
		fprintf(stderr, "darkroom-load: %s%s: '%s' is no valid value\n", name ? "--" : "-",
		        name ? name : (char[]){ (char)option, '\0' }, optarg);
		return usage();
	}
}

/* What must hold between options. Returns -1 or the exit status. */
static int check_together(struct command_line *a, bool has_rate)
{
	struct request_schedule_conf *s = &a->schedule;

	if (has_rate && s->ramp_s > 0)
		return wrong("--rate and --ramp exclude each other", "--ramp FROM:TO@TIME");
	if (!s->is_open && (s->is_poisson || s->spike_count > 0))
		return wrong("needs --rate or --ramp", s->is_poisson ? "--poisson" : "--spike");
	if (s->is_open && a->think_ns > 0)
		return wrong("is for the closed loop only", "--think");
	if (s->ramp_s > 0 && s->requests_max == 0 && s->duration_ns == 0)
		s->duration_ns = (uint64_t)(s->ramp_s * 1e9);
	if (a->connections == 0)
		a->connections = s->is_open ? CONNECTIONS_OPEN : CONNECTIONS_CLOSED;
	if (a->threads > a->connections)
		return wrong("more threads than connections", "--threads");
	return -1;
}

int command_line_parse(struct command_line *a, int argc, char **argv)
{
	int option, index = -1, status = -1;
	bool has_rate = false;

	*a = (struct command_line){ .threads = 1, .timeout_ns = 60 * NS_PER_S, .schedule.seed = 1 };
	optind = 0; /* start anew, even after an earlier call */
	while (status < 0 &&
	       (option = getopt_long(argc, argv, "c:t:n:d:H:qhV", long_options, &index)) != -1) {
		status = take_option(a, option, index >= 0 ? long_options[index].name : NULL);
		has_rate |= option == OPTION_RATE;
		index = -1;
	}
	if (status >= 0)
		return status;
	if (optind == argc)
		return wrong("what is missing", "URL PATH...");
	if (!url_parse(&a->url, argv[optind]))
		return wrong("not a URL like http://127.0.0.1:8080/images", argv[optind]);
	if (++optind == argc)
		return wrong("what is missing", "PATH...");
	a->paths = argv + optind;
	a->path_count = (size_t)(argc - optind);
	return check_together(a, has_rate);
}

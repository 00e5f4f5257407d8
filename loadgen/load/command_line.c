/* command_line.c - parses the command line. Knows no meaning of the options. */
#include "command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define EXIT_USAGE 2
#define CONNECTIONS_CLOSED 4 /* as in the paper's 4.2.2 */
#define CONNECTIONS_OPEN 128 /* enough that requests do not wait for a healthy server */
#define RATE_MAX 1e7

#ifndef DARKROOM_VERSION
#define DARKROOM_VERSION "unknown"
#endif

const char *const command_line_version = DARKROOM_VERSION;

enum {
	OPTION_SEED = 256,
	OPTION_PER_CONNECTION,
	OPTION_THINK,
	OPTION_HEED,
	OPTION_CLIENTS,
	OPTION_RATE,
	OPTION_POISSON,
	OPTION_RAMP,
	OPTION_SPIKE,
	OPTION_FORM,
	OPTION_GET,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_VERIFY,
	OPTION_EXPECT,
	OPTION_TIMEOUT,
	OPTION_RETRY,
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
	{ "heed-retry-after", no_argument, NULL, OPTION_HEED },
	{ "clients", required_argument, NULL, OPTION_CLIENTS },
	{ "rate", required_argument, NULL, OPTION_RATE },
	{ "poisson", no_argument, NULL, OPTION_POISSON },
	{ "ramp", required_argument, NULL, OPTION_RAMP },
	{ "spike", required_argument, NULL, OPTION_SPIKE },
	{ "form", no_argument, NULL, OPTION_FORM },
	{ "get", no_argument, NULL, OPTION_GET },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "csv", required_argument, NULL, OPTION_CSV },
	{ "verify", no_argument, NULL, OPTION_VERIFY },
	{ "expect", required_argument, NULL, OPTION_EXPECT },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "retry", required_argument, NULL, OPTION_RETRY },
	{ "server-pid", required_argument, NULL, OPTION_SERVER_PID },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: darkroom-load [OPTION]... URL PATH...\n"
	"\n"
	"Uploads JPEG files to an HTTP server and measures its answers. PATH is a file,\n"
	"or a directory whose .jpg and .jpeg files are used. URL is\n"
	"http://HOST[:PORT][/PATH]; the default path is /images. All files are read into\n"
	"memory first. Their order is shuffled; the same --seed gives the same order.\n"
	"\n"
	"  -c, --connections N   connections at a time (default: 4; open loop: a pool of\n"
	"                        up to 128)\n"
	"  -t, --threads N       threads; the connections are divided among them (1)\n"
	"  -n, --requests N      end after N requests (default: every file once)\n"
	"  -d, --duration TIME   start no request after TIME (30 = 30s, 500ms, 2m); files\n"
	"                        are used repeatedly\n"
	"      --form            send multipart/form-data with one file each, not a bare\n"
	"                        image/jpeg body\n"
	"      --get             get URL again and again, and upload nothing: no PATH\n"
	"  -H, --header 'N: V'   add a header field; may be given several times\n"
	"      --clients N       name one of N clients in X-Forwarded-For of a request\n"
	"      --seed N          seed of the order and of Poisson arrivals (1)\n"
	"      --timeout TIME    abandon a request after TIME (60s)\n"
	"      --retry TIME      give each upload an Idempotency-Key, and repeat one that has\n"
	"                        failed for up to TIME\n"
	"\n"
	"Closed loop (default): each connection sends its next request when it has its\n"
	"answer.\n"
	"      --requests-per-connection N\n"
	"                        open a new connection after N requests (default: keep it\n"
	"                        for the whole run)\n"
	"      --think MS        let each connection wait MS milliseconds after an answer\n"
	"                        (0)\n"
	"      --heed-retry-after\n"
	"                        let a connection wait as Retry-After says\n"
	"\n"
	"Open loop: requests are due at their times, whether the server keeps up or not.\n"
	"A request that finds no free connection waits. Latency counts from when a\n"
	"request was due, so a server that stalls cannot hide it.\n"
	"      --rate R          R requests per second, evenly spaced\n"
	"      --poisson         send them at random times, R per second on average\n"
	"      --ramp FROM:TO@TIME\n"
	"                        change the rate from FROM to TO within TIME, then keep\n"
	"                        it; without -n and -d the run ends with the ramp\n"
	"      --spike FACTOR:MS@START\n"
	"                        multiply the rate by FACTOR for MS milliseconds from\n"
	"                        START on; 3:1000@20s triples it for a second, twenty\n"
	"                        seconds after the start; may be given several times\n"
	"\n"
	"Reports:\n"
	"      --json            write one JSON document to standard output instead of\n"
	"                        the text\n"
	"      --csv FILE        write one row per request, in seconds since the start:\n"
	"                        intended, start, sent, done, bytes, status, error,\n"
	"                        connection, file, id\n"
	"      --verify          fetch every announced variant, decode it and compare its\n"
	"                        size; after a 202 as soon as it is ready; this costs\n"
	"                        time, so do not compare the times of such a run\n"
	"      --expect LIST     statuses that are right, such as 201 or 2xx,415\n"
	"                        (default: 2xx; 4xx for files named *.truncated.jpg,\n"
	"                        *.notjpeg.jpg and *.empty.jpg)\n"
	"      --server-pid PID  read CPU time and memory of this process (default: the\n"
	"                        local process that listens)\n"
	"  -q, --quiet           show nothing but a failure\n"
	"  -h, --help            print this help\n"
	"  -V, --version         print the version\n"
	"\n"
	"Response time is from the end of sending the request to the end of receiving the\n"
	"response; \"with sending\" starts with the first byte sent. Progress is shown if\n"
	"standard error is a terminal. ^C ends the run with a report.\n"
	"\n"
	"Examples:\n"
	"  darkroom-load http://127.0.0.1:8080/ photos/\n"
	"  darkroom-load --rate 100 --poisson -d 1m --spike 3:1000@20s \\\n"
	"      http://127.0.0.1:8080/images photos/\n"
	"\n"
	"Exit:  0  all answers were as expected\n"
	"       1  some were not, or the run failed or was interrupted\n"
	"       2  wrong usage\n";

/* What an option's value must be, for the message about one that is not. */
static const struct {
	int option;
	const char *expected;
} expectations[] = {
	{ 'c', "a number from 1 to 100000" },
	{ 't', "a number from 1 to 64" },
	{ 'n', "a number from 1" },
	{ 'd', "a time such as 30s, 500ms or 2m" },
	{ 'H', "a header field such as 'Name: value'; at most 32 of them" },
	{ OPTION_SEED, "a number" },
	{ OPTION_PER_CONNECTION, "a number from 1" },
	{ OPTION_THINK, "milliseconds" },
	{ OPTION_CLIENTS, "a number from 1 to 65536" },
	{ OPTION_RATE, "requests per second, from 0.001 to 10000000" },
	{ OPTION_RAMP, "FROM:TO@TIME, such as 10:200@1m" },
	{ OPTION_SPIKE, "FACTOR:MS@START, such as 3:1000@20s; at most 16 of them" },
	{ OPTION_CSV, "a file" },
	{ OPTION_EXPECT, "a list of statuses such as 201 or 2xx,415" },
	{ OPTION_TIMEOUT, "a time such as 60s" },
	{ OPTION_RETRY, "a time such as 30s" },
	{ OPTION_SERVER_PID, "a process ID" },
};

static int usage(void)
{
	fputs("Try 'darkroom-load --help'.\n", stderr);
	return EXIT_USAGE;
}

static int wrong(const char *what, const char *value)
{
	fprintf(stderr, "darkroom-load: %s: %s\n", value, what);
	return usage();
}

static int wrong_value(int option, const char *name, const char *value)
{
	const char *expected = "";

	for (size_t i = 0; i < COUNT_OF(expectations); i++)
		if (expectations[i].option == option)
			expected = expectations[i].expected;
	fprintf(stderr, "darkroom-load: %s%s: expected %s, found '%s'\n", name ? "--" : "-",
	        name ? name : (char[]){ (char)option, '\0' }, expected, value);
	return usage();
}

/* Returns the exit status: failure if standard output could not be written. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("darkroom-load: standard output");
	return EXIT_FAILURE;
}

/* Adds a header field, unless it could break the request apart. */
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

/* Parses the value of an option. Returns false if it is malformed. */
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
	case OPTION_CLIENTS:
		return take_small(value, CLIENTS_MAX, &a->clients);
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
	case OPTION_RETRY:
		return option_duration(value, NS_PER_S, &a->retry_ns) && a->retry_ns > 0;
	default:
		assert(option == OPTION_SERVER_PID);
		if (!option_uint(value, 1, INT32_MAX, &n))
			return false;
		a->server_pid = (pid_t)n;
		return true;
	}
}

/* Handles one option. Returns -1 to go on, otherwise the exit status. */
static int take_option(struct command_line *a, int option, const char *name)
{
	switch (option) {
	case OPTION_POISSON:
		a->schedule.is_poisson = true;
		return -1;
	case OPTION_FORM:
		a->is_form = true;
		return -1;
	case OPTION_GET:
		a->is_get = true;
		return -1;
	case OPTION_HEED:
		a->heeds_retry_after = true;
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
		return usage(); /* getopt has reported the error */
	default:
		if (take_value(a, option, optarg))
			return -1;
		return wrong_value(option, name, optarg);
	}
}

/* Checks what must hold between options. Returns -1 to go on, otherwise the exit status. */
static int check_together(struct command_line *a, bool has_rate)
{
	struct request_schedule_conf *s = &a->schedule;

	if (has_rate && s->ramp_s > 0)
		return wrong("excludes --rate", "--ramp");
	if (!s->is_open && (s->is_poisson || s->spike_count > 0))
		return wrong("needs --rate or --ramp", s->is_poisson ? "--poisson" : "--spike");
	if (s->is_open && (a->think_ns > 0 || a->heeds_retry_after))
		return wrong("is for the closed loop only",
		             a->think_ns > 0 ? "--think" : "--heed-retry-after");
	if (a->clients > 0 && a->retry_ns > 0)
		return wrong("excludes --clients", "--retry");
	if (a->retry_ns > 0 && a->verify)
		return wrong("excludes --verify", "--retry");
	if (a->is_get && (a->is_form || a->verify || a->retry_ns > 0))
		return wrong("excludes --form, --verify and --retry", "--get");
	if (s->ramp_s > 0 && s->requests_max == 0 && s->duration_ns == 0)
		s->duration_ns = (uint64_t)(s->ramp_s * 1e9);
	if (a->connections == 0)
		a->connections = s->is_open ? CONNECTIONS_OPEN : CONNECTIONS_CLOSED;
	if (a->threads > a->connections)
		return wrong("expected at most as many threads as connections", "--threads");
	return -1;
}

int command_line_parse(struct command_line *a, int argc, char **argv)
{
	int option, index = -1, status = -1;
	bool has_rate = false;

	*a = (struct command_line){ .threads = 1, .timeout_ns = 60 * NS_PER_S, .schedule.seed = 1 };
	optind = 0; /* resets getopt after an earlier call */
	while (status < 0 &&
	       (option = getopt_long(argc, argv, "c:t:n:d:H:qhV", long_options, &index)) != -1) {
		status = take_option(a, option, index >= 0 ? long_options[index].name : NULL);
		has_rate |= option == OPTION_RATE;
		index = -1;
	}
	if (status >= 0)
		return status;
	if (optind == argc)
		return wrong("missing argument", "URL PATH...");
	if (!url_parse(&a->url, argv[optind]))
		return wrong("expected a URL such as http://127.0.0.1:8080/images", argv[optind]);
	if (++optind == argc && !a->is_get)
		return wrong("missing argument", "PATH...");
	if (a->is_get && optind < argc)
		return wrong("expected no PATH with --get", argv[optind]);
	a->paths = argv + optind;
	a->path_count = (size_t)(argc - optind);
	return check_together(a, has_rate);
}

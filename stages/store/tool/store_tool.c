/*
 * store_tool.c - finds and runs the command: parses options, walks over the selected images, and
 * shows how far. Main thread.
 */
#include "store_tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "conf/conf_number.h"
#include "store/directory.h"
#include "store_query.h"

#define PAGE_MAX (1u << 18) /* ids in memory, of 27 bytes */
#define MS_PER_S 1000
#define LINE_MAX_BYTES 1024
#define SHOW_NS NS_PER_S

void store_query_print(FILE *to, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p >= ' ' && *p <= '~')
			fputc(*p, to);
		else
			fprintf(to, "\\x%02x", *p);
}

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];

	vsnprintf(line, sizeof line, format, args);
	fputs("darkroomd store: ", stderr);
	store_query_print(stderr, line);
	fputc('\n', stderr);
}

void store_query_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int store_query_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	fputs("See darkroom-store(7).\n", stderr);
	return QUERY_EXIT_USAGE;
}

int store_query_fail(const char *what, int err)
{
	store_query_say("%s: %s", what, strerror(-err));
	return EXIT_FAILURE;
}

/* ---- values ---- */

/* Reads a time: 2026-11-22, 2026-11-22T11:40:00Z, or an age like 30d, 12h, 5m. *ms: since 1970. */
static bool read_time(const char *text, uint64_t now_ms, uint64_t *ms)
{
	static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ" };
	uint64_t age_ms;

	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		struct tm tm = { .tm_mday = 1 };
		const char *end = strptime(text, formats[i], &tm);

		if (!end || *end)
			continue;
		time_t seconds = timegm(&tm);

		*ms = (uint64_t)(seconds > 0 ? seconds : 0) * MS_PER_S;
		return seconds >= 0;
	}
	if (!conf_units_parse_duration(text, 1000, &age_ms))
		return false;
	*ms = age_ms < now_ms ? now_ms - age_ms : 0;
	return true;
}

/* Sets a bound to the time: with is_lower the images of that millisecond are within it, otherwise
 * they are not. */
static int take_time(const char *text, bool is_lower, char bound[ULID_LENGTH + 1])
{
	struct timespec now;
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!read_time(text, (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / 1000000,
	               &ms))
		return store_query_usage("%s: expected a time: 2026-11-22, 2026-11-22T11:40:00Z, "
		                         "or an age like 30d, 12h, 5m",
		                         text);
	if (!is_lower)
		ulid_bound(ms, '0', bound);
	else if (ms > 0)
		ulid_bound(ms - 1, 'Z', bound);
	return 0;
}

/* Takes the number of an option, which is at least 1. */
static int take_number(const char *option, uint64_t *number)
{
	return conf_units_parse(optarg, conf_units_bytes, number) && *number > 0
	               ? 0
	               : store_query_usage("%s %s: expected a number, with K, M or G", option,
	                                   optarg);
}

/* Takes an option with a value. */
static int take_option(struct store_query *q, int option)
{
	switch (option) {
	case 0:
		return 0; /* a flag, which is set */
	case 's':
		return take_time(optarg, true, q->after);
	case 'b':
		return take_time(optarg, false, q->before);
	case 'a':
		q->follows = optarg;
		return ulid_is_valid(optarg, strlen(optarg))
		               ? 0
		               : store_query_usage("--after %s: expected an id", optarg);
	case 'l':
		return take_number("--limit", &q->limit);
	case 'B':
		return take_number("--rate", &q->rate);
	case 't':
		q->token = optarg;
		return 0;
	case 'i':
		q->ids_path = optarg;
		return 0;
	default:
		return store_query_usage("wrong option");
	}
}

static int take_options(struct store_query *q, const char *help, size_t count)
{
	const struct option options[] = {
		{ "json", no_argument, &q->is_json, 1 },
		{ "newest", no_argument, &q->is_newest_first, 1 },
		{ "dry-run", no_argument, &q->is_dry, 1 },
		{ "repair", no_argument, &q->repairs, 1 },
		{ "restart", no_argument, &q->restarts, 1 },
		{ "missing", no_argument, &q->only_missing, 1 },
		{ "since", required_argument, NULL, 's' },
		{ "before", required_argument, NULL, 'b' },
		{ "after", required_argument, NULL, 'a' },
		{ "limit", required_argument, NULL, 'l' },
		{ "rate", required_argument, NULL, 'B' },
		{ "token", required_argument, NULL, 't' },
		{ "ids", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	int option, at = 0, status = 0;
	char word[32];

	optind = 0;
	while (!status && (option = getopt_long((int)count, q->argument, "", options, &at)) != -1) {
		snprintf(word, sizeof word, "--%s", options[at].name);
		/* An option without effect would mislead, such as --dry-run. */
		status = option == '?' || !help || strstr(help, word)
		                 ? take_option(q, option)
		                 : store_query_usage("%s does not have %s", q->argument[0], word);
	}
	return status;
}

/* The daemon's socket in its root. The owner may be unable to reach that by its path, as with
 * DynamicUser=, and a link might lead to another's socket. */
static void find_socket(struct store_query *q)
{
	char *path = q->conf.server.control;
	struct stat st;

	if (strcmp(path, "auto") != 0)
		return;
	path[0] = '\0'; /* none */
	if (directory_stat(q->store.root_fd, "control.sock", &st) == 0 && S_ISSOCK(st.st_mode))
		snprintf(path, sizeof q->conf.server.control, "/proc/self/fd/%d/control.sock",
		         q->store.root_fd);
}

int store_query_open(struct store_query *q, const struct conf *conf, store_ask *ask,
                     const char *help, char *const *words, size_t count)
{
	const char *root = conf->server.root;

	*q = (struct store_query){
		.conf = *conf, .ask = ask, .limit = UINT64_MAX, .store = { .root_fd = -1 }
	};
	if (count >= QUERY_WORDS_MAX || count == 0)
		return store_query_usage("expected a command and at most %d words: --ids FILE "
		                         "reads more",
		                         QUERY_WORDS_MAX - 2);
	memcpy(q->argument, words, count * sizeof *words); /* NULL follows */
	int status = take_options(q, help, count);

	if (status)
		return status;
	q->words = q->argument + optind;
	q->word_count = count - (size_t)optind;
	if (q->is_newest_first && q->follows) /* "after" is in the order of the list */
		memcpy(q->before, q->follows, sizeof q->before);
	else if (q->follows)
		memcpy(q->after, q->follows, sizeof q->after);
	if (q->ids_path) /* while this is still the user that names it */
		q->ids = strcmp(q->ids_path, "-") == 0 ? stdin : fopen(q->ids_path, "re");
	if (q->ids_path && !q->ids)
		return store_query_fail(q->ids_path, -errno);
	int err = store_attach(&q->store, root);

	if (err == -ENOENT || err == -ENOTDIR) {
		store_query_say("server.root = %s is not a store: %s", root, strerror(-err));
		return EXIT_FAILURE;
	}
	if (!err)
		find_socket(q);
	return err ? store_query_fail(root, err) : 0;
}

/* ---- walking ---- */

typedef int each_id(struct store_query *q, const char *id, void *arg);

/* Calls `each` with an id that is named, if that is within the bounds and *left allows it. */
static int each_named(struct store_query *q, const char *id, uint64_t *left, each_id *each,
                      void *arg)
{
	bool is_within = (!q->after[0] || strcmp(id, q->after) > 0) &&
	                 (!q->before[0] || strcmp(id, q->before) < 0);

	if (!is_within || *left == 0)
		return 0;
	--*left;
	return each(q, id, arg);
}

static int each_word(struct store_query *q, uint64_t *left, each_id *each, void *arg)
{
	int status = 0;

	for (size_t i = 0; i < q->word_count && !status; i++) {
		if (!ulid_is_valid(q->words[i], strlen(q->words[i])))
			return store_query_usage("%s: expected an id", q->words[i]);
		status = each_named(q, q->words[i], left, each, arg);
	}
	return status;
}

static int each_line(struct store_query *q, uint64_t *left, each_id *each, void *arg)
{
	FILE *f = q->ids;
	char *line = NULL;
	size_t size = 0;
	int status = 0;

	if (f != stdin)
		rewind(f);
	while (!status && getline(&line, &size, f) >= 0) {
		line[strcspn(line, " \t\r\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (ulid_is_valid(line, strlen(line)))
			status = each_named(q, line, left, each, arg);
		else
			status = store_query_usage("%s: %s: expected an id on each line",
			                           q->ids_path, line);
	}
	if (!status && ferror(f))
		status = store_query_fail(q->ids_path, -errno);
	free(line);
	return status;
}

static int each_stored(struct store_query *q, each_id *each, void *arg)
{
	struct store_page page = { .is_newest_first = q->is_newest_first };
	uint64_t left = q->limit;
	int err = 0, status = 0;

	page.max = left < PAGE_MAX ? (unsigned)left : PAGE_MAX;
	page.id = malloc((size_t)page.max * sizeof *page.id);
	if (!page.id)
		return store_query_fail("list", -ENOMEM);
	memcpy(page.after, q->after, sizeof page.after);
	memcpy(page.before, q->before, sizeof page.before);
	do {
		err = store_page_read(q->store.root_fd, &page);
		for (unsigned i = 0; i < page.count && left > 0 && !err && !status; i++, left--)
			status = each(q, page.id[i], arg);
		store_page_advance(&page);
	} while (!err && !status && page.count == page.max && left > 0);
	free(page.id);
	return err ? store_query_fail(q->store.root, err) : status;
}

int store_query_each(struct store_query *q, each_id *each, void *arg)
{
	uint64_t left = q->limit;

	if (!q->ids_path && !q->word_count)
		return each_stored(q, each, arg);
	int status = q->ids_path ? each_line(q, &left, each, arg) : 0;

	return status ? status : each_word(q, &left, each, arg);
}

/* ---- pace and progress ---- */

void store_query_pace(uint64_t start_ns, uint64_t done, uint64_t rate)
{
	uint64_t due = start_ns + (uint64_t)((double)done / (double)rate * NS_PER_S);
	uint64_t now = clock_ns(), left = now < due ? due - now : 0;
	const struct timespec wait = { .tv_sec = (time_t)(left / NS_PER_S),
		                       .tv_nsec = (long)(left % NS_PER_S) };

	if (left)
		nanosleep(&wait, NULL);
}

void store_progress_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all, .start_ns = clock_ns() };
}

void store_progress_show(struct store_progress *p, bool is_last)
{
	uint64_t now = clock_ns();

	if ((!is_last && now - p->shown_ns < SHOW_NS) || !isatty(STDERR_FILENO))
		return;
	p->shown_ns = now;
	double seconds = (double)(now - p->start_ns) / NS_PER_S;
	double rate = seconds > 0 ? (double)p->ended / seconds : 0;
	double left = rate > 0 && p->all > p->ended ? (double)(p->all - p->ended) / rate : 0;

	fprintf(stderr, "\r%" PRIu64, p->ended);
	if (p->all)
		fprintf(stderr, " of %" PRIu64, p->all);
	fprintf(stderr, " images, %.0f in a second", rate);
	if (p->all)
		fprintf(stderr, ", %.0f min %02.0f s left",
		        (left - (double)((uint64_t)left % 60)) / 60, (double)((uint64_t)left % 60));
	fputs(is_last ? "  \n" : "  ", stderr);
}

/* ---- the commands ---- */

#define SELECTION                                                                        \
	"  --since, --before TIME   2026-11-22, 2026-11-22T11:40:00Z, or an age: 30d\n"  \
	"  --after ID, --limit N    the part of the list behind an id, and its length\n" \
	"  --newest                 newest first\n"
#define IDS "  --ids FILE               ids of a file, one on each line; -: standard input\n"
#define BY_NAME IDS "  --token NAME             uploaded with this token\n"
#define JSON "  --json                   JSON, one object on each line\n"
#define MISSING "  --missing                only variants that an image does not have\n"
#define DRY "  --dry-run                print the ids, and do nothing\n"

static const struct {
	const char *name;
	int (*run)(struct store_query *q);
	const char *help;
} commands[] = {
	{ "list", store_list,
	  "list [OPTION...]\n\nPrints a line for each image.\n\n" SELECTION BY_NAME JSON },
	{ "find", store_find_images,
	  "find [OPTION...] [ID...]\n\nPrints a line for each image that is named.\n\n" BY_NAME
	  "  --since, --before, --after, --limit, --newest: as for list\n" JSON },
	{ "count", store_count,
	  "count [OPTION...]\n\nPrints images and bytes by day, and bytes by variant.\n\n" SELECTION
	          BY_NAME JSON },
	{ "remove", store_delete,
	  "remove [OPTION...] [ID...]\n\nRemoves images, and prints their ids.\n\n" SELECTION
	          BY_NAME DRY
	  "  --rate N                 images in a second; 500 if it is not given\n" },
	{ "check", store_audit,
	  "check [OPTION...] [ID...]\n\nCompares all files with their checksums.\n\n"
	  "  --repair                 move damaged files to .quarantine\n"
	  "  --rate BYTES             bytes in a second, with K, M or G; 32M if it is not given\n"
	  "  --restart                begin with the first image again\n"
	  "  --ids FILE, --since, --before, --after, --limit: as for list\n" JSON },
	{ "plan", store_plan,
	  "plan [OPTION...] [VARIANT[.FORMAT]...]\n\nPrints what remake would do.\n\n" MISSING IDS
	          SELECTION JSON },
	{ "remake", store_remake,
	  "remake [OPTION...] [VARIANT[.FORMAT]...]\n\nHas the daemon make variants that images lack.\n\n" MISSING
	  "  --ids FILE               ids of a file, one on each line\n" SELECTION DRY },
	{ "export", store_export,
	  "export [OPTION...] [ID...]\n\nWrites images to standard output, as an archive of "
	  "tar.\n\n" SELECTION BY_NAME },
	{ "import", store_import,
	  "import [OPTION...]\n\nStores the images of such an archive, from standard input.\n\n"
	  "  --dry-run                compare them with those that are stored, and store none\n" },
	{ "migrate", store_migrate,
	  "migrate [OPTION...]\n\nCopies the images of an S3 store that have several objects to one "
	  "object each.\n\n" DRY },
};

static size_t find_command(const char *name)
{
	size_t i = 0;

	while (i < COUNT_OF(commands) && strcmp(name, commands[i].name) != 0)
		i++;
	return i;
}

bool store_tool_help(char *const *words, size_t count)
{
	bool is_asked = false;

	for (size_t i = 0; i < count; i++)
		is_asked |= strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0;
	if (!is_asked)
		return false;
	size_t command = find_command(words[0]);

	if (command < COUNT_OF(commands)) {
		printf("usage: darkroomd [-c FILE] store %s", commands[command].help);
	} else {
		printf("usage: darkroomd [-c FILE] store COMMAND [OPTION...]\n\nCommands:");
		for (size_t i = 0; i < COUNT_OF(commands); i++)
			printf(" %s", commands[i].name);
		printf("\n'store COMMAND --help' has the options of one.\n");
	}
	printf("See darkroom-store(7).\n");
	return true;
}

int store_tool(const struct conf *conf, store_ask *ask, char *const *words, size_t count)
{
	static struct store_query q;
	size_t i = find_command(words[0]);

	struct suggest suggest = { .wanted = words[0] };

	for (size_t k = 0; k < COUNT_OF(commands); k++)
		suggest_offer(&suggest, commands[k].name);
	if (i == COUNT_OF(commands))
		return store_query_usage("%s: unknown command%s 'darkroomd store --help' has all",
		                         words[0], suggest.best ? suggest_phrase(&suggest) : ";");
	bool is_s3 = conf->store.kind == CONF_STORE_S3;

	if (is_s3 != (commands[i].run == store_migrate))
		return store_query_usage("store.kind = %s does not provide it",
		                         is_s3 ? "s3" : "file");
	int status = store_query_open(&q, conf, ask, commands[i].help, words, count);

	if (!status)
		status = commands[i].run(&q);
	if (q.store.root_fd >= 0)
		store_close(&q.store);
	if (q.ids && q.ids != stdin)
		fclose(q.ids);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("darkroomd store: standard output");
	return EXIT_FAILURE;
}

/* store_query.c - parses options, and walks over the selected images. Main thread. */
#include "store_query.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "conf/conf_units.h"

#define PAGE_MAX (1u << 20) /* ids in memory, of 27 bytes */
#define MS_PER_S 1000

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "newest", no_argument, NULL, 'n' },
	{ "dry-run", no_argument, NULL, 'd' },
	{ "repair", no_argument, NULL, 'r' },
	{ "restart", no_argument, NULL, 'R' },
	{ "missing", no_argument, NULL, 'm' },
	{ "since", required_argument, NULL, 's' },
	{ "before", required_argument, NULL, 'b' },
	{ "after", required_argument, NULL, 'a' },
	{ "limit", required_argument, NULL, 'l' },
	{ "rate", required_argument, NULL, 'B' },
	{ "token", required_argument, NULL, 't' },
	{ "ids", required_argument, NULL, 'i' },
	{ "map", required_argument, NULL, 'M' },
	{ NULL, 0, NULL, 0 },
};

int store_query_usage(const char *format, ...)
{
	va_list args;

	fputs("darkroomd store: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nSee darkroom-store(7).\n", stderr);
	return QUERY_EXIT_USAGE;
}

int store_query_fail(const char *what, int err)
{
	fprintf(stderr, "darkroomd store: %s: %s\n", what, strerror(-err));
	return EXIT_FAILURE;
}

/* ---- values ---- */

/* A duration before now. */
static bool read_age(const char *text, uint64_t now_ms, uint64_t *ms)
{
	uint64_t age;

	if (!conf_units_parse_duration(text, 1000, &age))
		return false;
	*ms = age < now_ms ? now_ms - age : 0;
	return true;
}

bool store_query_time(const char *text, uint64_t now_ms, uint64_t *ms)
{
	static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ" };

	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		struct tm tm = { .tm_mday = 1 };
		const char *end = strptime(text, formats[i], &tm);

		if (!end || *end)
			continue;
		time_t seconds = timegm(&tm);

		*ms = (uint64_t)(seconds > 0 ? seconds : 0) * MS_PER_S;
		return seconds >= 0;
	}
	return read_age(text, now_ms, ms);
}

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

	*number = n << shift;
	return text[0] >= '1' && text[0] <= '9' && !errno && !end[shift > 0] &&
	       *number >> shift == n;
}

/* Sets a bound to the time: with is_lower the images of that millisecond are within it, otherwise
 * they are not. */
static int take_time(const char *text, bool is_lower, char bound[ULID_LENGTH + 1])
{
	struct timespec now;
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!store_query_time(
		    text, (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / 1000000, &ms))
		return store_query_usage("%s: expected a time: 2026-11-22, 2026-11-22T11:40:00Z, "
		                         "or an age like 30d, 12h, 5m",
		                         text);
	if (!is_lower)
		ulid_bound(ms, '0', bound);
	else if (ms > 0)
		ulid_bound(ms - 1, 'Z', bound);
	return 0;
}

static int take_text(const char **text)
{
	*text = optarg;
	return 0;
}

static int take_option(struct store_query *q, int option)
{
	switch (option) {
	case 'j':
		q->is_json = true;
		return 0;
	case 'n':
		q->is_newest_first = true;
		return 0;
	case 'd':
		q->is_dry = true;
		return 0;
	case 'r':
		q->repairs = true;
		return 0;
	case 'R':
		q->restarts = true;
		return 0;
	case 'm':
		q->only_missing = true;
		return 0;
	case 's':
		return take_time(optarg, true, q->after);
	case 'b':
		return take_time(optarg, false, q->before);
	case 'a':
		if (!ulid_is_valid(optarg, strlen(optarg)))
			return store_query_usage("--after %s: expected an id", optarg);
		q->follows = optarg;
		return 0;
	case 'l':
		return read_number(optarg, &q->limit)
		               ? 0
		               : store_query_usage("--limit %s: expected a number", optarg);
	case 'B':
		return read_number(optarg, &q->rate)
		               ? 0
		               : store_query_usage("--rate %s: expected a number, with K, M or G",
		                                   optarg);
	case 't':
		return take_text(&q->token);
	case 'i':
		return take_text(&q->ids_path);
	case 'M':
		return take_text(&q->map_path);
	default:
		return store_query_usage("wrong option");
	}
}

int store_query_open(struct store_query *q, const struct conf *conf, store_ask *ask,
                     char *const *words, size_t count)
{
	const char *root = conf->server.root;
	char **arguments = q->argument;
	int option, status = 0;

	*q = (struct store_query){
		.conf = conf, .ask = ask, .limit = UINT64_MAX, .store = { .root_fd = -1 }
	};
	if (count >= QUERY_WORDS_MAX || count == 0)
		return store_query_usage("expected a command and at most %d words: --ids FILE "
		                         "reads more",
		                         QUERY_WORDS_MAX - 2);
	memcpy(arguments, words, count * sizeof *arguments); /* NULL follows */
	optind = 0;
	while (!status &&
	       (option = getopt_long((int)count, arguments, "", long_options, NULL)) != -1)
		status = take_option(q, option);
	if (status)
		return status;
	q->words = q->argument + optind;
	q->word_count = count - (size_t)optind;
	if (q->is_newest_first && q->follows) /* "after" is in the order of the list */
		memcpy(q->before, q->follows, sizeof q->before);
	else if (q->follows)
		memcpy(q->after, q->follows, sizeof q->after);
	int err = store_attach(&q->store, root);

	if (err == -ENOENT || err == -ENOTDIR) {
		fprintf(stderr, "darkroomd store: server.root = %s is not a store: %s\n", root,
		        strerror(-err));
		return EXIT_FAILURE;
	}
	return err ? store_query_fail(root, err) : 0;
}

void store_query_close(struct store_query *q)
{
	if (q->store.root_fd >= 0)
		store_close(&q->store);
}

/* ---- walking ---- */

typedef int each_id(struct store_query *q, const char *id, void *arg);

static int each_word(struct store_query *q, each_id *each, void *arg)
{
	int status = 0;

	for (size_t i = 0; i < q->word_count && !status; i++) {
		if (!ulid_is_valid(q->words[i], strlen(q->words[i])))
			return store_query_usage("%s: expected an id", q->words[i]);
		status = each(q, q->words[i], arg);
	}
	return status;
}

static int each_line(struct store_query *q, each_id *each, void *arg)
{
	FILE *f = strcmp(q->ids_path, "-") == 0 ? stdin : fopen(q->ids_path, "re");
	char *line = NULL;
	size_t size = 0;
	int status = 0;

	if (!f)
		return store_query_fail(q->ids_path, -errno);
	while (!status && getline(&line, &size, f) >= 0) {
		line[strcspn(line, " \t\r\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (ulid_is_valid(line, strlen(line)))
			status = each(q, line, arg);
		else
			status = store_query_usage("%s: %s: expected an id on each line",
			                           q->ids_path, line);
	}
	if (!status && ferror(f))
		status = store_query_fail(q->ids_path, -errno);
	free(line);
	if (f != stdin)
		fclose(f);
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
	if (q->ids_path)
		return each_line(q, each, arg);
	return q->word_count ? each_word(q, each, arg) : each_stored(q, each, arg);
}

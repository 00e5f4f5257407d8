/*
 * pictures_harness.h - import_pictures.c with a directory, a map in memory, and a daemon that works
 * while the import sleeps.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PICTURES_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PICTURES_HARNESS_H

#include "store_faults.h"
#include "text_streams.h"

#include <fts.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"
#include "store/import_map.h"
#include "store/import_place.h"
#include "store/spool.h"
#include "store/store_find.h"
#include "store/store_progress.h"
#include "store/store_query.h"

#define EXIT_FAILED 7 /* of store_query_fail() */
#define NO_DAEMON                                                                                 \
	"darkroomd store: the daemon does not answer: start it; import continues when it is run " \
	"again\n"

/* ---- the daemon: a file that begins with "bad" is refused, one with "gone" disappears ---- */

struct image {
	enum { SPOOLED = 1, STORED, GONE } state;
	char id[ULID_LENGTH + 1], content[16], name[SPOOL_FILE_NAME_MAX];
};
static struct image images[256];
static unsigned image_count, spooled, spooled_most, asks, failing_ask, sleeps, idle_sleeps;
static unsigned puts_of[16], put_count;
static int put_error; /* of the first item */
static bool is_owner;
static const char *problem = "it is no JPEG\nmore";

static inline struct image *find_image(const char *id)
{
	for (unsigned i = 0; i < image_count; i++)
		if (strcmp(images[i].id, id) == 0)
			return &images[i];
	return NULL;
}

static inline struct image *add_image(const char *id, int state, const char *content, size_t size)
{
	struct image *image = &images[image_count++];

	assert_true(image_count <= COUNT_OF(images));
	*image = (struct image){ .state = SPOOLED };
	image->state = (unsigned)state;
	memcpy(image->id, id, sizeof image->id);
	memcpy(image->content, content, size < 15 ? size : 15);
	spooled += state == SPOOLED;
	spooled_most = spooled > spooled_most ? spooled : spooled_most;
	return image;
}

static inline void quarantine(const char *id)
{
	char line[256];

	snprintf(line, sizeof line, "mkdir quarantine/%s", id);
	shell(line);
	if (!problem)
		return;
	snprintf(line, sizeof line, "printf '%s' > quarantine/%s/problem", problem, id);
	shell(line);
}

static inline void work(void)
{
	for (unsigned i = 0; i < image_count; i++) {
		if (images[i].state != SPOOLED)
			continue;
		images[i].state = STORED;
		if (strncmp(images[i].content, "bad", 3) == 0) {
			images[i].state = GONE;
			quarantine(images[i].id);
		}
		if (strncmp(images[i].content, "gone", 4) == 0)
			images[i].state = GONE;
		spooled--;
	}
}

static inline int fake_nanosleep(const struct timespec *time, struct timespec *left)
{
	assert_null(left);
	assert_int_equal(time->tv_sec, 0);
	assert_int_equal(time->tv_nsec, 10 * NS_PER_MS);
	fake_now += (uint64_t)time->tv_nsec;
	assert_true(++sleeps < 100000);
	if (sleeps > idle_sleeps)
		work();
	return 0;
}

static inline int fake_ask(const struct conf *conf, const char *line, struct text *answer)
{
	assert_non_null(conf);
	assert_string_equal(line, "recover");
	text_puts(answer, "ok");
	return ++asks == failing_ask;
}

static inline bool fake_is_spooled(struct store *s, const char *id)
{
	const struct image *image = find_image(id);

	assert_non_null(s);
	return image && image->state == SPOOLED;
}

static inline bool fake_has_image(struct store *s, const char *id)
{
	const struct image *image = find_image(id);

	assert_non_null(s);
	return image && image->state == STORED;
}

static inline void fake_put(struct store *s, struct store_item *items, unsigned count)
{
	assert_non_null(s);
	assert_true(is_owner && count > 0);
	if (put_count < COUNT_OF(puts_of))
		puts_of[put_count] = count;
	put_count++;
	for (unsigned i = 0; i < count; i++) {
		struct spool_names names;
		const struct store_file *file = items[i].file;

		assert_int_equal(items[i].place, STORE_SPOOL);
		assert_int_equal(items[i].file_count, 2);
		assert_string_equal(file[0].name, STORE_ORIGINAL);
		assert_string_equal(file[1].name, SPOOL_NOTE);
		assert_true(!file[0].sum && !file[1].sum);
		items[i].err = i == 0 ? put_error : 0;
		if (items[i].err)
			continue;
		spool_read_names(file[1].data, file[1].size, &names);
		assert_int_equal(names.expires, 0);
		struct image *image = add_image(items[i].id, SPOOLED, file[0].data, file[0].size);

		snprintf(image->name, sizeof image->name, "%s", names.file);
	}
}

/* ---- the map ---- */

static struct store_query query;

static struct {
	char path[32];
	struct import_known known;
} in_map[80]; /* when the import begins */
static unsigned known_count, stored_lines, begun_lines, flushes, map_closes;
static int map_status, begin_error, stored_error, flush_error, close_error;
static bool was_over;
static char last_path[64], last_id[ULID_LENGTH + 1];

static inline void know(const char *path, const char *id, bool is_stored)
{
	snprintf(in_map[known_count].path, sizeof in_map[0].path, "%s", path);
	memcpy(in_map[known_count].known.id, id, sizeof in_map[0].known.id);
	in_map[known_count++].known.is_stored = is_stored;
}

static inline int fake_map_open(struct import_map *m, const char *path)
{
	static char begun_path[] = "map.begun";

	*m = (struct import_map){ .path = path, .begun_path = begun_path };
	return map_status;
}

static inline int fake_map_close(struct import_map *m, bool is_over)
{
	assert_non_null(m);
	was_over = is_over;
	map_closes++;
	return close_error;
}

static inline const struct import_known *fake_find(const struct import_map *m, const char *path)
{
	assert_non_null(m);
	for (unsigned i = 0; i < known_count; i++)
		if (strcmp(in_map[i].path, path) == 0)
			return &in_map[i].known;
	return NULL;
}

static inline int fake_begin(struct import_map *m, const char *path, const char *id)
{
	assert_true(m && !find_image(id) && *path != '/');
	begun_lines += !begin_error;
	return begin_error;
}

static inline int fake_stored(struct import_map *m, const char *path, const char *id)
{
	assert_string_equal(m->path, "map");
	assert_true(fake_has_image(&query.store, id));
	snprintf(last_path, sizeof last_path, "%s", path);
	snprintf(last_id, sizeof last_id, "%s", id);
	stored_lines++;
	return stored_error;
}

static inline int fake_flush(struct import_map *m)
{
	assert_non_null(m);
	flushes++;
	return flush_error;
}

/* ---- the rest ---- */

static unsigned place_closes, shows, fts_closes, failing_read;
static int place_status, reported_err;
static char reported[128];
static bool was_last, is_root_unreadable, fails_fts_open;
static struct store_progress seen;
static uint64_t all_at_first; /* of the progress */
static const char *growth;    /* a command that runs between fstat() and read() */
static size_t failing_malloc;
static bool fails_strdup, fails_open;

static inline int fake_place_open(struct store_query *q, bool is_forever)
{
	assert_true(q && !is_forever);
	return place_status;
}

static inline void fake_place_close(struct store_query *q)
{
	assert_non_null(q);
	place_closes++;
}

static inline void fake_enter(const struct store_query *q)
{
	assert_true(q && !is_owner);
	is_owner = true;
}

static inline void fake_leave(void)
{
	assert_true(is_owner);
	is_owner = false;
}

static inline int fake_fail(const char *what, int err)
{
	snprintf(reported, sizeof reported, "%s", what);
	reported_err = err;
	return EXIT_FAILED;
}

static inline int fake_usage(const char *format, ...)
{
	snprintf(reported, sizeof reported, "%s", format);
	return QUERY_EXIT_USAGE;
}

static inline void fake_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all, .start_ns = 1 };
}

static inline void fake_show(struct store_progress *p, bool is_last)
{
	assert_false(was_last);
	was_last = is_last;
	all_at_first = shows == 0 ? p->all : all_at_first;
	seen = *p;
	shows++;
}

static inline FTS *fake_fts_open(char *const *roots, int options,
                                 int (*compare)(const FTSENT **, const FTSENT **))
{
	errno = ENFILE;
	return fails_fts_open ? NULL : fts_open(roots, options, compare);
}

/* The names of entries that cannot be read say so. */
static inline FTSENT *fake_fts_read(FTS *fts)
{
	if (failing_read && --failing_read == 0) {
		errno = EIO;
		return NULL;
	}
	FTSENT *entry = fts_read(fts);
	bool is_bad = entry && entry->fts_level == 0 && is_root_unreadable;

	if (!entry)
		return NULL;
	if (is_bad || strcmp(entry->fts_name, "dnr") == 0)
		entry->fts_info = FTS_DNR;
	else if (strcmp(entry->fts_name, "err") == 0)
		entry->fts_info = FTS_ERR;
	else if (strcmp(entry->fts_name, "ns") == 0)
		entry->fts_info = FTS_NS;
	else
		return entry;
	entry->fts_errno = EACCES;
	return entry;
}

static inline int fake_fts_close(FTS *fts)
{
	fts_closes++;
	return fts_close(fts);
}

static inline void *fake_malloc(size_t size)
{
	if (growth)
		shell(growth);
	return size == failing_malloc ? NULL : malloc(size);
}

static inline char *fake_strdup(const char *text)
{
	return fails_strdup ? NULL : strdup(text);
}

static inline int fake_open(const char *path, int flags)
{
	errno = EACCES;
	return fails_open ? -1 : open(path, flags);
}

#undef fail /* cmocka has one, too */
#define nanosleep fake_nanosleep
#define store_is_spooled fake_is_spooled
#define store_has_image fake_has_image
#define store_put fake_put
#define import_map_open fake_map_open
#define import_map_close fake_map_close
#define import_map_find fake_find
#define import_map_begin fake_begin
#define import_map_stored fake_stored
#define import_map_flush fake_flush
#define import_place_open fake_place_open
#define import_place_close fake_place_close
#define import_place_enter fake_enter
#define import_place_leave fake_leave
#define store_query_fail fake_fail
#define store_query_usage fake_usage
#define store_progress_start fake_start
#define store_progress_show fake_show
#define fts_open fake_fts_open
#define fts_read fake_fts_read
#define fts_close fake_fts_close
#define malloc fake_malloc
#undef strdup
#define strdup fake_strdup
#define open(path, flags) fake_open(path, flags)
#include "store/import_pictures.c"
#undef open
#undef malloc

static struct conf conf;
static char directory[80], *words[] = { directory, NULL };
static unsigned descriptors;

static inline int setup(void **state)
{
	(void)state;
	no_fault();
	open_streams();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-pictures-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	shell("mkdir quarantine in");
	snprintf(directory, sizeof directory, "%s/in", test_root);
	conf.limits.body_bytes = 1000;
	query = (struct store_query){ .conf = &conf, .ask = fake_ask, .map_path = "map" };
	query.words = words;
	query.word_count = 1;
	char path[80];

	snprintf(path, sizeof path, "%s/quarantine", test_root);
	query.store.quarantine_fd = open(path, O_RDONLY | O_DIRECTORY);
	descriptors = open_descriptors();
	image_count = spooled = spooled_most = asks = failing_ask = sleeps = idle_sleeps = 0;
	known_count = stored_lines = begun_lines = flushes = map_closes = put_count = 0;
	place_closes = shows = fts_closes = failing_read = 0;
	map_status = begin_error = stored_error = flush_error = close_error = put_error = 0;
	place_status = reported_err = 0;
	is_root_unreadable = fails_fts_open = fails_strdup = fails_open = false;
	failing_malloc = 0;
	growth = NULL;
	reported[0] = '\0';
	problem = "it is no JPEG\nmore";
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(query.store.quarantine_fd);
	remove_test_root();
	close_streams();
	return 0;
}

/* Imports the directory. Returns the exit status. */
static inline int import(void)
{
	was_last = false;
	place_closes = map_closes = 0;
	int status = import_pictures(&query);

	assert_true(was_last || status == QUERY_EXIT_USAGE);
	assert_int_equal(map_closes, status != QUERY_EXIT_USAGE);
	return status;
}

static inline void check_counts(const char *before, unsigned made, unsigned old, unsigned failed,
                                unsigned others)
{
	char line[1024];

	snprintf(line, sizeof line,
	         "%sdarkroomd store: %u images made, %u were in the map already, %u failed; %u "
	         "files are not called .jpg or .jpeg\n",
	         before, made, old, failed, others);
	check_written("", line);
}

#endif

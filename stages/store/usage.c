/*
 * usage.c - figures of the store, and their count.
 *
 * The file of figures has one line for all, and one for each token: images, bytes, uploads of the
 * day, and the name behind "=".
 */
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "access/tokens.h"
#include "base/check.h"
#include "base/text.h"
#include "directory.h"
#include "log/log.h"
#include "store.h"
#include "store_page.h"
#include "stored_image.h"

#define FORMAT "darkroom-usage 1 %" PRIu64 "\n"
#define LAST_ID "~" /* behind all ids */
#define TEXT_MAX ((size_t)(USAGE_TOKENS_MAX + 1) * (USAGE_NAME_MAX + 80))

void usage_init(struct usage *u)
{
	*u = (struct usage){ .is_on = false };
	pthread_mutex_init(&u->lock, NULL);
}

/* Empties all figures. */
static void forget(struct usage *u)
{
	free(u->token);
	free(u->page);
	u->token = NULL;
	u->page = NULL;
	u->count = u->room = u->page_count = u->page_at = 0;
	u->page_end[0] = '\0';
	u->all = (struct usage_sum){ 0 };
	u->is_complete = false;
}

void usage_fini(struct usage *u)
{
	forget(u);
	pthread_mutex_destroy(&u->lock);
}

/* ---- tokens ---- */

/* Begins a new day if there is one: uploads are those of the day. */
static void begin_day(struct usage *u)
{
	uint64_t day = (uint64_t)time(NULL) / USAGE_DAY_S;

	if (day == u->day)
		return;
	u->day = day;
	for (unsigned i = 0; i < u->count; i++)
		u->token[i].uploads = 0;
}

/* Makes a place for a token. Returns false if there is none. */
static bool grow(struct usage *u)
{
	if (u->count < u->room)
		return true;
	unsigned room = u->room ? 2 * u->room : 16;
	struct usage_token *more =
		u->count < USAGE_TOKENS_MAX ? realloc(u->token, room * sizeof *more) : NULL;

	if (!more)
		return false;
	u->token = more;
	u->room = room;
	return true;
}

/* Forgets tokens without figures: a site may change the names of its tokens for years. Returns
 * whether there were some. */
static bool forget_empty(struct usage *u)
{
	unsigned kept = 0, count = u->count;

	for (unsigned i = 0; i < count; i++) {
		const struct usage_token *t = &u->token[i];

		if (t->stored.images || t->stored.bytes || t->reserved.images ||
		    t->reserved.bytes || t->uploads)
			u->token[kept++] = *t;
	}
	u->count = kept;
	return kept < count;
}

/* Returns the token's figures, a new entry if need be. NULL: no name, or no room. */
static struct usage_token *find_token(struct usage *u, const char *name)
{
	unsigned low = 0, high = u->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = strcmp(name, u->token[middle].name);

		if (order == 0)
			return &u->token[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (u->count == USAGE_TOKENS_MAX && forget_empty(u))
		return find_token(u, name);
	if (!name[0] || !grow(u))
		return NULL;
	memmove(&u->token[low + 1], &u->token[low], (u->count - low) * sizeof u->token[0]);
	u->count++;
	u->token[low] = (struct usage_token){ .stored = { 0 } };
	snprintf(u->token[low].name, sizeof u->token[low].name, "%s", name);
	return &u->token[low];
}

/* Adds an image, whether its page is counted or not. */
static void add(struct usage *u, const char *token, uint64_t bytes)
{
	struct usage_token *of = find_token(u, token);

	u->all.images++;
	u->all.bytes += bytes;
	if (!of)
		return;
	of->stored.images++;
	of->stored.bytes += bytes;
}

static void take(uint64_t *from, uint64_t n)
{
	*from -= n < *from ? n : *from;
}

/* ---- publications and removals ---- */

/* The rest of the page has still to be counted. An image that came after the page was listed is not
 * in it. */
static bool is_counted(const struct usage *u, const char *id)
{
	unsigned left = u->page_count - u->page_at;

	return strcmp(id, u->page_end) <= 0 &&
	       !(left && bsearch(id, u->page[u->page_at], left, sizeof u->page[0], ulid_compare));
}

void usage_stored(struct usage *u, const char *id, const char *token, uint64_t bytes)
{
	if (u->is_on && is_counted(u, id))
		add(u, token ? token : "", bytes);
}

void usage_removed(struct usage *u, const char *id, const char *token, uint64_t bytes)
{
	if (!u->is_on || !is_counted(u, id))
		return;
	struct usage_token *of = find_token(u, token ? token : "");

	take(&u->all.images, 1);
	take(&u->all.bytes, bytes);
	if (!of)
		return;
	take(&of->stored.images, 1);
	take(&of->stored.bytes, bytes);
}

void usage_doubt(struct usage *u)
{
	pthread_mutex_lock(&u->lock);
	u->is_doubtful = true;
	pthread_mutex_unlock(&u->lock);
}

/* ---- quotas ---- */

enum usage_verdict usage_reserve(struct usage *u, const char *token,
                                 const struct token_quota *limits, uint64_t images, uint64_t bytes,
                                 uint64_t *used)
{
	enum usage_verdict verdict = USAGE_GRANTED;

	pthread_mutex_lock(&u->lock);
	begin_day(u);
	struct usage_token *of = find_token(u, token);

	if (of) {
		const struct {
			enum usage_verdict verdict;
			uint64_t limit, used, wanted;
		} quotas[] = {
			{ USAGE_IMAGES, limits->images, of->stored.images + of->reserved.images,
			  images },
			{ USAGE_BYTES, limits->bytes, of->stored.bytes + of->reserved.bytes,
			  bytes },
			{ USAGE_UPLOADS, limits->uploads, of->uploads, images },
		};

		for (unsigned i = 0; i < COUNT_OF(quotas) && !verdict; i++)
			if (quotas[i].limit &&
			    quotas[i].used + quotas[i].wanted > quotas[i].limit) {
				verdict = quotas[i].verdict;
				*used = quotas[i].used;
			}
		of->reserved.images += verdict ? 0 : images;
		of->reserved.bytes += verdict ? 0 : bytes;
		of->uploads += verdict ? 0 : images;
	}
	pthread_mutex_unlock(&u->lock);
	return verdict;
}

void usage_release(struct usage *u, const char *token, uint64_t images, uint64_t bytes,
                   uint64_t uploads)
{
	pthread_mutex_lock(&u->lock);
	struct usage_token *of = find_token(u, token);

	if (of) {
		take(&of->reserved.images, images);
		take(&of->reserved.bytes, bytes);
		take(&of->uploads, uploads);
	}
	pthread_mutex_unlock(&u->lock);
}

unsigned usage_day_left(void)
{
	return USAGE_DAY_S - (unsigned)((uint64_t)time(NULL) % USAGE_DAY_S);
}

/* ---- reports ---- */

struct usage_total usage_total(struct usage *u)
{
	pthread_mutex_lock(&u->lock);
	struct usage_total total = { u->all, u->is_on, u->is_complete };

	pthread_mutex_unlock(&u->lock);
	return total;
}

void usage_each(struct usage *u, void (*each)(const struct usage_token *token, void *arg),
                void *arg)
{
	pthread_mutex_lock(&u->lock);
	begin_day(u);
	for (unsigned i = 0; i < u->count; i++)
		each(&u->token[i], arg);
	pthread_mutex_unlock(&u->lock);
}

/* ---- the file ---- */

/* Reads a token's line. Returns false if it is none. */
static bool read_line(struct usage *u, const char *line, bool is_today)
{
	struct usage_token t = { .name = "" };
	char name[USAGE_NAME_MAX] = "";

	static_assert(USAGE_NAME_MAX == 64, "the format has its length");
	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " =%63s", &t.stored.images,
	           &t.stored.bytes, &t.uploads, name) < 3)
		return false;
	struct usage_token *of = find_token(u, name);

	if (!name[0])
		u->all = t.stored;
	if (!of)
		return !name[0];
	of->stored = t.stored;
	of->uploads = is_today ? t.uploads : 0;
	return true;
}

static bool read_all(struct usage *u, FILE *f)
{
	char line[USAGE_NAME_MAX + 80];
	uint64_t day, lines = 0;
	bool is_good = fgets(line, sizeof line, f) && sscanf(line, FORMAT, &day) == 1;

	for (; is_good && fgets(line, sizeof line, f); lines++)
		is_good = strchr(line, '\n') && read_line(u, line, day == u->day);
	return is_good && lines > 0;
}

/* Returns whether the file that demands a new count was there, and removes it. */
static bool take_recount(int root_fd)
{
	return unlinkat(root_fd, USAGE_RECOUNT_FILE, 0) == 0;
}

/* Reads and removes the file. Returns false if there is none, or if it does not hold any more. */
static bool read_figures(struct usage *u, int root_fd)
{
	int fd = directory_open_file(root_fd, USAGE_FILE, O_RDONLY);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool is_good = f && read_all(u, f);

	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	/* Durable, so that it does not return after a crash: also if a start was killed before. For
	 * the same reason the demand for a new count goes last. */
	if ((unlinkat(root_fd, USAGE_FILE, 0) && errno != ENOENT) || fsync(root_fd) ||
	    take_recount(root_fd))
		is_good = false;
	if (is_good)
		return true;
	u->all = (struct usage_sum){ 0 };
	u->count = 0;
	return false;
}

/* A failure is logged: the next start counts the images. */
static void write_figures(const struct usage *u, int root_fd)
{
	struct text t;

	text_init_growable(&t, TEXT_MAX);
	text_printf(&t, FORMAT "%" PRIu64 " %" PRIu64 " 0 =\n", u->day, u->all.images,
	            u->all.bytes);
	for (unsigned i = 0; i < u->count; i++)
		text_printf(&t, "%" PRIu64 " %" PRIu64 " %" PRIu64 " =%s\n",
		            u->token[i].stored.images, u->token[i].stored.bytes,
		            u->token[i].uploads, u->token[i].name);
	int err = t.overflowed ? -ENOMEM
	                       : directory_write_file(root_fd, USAGE_FILE, t.data, t.length, true);

	text_fini(&t);
	if (err)
		log_warning("store: cannot write " USAGE_FILE
		            ": %s; the next start counts the images",
		            strerror(-err));
}

/* ---- the count ---- */

/* Lists the next page. Nothing is published or removed meanwhile. */
static int list(struct usage *u, struct store *s)
{
	struct store_page page = { .max = USAGE_PAGE_MAX };

	if (!u->page)
		u->page = malloc(USAGE_PAGE_MAX * sizeof u->page[0]);
	if (!u->page)
		return -ENOMEM;
	/* It is still there if the start could not remove it. */
	(void)unlinkat(s->root_fd, USAGE_FILE, 0);
	page.id = u->page;
	memcpy(page.after, u->page_end, sizeof page.after);
	int err = store_page_read(s->root_fd, &page);

	if (err)
		return err;
	u->page_at = 0;
	u->page_count = page.count;
	memcpy(u->page_end, page.count == page.max ? page.id[page.count - 1] : LAST_ID,
	       page.count == page.max ? sizeof u->page_end : sizeof LAST_ID);
	return 0;
}

/* Counts the next image of the page. Returns 0, or -errno if this process could not read it: it is
 * the next one again. */
static int count_one(struct usage *u, struct store *s)
{
	const char *id = u->page[u->page_at];
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	int err = stored_info_load(&info, s, id, data);

	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return err;
	u->page_at++;
	if (err)
		return 0; /* removed, or damaged */
	add(u, info.token, stored_info_bytes(&info));
	struct usage_token *of = find_token(u, info.token);

	if (of && (uint64_t)ulid_time(id) / USAGE_DAY_S == u->day && strcmp(id, u->since) < 0)
		of->uploads++;
	return 0;
}

static void complete(struct usage *u)
{
	u->is_complete = true;
	free(u->page);
	u->page = NULL;
	u->page_count = u->page_at = 0;
	log_notice("store: counted %llu image%s with %llu bytes", (unsigned long long)u->all.images,
	           plural(u->all.images), (unsigned long long)u->all.bytes);
}

int usage_count(struct usage *u, struct store *s, unsigned n)
{
	int result = 0;

	for (unsigned i = 0; i < n && result == 0; i++) {
		pthread_mutex_lock(&u->lock);
		begin_day(u);
		if (u->page_at < u->page_count)
			result = count_one(u, s);
		else if (u->page_end[0] != LAST_ID[0])
			result = list(u, s);
		else if (!u->is_complete)
			complete(u);
		if (u->is_complete)
			result = 1;
		pthread_mutex_unlock(&u->lock);
	}
	return result;
}

/* ---- on and off ---- */

void usage_switch(struct usage *u, struct store *s, bool is_on)
{
	pthread_mutex_lock(&u->lock);
	if (is_on && !u->is_on) {
		u->is_on = true;
		begin_day(u);
		ulid_new(u->since);
		if (read_figures(u, s->root_fd)) {
			memcpy(u->page_end, LAST_ID, sizeof LAST_ID);
			u->is_complete = true;
		}
	} else if (!is_on) {
		(void)unlinkat(s->root_fd, USAGE_FILE,
		               0); /* it is not there if figures were not kept */
		if (u->is_on)
			forget(u);
		u->is_on = false;
	}
	pthread_mutex_unlock(&u->lock);
}

void usage_check_recount(struct usage *u, struct store *s)
{
	pthread_mutex_lock(&u->lock);
	unsigned openings = atomic_load(&s->openings);
	bool is_due = take_recount(s->root_fd) || openings != u->openings || u->is_doubtful;

	u->openings = openings;
	u->is_doubtful = false;
	if (is_due && u->is_on) {
		log_notice("store: the figures may be wrong; counting all images");
		u->all = (struct usage_sum){ 0 };
		for (unsigned i = 0; i < u->count; i++)
			u->token[i].stored = (struct usage_sum){ 0 };
		u->page_count = u->page_at = 0;
		u->page_end[0] = u->since[0] = '\0'; /* the day's uploads are known */
		u->is_complete = false;
	}
	pthread_mutex_unlock(&u->lock);
}

void usage_demand_recount(struct store *s)
{
	int fd = directory_open_file(s->root_fd, USAGE_RECOUNT_FILE, O_WRONLY | O_CREAT);
	int err = fd < 0 ? fd : 0;

	if (fd >= 0)
		close(fd);
	if (!err && fsync(s->root_fd)) /* before what it is for */
		err = -errno;
	if (err)
		fprintf(stderr, "darkroomd store: cannot write " USAGE_RECOUNT_FILE ": %s\n",
		        strerror(-err));
}

void usage_save(struct usage *u, struct store *s)
{
	pthread_mutex_lock(&u->lock);
	/* They may not outlive what they count: a removal whose flush failed may be undone. */
	if (u->is_on && u->is_complete && !u->is_doubtful && !store_flush(s))
		write_figures(u, s->root_fd);
	pthread_mutex_unlock(&u->lock);
}

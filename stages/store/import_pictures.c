/*
 * import_pictures.c - walks over a directory, fills the spool, and waits for the daemon.
 *
 * The order makes it safe to be killed: the id is in the map's second file before the image is in
 * the spool, and the image is stored before it is in the map. Main thread.
 */
#include "import_pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "directory.h"
#include "import_map.h"
#include "import_place.h"
#include "spool.h"
#include "store_find.h"
#include "store_progress.h"
#include "store_query.h"

#define BATCH_MAX 16            /* files that are spooled with the same flushes */
#define BATCH_BYTES (64u << 20) /* of such a batch, before its last file */
#define WAITING_MAX 64          /* in the spool */
#define LOOK_NS (10 * NS_PER_MS)
#define CALL_NS NS_PER_S

struct picture {
	char *path; /* relative to the directory */
	char id[ULID_LENGTH + 1];
	char note[SPOOL_NOTE_MAX];
	char *data; /* NULL: it is in the spool, or processed */
	size_t size;
};

struct pictures {
	struct import_map map;
	struct picture batch[BATCH_MAX], waiting[WAITING_MAX];
	unsigned batch_count, waiting_count;
	uint64_t batch_bytes, stored, known, failed, others, called_ns;
	struct store_progress progress;
};

static bool is_utf8(const char *text)
{
	size_t left = strlen(text), n = 1;

	for (const char *at = text; left > 0 && n > 0; at += n, left -= n)
		n = json_utf8_length((const unsigned char *)at, left);
	return n > 0;
}

/* The path may be shown on a terminal. */
static void fail(struct pictures *p, const char *path, const char *why)
{
	bool is_ascii = !is_utf8(path);

	fputs("darkroomd store: ", stderr);
	for (const char *at = path; *at; at++) {
		bool is_shown = (unsigned char)*at >= ' ' && *at != 0x7f && (*at > 0 || !is_ascii);

		fputc(is_shown ? *at : '?', stderr);
	}
	fprintf(stderr, ": not imported: %s\n", why);
	p->failed++;
	p->progress.ended++;
}

static void release(struct picture *picture)
{
	free(picture->path);
	free(picture->data);
	*picture = (struct picture){ .path = NULL };
}

/* ---- results ---- */

/* Wakes the daemon's recovery. Returns 0 or the exit status. */
static int call(struct pictures *p, struct store_query *q)
{
	char data[256];
	struct text answer;

	p->called_ns = clock_ns();
	text_init(&answer, data, sizeof data);
	if (q->ask(q->conf, "recover", &answer) == 0)
		return 0;
	fputs("darkroomd store: the daemon does not answer: start it; import continues when it is "
	      "run again\n",
	      stderr);
	return EXIT_FAILURE;
}

/* Reports why the daemon has refused a file, and removes its copy. Returns false if it has not. */
static bool settle_refused(struct pictures *p, struct store_query *q, const char *path,
                           const char *id)
{
	char name[ULID_LENGTH + sizeof "/" SPOOL_PROBLEM],
		why[512] = "the daemon's log has the cause";

	snprintf(name, sizeof name, "%s/" SPOOL_PROBLEM, id);
	if (faccessat(q->store.quarantine_fd, id, F_OK, AT_SYMLINK_NOFOLLOW))
		return false;
	int fd = openat(q->store.quarantine_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, why, sizeof why - 1);

	if (fd >= 0)
		close(fd);
	if (n >= 0)
		why[n] = '\0';
	why[strcspn(why, "\n")] = '\0';
	if (path)
		fail(p, path, why);
	(void)directory_remove(q->store.quarantine_fd, id);
	return true;
}

/* Settles a picture that has left the spool. Returns 0 or the exit status. */
static int settle(struct pictures *p, struct store_query *q, struct picture *picture)
{
	int err = 0;

	if (store_has_image(&q->store, picture->id)) {
		err = import_map_stored(&p->map, picture->path, picture->id);
		p->stored++;
		p->progress.ended++;
	} else if (!settle_refused(p, q, picture->path, picture->id)) {
		fail(p, picture->path, "it was removed meanwhile");
	}
	release(picture);
	return err ? store_query_fail(p->map.path, err) : 0;
}

/* Waits until at most max pictures are in the spool. Returns 0 or the exit status. */
static int await(struct pictures *p, struct store_query *q, unsigned max)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };
	int status = 0;

	while (p->waiting_count > max && !status) {
		unsigned left = 0;

		for (unsigned i = 0; i < p->waiting_count; i++) {
			struct picture picture = p->waiting[i];

			if (status || store_is_spooled(&q->store, picture.id))
				p->waiting[left++] = picture;
			else
				status = settle(p, q, &picture);
		}
		p->waiting_count = left;
		store_progress_show(&p->progress, false);
		if (!status && left > max && clock_ns() - p->called_ns >= CALL_NS)
			status = call(p, q);
		if (!status && left > max)
			nanosleep(&look, NULL);
	}
	return status;
}

/* ---- spooling ---- */

/* Puts the batch into the spool. Returns 0 or the exit status. */
static int spool_batch(struct pictures *p, struct store_query *q)
{
	struct store_item item[BATCH_MAX];
	struct store_file file[BATCH_MAX][2];
	unsigned count = p->batch_count;
	int status = count ? await(p, q, WAITING_MAX - BATCH_MAX) : 0;
	int err = !status && count ? import_map_flush(&p->map) : 0;

	if (status || err || !count)
		return err ? store_query_fail(p->map.begun_path, err) : status;
	for (unsigned i = 0; i < count; i++) {
		struct picture *picture = &p->batch[i];
		struct spool_names names = { .expires = 0 };
		const char *slash = strrchr(picture->path, '/');

		snprintf(names.file, sizeof names.file, "%s", slash ? slash + 1 : picture->path);
		file[i][0] =
			(struct store_file){ STORE_ORIGINAL, picture->data, picture->size, NULL };
		file[i][1] = (struct store_file){ SPOOL_NOTE, picture->note,
			                          spool_note(picture->note, &names), NULL };
		item[i] = (struct store_item){
			.place = STORE_SPOOL, .id = picture->id, .file = file[i], .file_count = 2
		};
	}
	import_place_enter(q);
	store_put(&q->store, item, count);
	import_place_leave();
	for (unsigned i = 0; i < count; i++) {
		if (item[i].err) {
			status = store_query_fail(p->batch[i].path, item[i].err);
			continue; /* the end of the import releases it */
		}
		free(p->batch[i].data);
		p->batch[i].data = NULL;
		p->waiting[p->waiting_count++] = p->batch[i];
		p->batch[i] = (struct picture){ .path = NULL };
	}
	p->batch_count = 0;
	p->batch_bytes = 0;
	return status ? status : call(p, q);
}

/* Reads a file of the directory. Returns NULL, or why it cannot be imported. */
static const char *read_picture(struct picture *picture, const char *path, uint64_t bytes_max)
{
	struct stat st = { .st_size = 0 };
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const char *why = NULL;

	if (fd < 0 || fstat(fd, &st)) {
		why = strerror(errno);
	} else if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		why = "it is empty";
	} else if ((uint64_t)st.st_size > bytes_max) {
		why = "it is larger than limits.body_bytes";
	} else if (!(picture->data = malloc((size_t)st.st_size))) {
		why = strerror(ENOMEM);
	}
	while (!why && picture->size < (size_t)st.st_size) {
		ssize_t n =
			read(fd, picture->data + picture->size, (size_t)st.st_size - picture->size);

		if (n > 0)
			picture->size += (size_t)n;
		else if (n == 0)
			why = "it became shorter";
		else if (errno != EINTR)
			why = strerror(errno);
	}
	if (fd >= 0)
		close(fd);
	return why;
}

/* Begins with a file that the map does not have. Returns 0 or the exit status. */
static int begin(struct pictures *p, struct store_query *q, const char *full, const char *path,
                 const struct import_known *begun)
{
	struct picture *picture = &p->batch[p->batch_count];

	*picture = (struct picture){ .path = strdup(path) };
	if (!picture->path)
		return store_query_fail(path, -ENOMEM);
	if (begun) {
		memcpy(picture->id, begun->id, sizeof picture->id);
		settle_refused(p, q, NULL, picture->id); /* it is tried once more */
	} else {
		ulid_new(picture->id);
	}
	if (begun &&
	    (store_is_spooled(&q->store, begun->id) || store_has_image(&q->store, begun->id))) {
		int status = await(p, q, WAITING_MAX - 1);

		if (status)
			return status;
		p->waiting[p->waiting_count++] = *picture;
		*picture = (struct picture){ .path = NULL };
		return 0;
	}
	const char *why = read_picture(picture, full, q->conf->limits.body_bytes);
	int err = why || begun ? 0 : import_map_begin(&p->map, path, picture->id);

	if (why || err) {
		if (why)
			fail(p, path, why);
		release(picture);
		return err ? store_query_fail(p->map.begun_path, err) : 0;
	}
	p->batch_bytes += picture->size;
	p->batch_count++;
	return p->batch_count == BATCH_MAX || p->batch_bytes >= BATCH_BYTES ? spool_batch(p, q) : 0;
}

/* ---- the directory ---- */

static bool is_jpeg(const FTSENT *entry)
{
	const char *dot = strrchr(entry->fts_name, '.');

	return entry->fts_info == FTS_F && dot &&
	       (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static int import_file(struct pictures *p, struct store_query *q, const char *full,
                       const char *path)
{
	const struct import_known *known = import_map_find(&p->map, path);

	store_progress_show(&p->progress, false);
	if (known && known->is_stored) {
		p->known++;
		p->progress.ended++;
		return 0;
	}
	if (!is_utf8(path) || strlen(path) > IMPORT_PATH_MAX) {
		fail(p, path, "its path is not UTF-8, or longer than 4096 bytes");
		return 0;
	}
	return begin(p, q, full, path, known);
}

/* Imports the files of the directory, or only counts them in p->progress.all. Returns 0 or the exit
 * status. */
static int walk(struct pictures *p, struct store_query *q, char *directory, bool only_counts)
{
	char *const roots[] = { directory, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	int status = 0;

	if (!fts)
		return store_query_fail(directory, -errno);
	while (!status && (entry = fts_read(fts))) { /* sets errno at the end, to 0 or the error */
		const char *path = entry->fts_path + strlen(directory);

		path += strspn(path, "/");
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
		    entry->fts_info == FTS_NS) {
			if (entry->fts_level == 0)
				status = store_query_fail(directory, -entry->fts_errno);
			else if (!only_counts)
				fail(p, path, strerror(entry->fts_errno));
		} else if (!is_jpeg(entry)) {
			p->others += !only_counts && entry->fts_info != FTS_D &&
			             entry->fts_info != FTS_DP;
		} else if (only_counts) {
			p->progress.all++;
		} else {
			status = import_file(p, q, entry->fts_path, path);
		}
	}
	if (!status && errno)
		status = store_query_fail(directory, -errno);
	fts_close(fts);
	return status;
}

int import_pictures(struct store_query *q)
{
	static struct pictures p;
	char *directory = q->words[0];

	p = (struct pictures){ .stored = 0 };
	if (!q->map_path || q->word_count != 1)
		return store_query_usage("import: expected one directory and --map FILE");
	int status = import_map_open(&p.map, q->map_path);

	if (!status)
		status = import_place_open(q, false);
	if (!status) {
		status = call(&p, q);
		store_progress_start(&p.progress, 0);
		if (!status)
			status = walk(&p, q, directory, true);
		if (!status)
			status = walk(&p, q, directory, false);
		if (!status)
			status = spool_batch(&p, q);
		if (!status)
			status = await(&p, q, 0);
		import_place_close(q);
	}
	for (unsigned i = 0; i < BATCH_MAX; i++)
		release(&p.batch[i]);
	for (unsigned i = 0; i < p.waiting_count; i++)
		release(&p.waiting[i]);
	int err = import_map_close(&p.map, !status);

	if (err)
		status = store_query_fail(q->map_path, err);
	store_progress_show(&p.progress, true);
	fprintf(stderr,
	        "darkroomd store: %" PRIu64 " images made, %" PRIu64
	        " were in the map already, %" PRIu64 " failed; %" PRIu64
	        " files are not called .jpg or .jpeg\n",
	        p.stored, p.known, p.failed, p.others);
	return status ? status : p.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * store_audit.c - darkroomd store check: reads every file, and compares it with its checksum.
 *
 * The checksums are those of image.json, which has one of its own. Without it (it is damaged), the
 * attributes of the files serve. A running daemon may add, remove and remake images: what is found
 * wrong with an image counts only if its directory is still the same afterwards. What lies beside
 * the images is named at the end of a check of the whole store. Main thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "store/directory.h"
#include "store/store_find.h"
#include "store/store_path.h"
#include "store/store_verify.h"
#include "store/stored_image.h"
#include "store/stray.h"
#include "store_query.h"

#define INTERRUPTED (-1)
#define PROBLEMS_MAX 64 /* of one image that are listed */
#define STRAYS "strays"
#define RATE (UINT64_C(32) << 20) /* bytes per second unless --rate asks for another */
#define SAVE_NS (5 * NS_PER_S)

struct audit {
	/* of the present image */
	char id[ULID_LENGTH + 1];
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	bool knows_files; /* image.json is good, so info lists all files */
	bool has_seen[CONF_FILE_MAX + 1];
	struct problem {
		char file[STRAY_PATH_MAX]; /* "": the image itself */
		const char *kind;          /* static */
	} problem[PROBLEMS_MAX];
	unsigned problem_count, attempts;
	/* of all */
	uint64_t images, files, bytes, problems, unverified;
	uint64_t start_ns, saved_ns;
	bool is_whole; /* the whole store is checked, so that its progress is kept */
	uint64_t rate; /* bytes per second */
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
	(void)signal;
	is_interrupted = true;
}

/* ---- progress ---- */

static void save(struct audit *a, const struct store_query *q)
{
	a->saved_ns = clock_ns();
	/* If that fails, the next check begins earlier. */
	(void)directory_write_file(q->store.root_fd, STORE_CHECK_FILE, a->id, ULID_LENGTH, false);
}

/* Continues where an interrupted check of the whole store ended. Returns 0 or the exit status. */
static int start(struct audit *a, struct store_query *q)
{
	char id[ULID_LENGTH + 1] = "";

	a->start_ns = a->saved_ns = clock_ns();
	a->rate = q->rate ? q->rate : RATE;
	if (q->token || q->is_newest_first)
		return store_query_usage("check: --token and --newest do not select images here");
	a->is_whole = !q->word_count && !q->ids_path && !q->after[0] && !q->before[0] &&
	              q->limit == UINT64_MAX;
	if (!a->is_whole || q->restarts)
		return 0;
	if (directory_read_file(q->store.root_fd, STORE_CHECK_FILE, id, sizeof id) == ULID_LENGTH &&
	    ulid_is_valid(id, ULID_LENGTH)) {
		memcpy(q->after, id, sizeof q->after);
		store_query_say("continuing behind %s", id);
	}
	return 0;
}

/* ---- problems ---- */

static void add_problem(struct audit *a, const char *file, const char *kind)
{
	if (a->problem_count == PROBLEMS_MAX)
		return;
	struct problem *p = &a->problem[a->problem_count++];

	size_t length = strnlen(file, sizeof p->file - 1);

	memcpy(p->file, file, length);
	p->file[length] = '\0';
	p->kind = kind;
}

static void print(const struct store_query *q, const char *id, const struct problem *p,
                  bool is_moved)
{
	struct text t = TEXT_LOCAL(1024);
	struct json j = { .text = &t };

	if (!q->is_json) {
		fputs(id, stdout);
		fputs(p->file[0] && id[0] ? "/" : "", stdout);
		store_query_print(stdout, p->file);
		printf(": %s%s\n", p->kind, is_moved ? ", now in .quarantine" : "");
		return;
	}
	json_object(&j, NULL);
	json_string(&j, "id", id);
	json_string(&j, "file", p->file);
	json_string(&j, "problem", p->kind);
	json_bool(&j, "quarantined", is_moved);
	json_object_end(&j);
	puts(t.data);
}

/* ---- one file ---- */

/* Reads the file from the disk, not from memory that may hold an older copy. Returns 0 or -errno.
 */
static int sum_file(struct audit *a, int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	int err = checksum_of_file(fd, sum, size);

	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	a->files++;
	a->bytes += *size;
	store_query_pace(a->start_ns, a->bytes, a->rate);
	return err;
}

/* Compares an open file. expected: what image.json says, or NULL. */
static void compare(struct audit *a, const char *name, int fd, const struct stored_file *expected)
{
	char sum[CHECKSUM_LENGTH + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int err = sum_file(a, fd, sum, &size);
	const char *fault = err        ? "unreadable"
	                    : expected ? stored_file_fault(expected, size, sum)
	                               : NULL;

	store_tag(fd, tag);
	if (!fault && !(expected && expected->sum[0])) { /* the tag has the only checksum */
		if (strlen(tag) != CHECKSUM_LENGTH)
			a->unverified++;
		else if (strcmp(sum, tag) != 0)
			fault = "rotten";
	}
	if (fault)
		add_problem(a, name, fault);
}

/* ---- one image ---- */

/* Reads image.json into a->info. */
static void check_document(struct audit *a, int dir_fd)
{
	char sum[CHECKSUM_LENGTH + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = directory_open_file(dir_fd, STORED_IMAGE, O_RDONLY);

	a->knows_files = false;
	a->info.file_count = 0;
	if (fd < 0) {
		add_problem(a, STORED_IMAGE, fd == -ENOENT ? "missing" : "unreadable");
		return;
	}
	int err = sum_file(a, fd, sum, &size);
	int length = err ? err : stored_image_read(fd, a->data);

	store_tag(fd, tag);
	close(fd);
	if (length < 0 && length != -EFBIG) {
		add_problem(a, STORED_IMAGE, "unreadable");
		return;
	}
	a->knows_files = length >= 0 && !stored_info_read(&a->info, a->data, (size_t)length) &&
	                 (strlen(tag) != CHECKSUM_LENGTH || strcmp(tag, sum) == 0) &&
	                 stored_info_is_sound(&a->info, a->data, a->id);
	if (!a->knows_files) {
		a->info.file_count = 0;
		add_problem(a, STORED_IMAGE, "rotten");
	} else if (!a->info.has_record) {
		a->unverified++;
	}
}

static void check_entry(struct audit *a, int dir_fd, const char *name)
{
	const struct stored_file *expected = stored_info_find(&a->info, name);

	if (expected)
		a->has_seen[expected - a->info.file] = true;
	/* Earlier versions kept the original, and did not name it. */
	bool is_known = expected || (!a->info.has_record && strcmp(name, STORE_ORIGINAL) == 0);

	if (!is_known && a->knows_files) {
		add_problem(a, name, "stray");
		return;
	}
	int fd = directory_open_file(dir_fd, name, O_RDONLY);

	if (fd < 0) {
		add_problem(a, name, "unreadable");
		return;
	}
	compare(a, name, fd, expected);
	close(fd);
}

static void check_files(struct audit *a, int dir_fd)
{
	DIR *dir = directory_list(dir_fd, ".");
	const char *entry;

	if (!dir) {
		add_problem(a, "", "unreadable");
		return;
	}
	memset(a->has_seen, 0, sizeof a->has_seen);
	while ((entry = directory_next(dir)))
		if (strcmp(entry, STORED_IMAGE) != 0)
			check_entry(a, dir_fd, entry);
	closedir(dir);
	for (unsigned i = 0; i < a->info.file_count; i++)
		if (!a->has_seen[i])
			add_problem(a, a->info.file[i].name, "missing");
}

static int check_image(struct store_query *q, const char *id, void *arg)
{
	struct audit *a = arg;
	int fd = store_open_directory(&q->store, id);
	bool is_there = true, has_moved = false;

	if (fd == -ENOENT && !q->word_count && !q->ids_path)
		return 0; /* removed since it was listed */
	if (fd < 0 && fd != -ENOENT)
		return store_query_fail(id, fd);
	memcpy(a->id, id, sizeof a->id);
	a->problem_count = 0;
	if (fd < 0) {
		add_problem(a, "", "missing");
	} else {
		check_document(a, fd);
		check_files(a, fd);
		has_moved = store_has_moved(&q->store, id, fd, &is_there);
		close(fd);
	}
	if (has_moved && is_there && a->problem_count > 0 && ++a->attempts < QUERY_ATTEMPTS_MAX)
		return check_image(q, id, arg); /* it was remade meanwhile */
	a->attempts = 0;
	a->images++;
	for (const struct problem *p = a->problem; is_there && p < a->problem + a->problem_count;
	     p++) {
		bool may_move = q->repairs && p->file[0] && strcmp(p->kind, "missing") != 0;

		a->problems++;
		print(q, a->id, p, may_move && !store_quarantine(&q->store, a->id, p->file, -1));
	}
	if (a->is_whole && clock_ns() - a->saved_ns >= SAVE_NS)
		save(a, q);
	return is_interrupted ? INTERRUPTED : 0;
}

/* ---- beside the images ---- */

struct auditor {
	struct audit *audit;
	struct store_query *query;
};

/* Reports an entry that is not of the store. With repairs, moves it to
 * .quarantine/strays/SPAN+SHARD+NAME, unless that is there. */
static void report_stray(const char *path, void *arg)
{
	struct store_query *q = ((struct auditor *)arg)->query;
	struct problem p = { .kind = "stray" };
	char to[sizeof p.file];
	int fd =
		q->repairs ? directory_open(q->store.quarantine_fd, STRAYS, PRIVATE_DIRECTORY) : -1;

	snprintf(p.file, sizeof p.file, "%s", path);
	memcpy(to, p.file, sizeof to);
	for (char *c = to; (c = strchr(c, '/'));)
		*c = '+';
	((struct auditor *)arg)->audit->problems++;
	print(q, "", &p,
	      fd >= 0 && !directory_rename(q->store.root_fd, p.file, fd, to, RENAME_NOREPLACE));
	if (fd >= 0)
		close(fd);
}

/* Prints the sums. status: 0, INTERRUPTED or an exit status. Returns the exit status. */
static int finish(struct audit *a, struct store_query *q, int status)
{
	if (status > 0)
		return status;
	if (status == INTERRUPTED && a->is_whole) {
		save(a, q);
	} else if (a->is_whole) {
		stray_find(q->store.root_fd, "", STRAY_AMONG_IMAGES, report_stray,
		           &(struct auditor){ a, q });
		(void)unlinkat(q->store.root_fd, STORE_CHECK_FILE, 0);
	}
	store_query_say("%s%" PRIu64 " image%s, %" PRIu64 " file%s and %" PRIu64
	                " bytes checked; %" PRIu64 " problem%s",
	                status ? "interrupted: " : "", a->images, plural(a->images), a->files,
	                plural(a->files), a->bytes, a->problems, plural(a->problems));
	if (a->unverified)
		store_query_say("%" PRIu64 " file%s without a checksum, from an earlier version",
		                a->unverified, plural(a->unverified));
	return a->problems ? EXIT_FAILURE : EXIT_SUCCESS;
}

int store_audit(struct store_query *q)
{
	static struct audit a;
	const struct sigaction action = { .sa_handler = interrupt };

	memset(&a, 0, sizeof a);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	int status = start(&a, q);

	if (!status)
		status = store_query_each(q, check_image, &a);
	return finish(&a, q, status);
}

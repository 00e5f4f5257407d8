/*
 * store_audit.c - darkroomd store check: checks each image, and tells what is wrong.
 *
 * What lies beside the images is named at the end of a check of the whole store. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "store/directory.h"
#include "store/store_verify.h"
#include "store_query.h"

#define INTERRUPTED (-1)
#define STRAYS "strays"
#define RATE (UINT64_C(32) << 20) /* bytes per second unless --rate asks for another */
#define SAVE_NS (5 * NS_PER_S)

struct audit {
	struct image_check image; /* the present one */
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
	(void)directory_write_file(q->store.root_fd, STORE_CHECK_FILE, a->image.id, ULID_LENGTH,
	                           false);
}

/* Continues where an interrupted check of the whole store ended. */
static void start(struct audit *a, struct store_query *q)
{
	char id[ULID_LENGTH + 1] = "";

	a->start_ns = a->saved_ns = clock_ns();
	a->rate = q->rate ? q->rate : RATE;
	a->is_whole = !q->word_count && !q->ids_path && !q->after[0] && !q->before[0] &&
	              q->limit == UINT64_MAX;
	if (!a->is_whole || q->restarts ||
	    directory_read_file(q->store.root_fd, STORE_CHECK_FILE, id, sizeof id) != ULID_LENGTH ||
	    !ulid_is_valid(id, ULID_LENGTH))
		return;
	memcpy(q->after, id, sizeof q->after);
	store_query_say("continuing behind %s", id);
}

/* ---- problems ---- */

static void print(const struct store_query *q, const char *id, const struct image_problem *p,
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

static int check_image(struct store_query *q, const char *id, void *arg)
{
	struct audit *a = arg;
	struct image_check *c = &a->image;
	bool is_listed = !q->word_count && !q->ids_path;
	int err = image_check(c, &q->store, id);

	if (err == -ENOENT && is_listed)
		return 0; /* removed since it was listed */
	if (err && err != -ENOENT)
		return store_query_fail(id, err);
	a->images++;
	a->problems += c->problem_count;
	for (unsigned i = 0; i < c->problem_count; i++) {
		const struct image_problem *p = &c->problem[i];
		bool may_move = q->repairs && p->file[0] && strcmp(p->kind, "missing") != 0;

		print(q, id, p, may_move && !store_quarantine(&q->store, id, p->file, -1));
	}
	a->files += c->files;
	a->bytes += c->bytes;
	a->unverified += c->unverified;
	store_query_pace(a->start_ns, a->bytes, a->rate);
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
	struct image_problem p = { .kind = "stray" };
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
	start(&a, q);
	return finish(&a, q, store_query_each(q, check_image, &a));
}

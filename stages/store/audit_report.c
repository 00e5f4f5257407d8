/* audit_report.c - prints problems, quarantines files, and keeps the progress. Main thread. */
#include "audit_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "directory.h"
#include "store_find.h"
#include "store_path.h"
#include "store_query.h"
#include "store_strays.h"

#define PROGRESS ".check"
#define PROGRESS_NEW ".check.new"
#define RATE (UINT64_C(32) << 20) /* bytes per second unless --rate asks for another */
#define SAVE_NS (5 * NS_PER_S)

/* ---- progress ---- */

static void save(struct audit_report *r, const struct store_query *q)
{
	int fd = openat(q->store.root_fd, PROGRESS_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	                PRIVATE_FILE);

	r->saved_ns = clock_ns();
	if (fd < 0)
		return; /* the next check begins earlier */
	bool is_written = write(fd, r->id, ULID_LENGTH) == ULID_LENGTH;

	close(fd);
	if (is_written)
		(void)renameat(q->store.root_fd, PROGRESS_NEW, q->store.root_fd, PROGRESS);
}

int audit_report_start(struct audit_report *r, struct store_query *q)
{
	char id[ULID_LENGTH + 1] = "";

	r->start_ns = r->saved_ns = clock_ns();
	r->rate = q->rate ? q->rate : RATE;
	if (q->token || q->is_newest_first)
		return store_query_usage("check: --token and --newest do not select images here");
	r->is_whole = !q->word_count && !q->ids_path && !q->after[0] && !q->before[0] &&
	              q->limit == UINT64_MAX;
	if (!r->is_whole || q->restarts)
		return 0;
	int fd = openat(q->store.root_fd, PROGRESS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, id, ULID_LENGTH) == ULID_LENGTH && ulid_is_valid(id, ULID_LENGTH)) {
		memcpy(q->after, id, sizeof q->after);
		fprintf(stderr, "darkroomd store: continuing behind %s\n", id);
	}
	close(fd);
	return 0;
}

/* ---- one image ---- */

void audit_report_begin(struct audit_report *r, const char *id)
{
	memcpy(r->id, id, sizeof r->id);
	r->problem_count = 0;
	r->images++;
}

void audit_report_file(struct audit_report *r, uint64_t bytes)
{
	r->files++;
	r->bytes += bytes;
	uint64_t due = r->start_ns + (uint64_t)((double)r->bytes / (double)r->rate * NS_PER_S);
	uint64_t now = clock_ns();

	if (now < due) {
		const struct timespec wait = { .tv_sec = (time_t)((due - now) / NS_PER_S),
			                       .tv_nsec = (long)((due - now) % NS_PER_S) };

		nanosleep(&wait, NULL);
	}
}

void audit_report_problem(struct audit_report *r, const char *file, const char *kind)
{
	if (r->problem_count == AUDIT_PROBLEMS_MAX)
		return;
	struct audit_problem *p = &r->problem[r->problem_count++];

	snprintf(p->file, sizeof p->file, "%s", file);
	p->kind = kind;
}

/* Moves a file of the image to <root>/.quarantine/<id>/. Returns whether that was possible. */
static bool quarantine(struct store_query *q, const char *id, const char *file)
{
	int from_fd = store_open_directory(&q->store, id);
	int to_fd = directory_open(q->store.quarantine_fd, id, PRIVATE_DIRECTORY);
	bool is_moved = from_fd >= 0 && to_fd >= 0 && renameat(from_fd, file, to_fd, file) == 0;

	if (from_fd >= 0)
		close(from_fd);
	if (to_fd >= 0)
		close(to_fd);
	return is_moved;
}

static void print(const struct store_query *q, const char *id, const struct audit_problem *p,
                  bool is_moved)
{
	char data[1024];
	struct text t;
	struct json j;

	if (!q->is_json) {
		printf("%s%s%s: %s%s\n", id, p->file[0] ? "/" : "", p->file, p->kind,
		       is_moved ? ", now in .quarantine" : "");
		return;
	}
	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	json_string(&j, "id", id);
	json_string(&j, "file", p->file);
	json_string(&j, "problem", p->kind);
	json_bool(&j, "quarantined", is_moved);
	json_object_end(&j);
	puts(data);
}

int audit_report_end(struct audit_report *r, struct store_query *q, bool counts)
{
	for (unsigned i = 0; i < r->problem_count && counts; i++) {
		const struct audit_problem *p = &r->problem[i];
		bool may_move = q->repairs && p->file[0] && strcmp(p->kind, "missing") != 0;

		r->problems++;
		print(q, r->id, p, may_move && quarantine(q, r->id, p->file));
	}
	if (r->is_whole && clock_ns() - r->saved_ns >= SAVE_NS)
		save(r, q);
	return 0;
}

int audit_report_finish(struct audit_report *r, struct store_query *q, int status)
{
	if (status > 0)
		return status;
	if (status == AUDIT_INTERRUPTED && r->is_whole) {
		save(r, q);
	} else if (r->is_whole) {
		r->problems += store_strays(q->store.root_fd);
		(void)unlinkat(q->store.root_fd, PROGRESS, 0);
	}
	fprintf(stderr,
	        "darkroomd store: %s%" PRIu64 " images, %" PRIu64 " files and %" PRIu64
	        " bytes checked; %" PRIu64 " problems\n",
	        status ? "interrupted: " : "", r->images, r->files, r->bytes, r->problems);
	if (r->unverified)
		fprintf(stderr,
		        "darkroomd store: %" PRIu64
		        " files have no checksum: an earlier version stored them\n",
		        r->unverified);
	return r->problems ? EXIT_FAILURE : EXIT_SUCCESS;
}

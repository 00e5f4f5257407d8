/*
 * store_remake.c - darkroomd store plan and remake: what each image lacks of a configuration.
 *
 * Plan prints the sums. Remake adds images to the daemon's queue, some at a time, and waits until
 * they have left it. There is no other state: an image that is remade lacks nothing. So the command
 * continues when it is run again. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_files.h"
#include "store/directory.h"
#include "store/remake_queue.h"
#include "store/store_find.h"
#include "store/stored_image.h"
#include "store_query.h"

#define ANSWER_MAX ((size_t)64 << 10)
/* 2.5 GHz Xeon, the shipped variants; until a daemon has measured it */
#define NS_PER_KILOPIXEL 10000
#define AT_ONCE 64 /* in the queue: more than the daemon works on */
#define LOOK_NS (10 * NS_PER_MS)
#define CALL_NS NS_PER_S

struct plan {
	struct conf conf; /* of the running daemon, or of the command's file */
	bool has_daemon;  /* a daemon serves the store */
	/* of an original, measured by the daemon or on another machine */
	uint64_t ns_per_kilopixel;
	struct remake_entry entry; /* the variants that are asked for */
	struct conf_files files;   /* of conf */
	uint32_t wanted;           /* those that are asked for, one bit for each */
	/* sums over the images */
	uint64_t missing[CONF_FILE_MAX], differs[CONF_FILE_MAX], lost[CONF_FILE_MAX];
	uint64_t images, remade, without_original, damaged, bytes, pixels;
	uint64_t absent; /* of --ids */
	char data[STORED_IMAGE_MAX + 1];
};

enum state {
	COMPLETE = 1, /* it lacks nothing */
	POSSIBLE,
	IMPOSSIBLE, /* it has no original */
	DAMAGED,    /* its image.json is not what the daemon wrote */
	ABSENT      /* there is no such image */
};

/* ---- the configuration ---- */

/* Reads the text of a configuration. Returns 0 or -errno. */
static int read_conf(struct conf *conf, const struct text *ini)
{
	int fd = memfd_create("configuration", MFD_CLOEXEC);
	char path[32];
	struct text errors;

	if (fd < 0)
		return -errno;
	text_init_growable(&errors, ANSWER_MAX);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int err = write(fd, ini->data, ini->length) == (ssize_t)ini->length ? 0 : -EIO;

	if (!err)
		err = conf_load(conf, NULL, path, NULL, 0, &errors);
	text_fini(&errors);
	close(fd);
	return err;
}

/* Takes the configuration and the costs of the running daemon. Without one the file's is used. */
static int ask_daemon(struct plan *p, struct store_query *q)
{
	struct text answer;
	uint64_t cost;
	int status = 0;

	text_init_growable(&answer, ANSWER_MAX);
	p->has_daemon = q->ask(&q->conf, "dump", &answer) == 0;
	if (p->has_daemon && read_conf(&p->conf, &answer))
		status = store_query_fail("cannot read the configuration of the running daemon",
		                          -EINVAL);
	answer.length = 0;
	if (p->has_daemon && q->ask(&q->conf, "remake", &answer) == 0 &&
	    json_reader_check(answer.data, answer.length) &&
	    json_reader_uint(json_reader_member(answer.data, "ns_per_kilopixel"), &cost) && cost)
		p->ns_per_kilopixel = cost;
	text_fini(&answer);
	return status;
}

/* The words are names of variants, or of one of their files. They are no ids for
 * store_query_each(). */
static int read_variants(struct plan *p, struct store_query *q)
{
	struct text names;

	text_init(&names, p->entry.names, sizeof p->entry.names);
	for (size_t i = 0; i < q->word_count; i++) {
		if (!conf_files_have_label(&p->conf, q->words[i]))
			return store_query_usage("%s: expected a variant of the configuration, or "
			                         "one of its files such as medium.avif",
			                         q->words[i]);
		text_printf(&names, "%s%s", i ? " " : "", q->words[i]);
	}
	q->word_count = 0;
	p->entry.only_missing = q->only_missing;
	conf_files_list(&p->files, &p->conf);
	p->wanted = remake_entry_wanted(&p->entry, &p->conf);
	return names.overflowed ? store_query_usage("too many variants") : 0;
}

/* Reads the variants from the words, and asks the daemon for its configuration. Returns 0 or the
 * exit status. */
static int open_plan(struct plan *p, struct store_query *q)
{
	*p = (struct plan){ .conf = q->conf, .ns_per_kilopixel = NS_PER_KILOPIXEL };
	int status = ask_daemon(p, q);

	return status ? status : read_variants(p, q);
}

/* ---- images ---- */

/* Looks at an image. Sets *lack for all but the last two states. */
static enum state look(struct plan *p, struct store_query *q, const char *id,
                       struct stored_lack *lack)
{
	int err = -EAGAIN;
	bool is_there, is_outdated = true;

	for (unsigned i = 0; i < QUERY_ATTEMPTS_MAX && is_outdated; i++) {
		int fd = store_open_directory(&q->store, id);

		if (fd < 0)
			return fd == -ENOENT ? ABSENT : DAMAGED;
		int length = directory_read_file(fd, STORED_IMAGE, p->data, sizeof p->data);

		err = length < 0 ? length
		                 : stored_lack_find(lack, &p->conf, fd, p->data, (size_t)length);
		is_outdated = err && store_has_moved(&q->store, id, fd, &is_there);
		close(fd);
	}
	if (err)
		return DAMAGED;
	lack->missing &= p->wanted;
	lack->differs &= p->entry.only_missing ? 0 : p->wanted;
	if (!(lack->missing | lack->differs))
		return COMPLETE;
	return lack->has_original ? POSSIBLE : IMPOSSIBLE;
}

static int add(struct store_query *q, const char *id, void *arg)
{
	struct plan *p = arg;
	struct stored_lack lack;
	enum state state = look(p, q, id, &lack);

	p->images += state != ABSENT;
	if (state == ABSENT && q->ids_path) {
		store_query_say("%s: does not exist", id);
		p->absent++;
	}
	if (state == DAMAGED) {
		store_query_say("%s: image.json is damaged", id);
		p->damaged++;
	}
	if (state == ABSENT || state == DAMAGED || state == COMPLETE)
		return 0;
	for (unsigned i = 0; i < p->files.count; i++) {
		bool is_missing = lack.missing >> i & 1, differs = lack.differs >> i & 1;

		p->missing[i] += is_missing;
		p->differs[i] += differs;
		p->lost[i] += (is_missing || differs) && state == IMPOSSIBLE;
	}
	if (state == IMPOSSIBLE) {
		p->without_original++;
		return 0;
	}
	p->remade++;
	p->bytes += lack.original_bytes;
	p->pixels += lack.pixels;
	return 0;
}

/* ---- plan ---- */

static void print_total(const struct plan *p, const struct store_query *q)
{
	/* An estimate. */
	double cpu_s = (double)p->pixels / 1000 * (double)p->ns_per_kilopixel / NS_PER_S;

	if (q->is_json) {
		printf("{\"total\":\"all\",\"images\":%" PRIu64 ",\"remade\":%" PRIu64
		       ",\"without_original\":%" PRIu64 ",\"original_bytes\":%" PRIu64
		       ",\"pixels\":%" PRIu64 ",\"estimated_cpu_s\":%.3f}\n",
		       p->images, p->remade, p->without_original, p->bytes, p->pixels, cpu_s);
		return;
	}
	printf("%" PRIu64 " of %" PRIu64 " image%s to be remade: %" PRIu64 " MB and %" PRIu64
	       " megapixels of originals, about %.0f s of CPU time (an estimate)\n",
	       p->remade, p->images, plural(p->images), p->bytes / 1000000, p->pixels / 1000000,
	       cpu_s);
	if (p->without_original)
		printf("%" PRIu64 " image%s without an original, which cannot be remade\n",
		       p->without_original, plural(p->without_original));
}

int store_plan(struct store_query *q)
{
	static struct plan p;
	int status = open_plan(&p, q);

	if (!status)
		status = store_query_each(q, add, &p);
	if (status)
		return status;
	if (!q->is_json)
		printf("%-24s  %10s  %14s  %16s\n", "VARIANT", "MISSING", "OTHER SETTINGS",
		       "WITHOUT ORIGINAL");
	for (unsigned i = 0; i < p.files.count; i++)
		if (p.wanted >> i & 1) /* names of variants need no escapes */
			printf(q->is_json ? "{\"variant\":\"%s\",\"missing\":%" PRIu64
			                    ",\"other_settings\":%" PRIu64
			                    ",\"without_original\":%" PRIu64 "}\n"
			                  : "%-24s  %10" PRIu64 "  %14" PRIu64 "  %16" PRIu64 "\n",
			       p.files.file[i].label, p.missing[i], p.differs[i], p.lost[i]);
	print_total(&p, q);
	return p.damaged || p.absent ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- remake ---- */

struct remaking {
	struct plan plan;
	char waiting[AT_ONCE][ULID_LENGTH + 1];
	unsigned waiting_count;
	uint64_t made, gone, failed, called_ns;
	struct store_progress progress;
};

/* Wakes the daemon. Returns 0 or the exit status. */
static int call(struct remaking *r, struct store_query *q)
{
	struct text answer = TEXT_LOCAL(1024);

	r->called_ns = clock_ns();
	if (q->ask(&q->conf, "remake", &answer) == 0)
		return 0;
	store_query_say(
		"the daemon does not answer: start it; remake continues when it is run again");
	return EXIT_FAILURE;
}

/* The image has left the queue. */
static void settle(struct remaking *r, struct store_query *q, const char *id)
{
	struct stored_lack lack;

	r->progress.ended++;
	switch (look(&r->plan, q, id, &lack)) {
	case COMPLETE:
		r->made++;
		return;
	case ABSENT:
		r->gone++;
		return;
	default:
		r->failed++;
		store_query_say("%s: not remade; the daemon's log has the cause", id);
	}
}

static void settle_all(struct remaking *r, struct store_query *q)
{
	unsigned left = 0;

	for (unsigned i = 0; i < r->waiting_count; i++)
		if (remake_queue_has(&q->store, r->waiting[i]))
			memmove(r->waiting[left++], r->waiting[i], sizeof r->waiting[i]);
		else
			settle(r, q, r->waiting[i]);
	r->waiting_count = left;
}

/* Waits until at most max images are in the queue. Returns 0 or the exit status. */
static int await(struct remaking *r, struct store_query *q, unsigned max)
{
	static const struct timespec interval = { .tv_nsec = LOOK_NS };
	int status = 0;

	for (;;) {
		if (r->waiting_count > max)
			settle_all(r, q);
		store_progress_show(&r->progress, false);
		if (r->waiting_count <= max || status)
			return status;
		if (clock_ns() - r->called_ns >= CALL_NS)
			status = call(r, q);
		nanosleep(&interval, NULL);
	}
}

static int remake_one(struct store_query *q, const char *id, void *arg)
{
	struct remaking *r = arg;
	struct stored_lack lack;

	if (look(&r->plan, q, id, &lack) != POSSIBLE)
		return 0;
	if (q->is_dry) {
		puts(id);
		return 0;
	}
	int status = await(r, q, AT_ONCE - 1);

	if (status)
		return status;
	int err = remake_queue_put(&q->store, id, &r->plan.entry);

	if (err)
		return store_query_fail(id, err);
	memcpy(r->waiting[r->waiting_count++], id, sizeof r->waiting[0]);
	return call(r, q);
}

int store_remake(struct store_query *q)
{
	static struct remaking r;

	memset(&r, 0, sizeof r);
	if (q->ids_path && strcmp(q->ids_path, "-") == 0)
		return store_query_usage("--ids -: expected a file, which can be read twice");
	int status = open_plan(&r.plan, q);

	if (status)
		return status;
	if (q->is_dry)
		return store_query_each(q, remake_one, &r);
	status = call(&r, q);
	if (!status)
		status = store_query_each(q, add, &r.plan);
	store_progress_start(&r.progress, r.plan.remade);
	if (!status)
		status = store_query_each(q, remake_one, &r);
	if (!status)
		status = await(&r, q, 0);
	store_progress_show(&r.progress, true);
	store_query_say("%" PRIu64 " image%s remade, %" PRIu64 " not, %" PRIu64
	                " removed meanwhile; %" PRIu64 " without an original",
	                r.made, plural(r.made), r.failed, r.gone, r.plan.without_original);
	return status                                        ? status
	       : r.failed || r.plan.damaged || r.plan.absent ? EXIT_FAILURE
	                                                     : EXIT_SUCCESS;
}

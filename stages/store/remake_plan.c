/* remake_plan.c - looks at each image, and adds up what it lacks. Main thread. */
#include "remake_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "store_commands.h"
#include "store_find.h"
#include "store_query.h"

#define ANSWER_MAX ((size_t)64 << 10)
/* 2.5 GHz Xeon, the shipped variants; until a daemon has measured it */
#define NS_PER_KILOPIXEL 10000

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
static int ask_daemon(struct remake_plan *p, struct store_query *q)
{
	struct text answer;
	uint64_t cost;
	int status = 0;

	text_init_growable(&answer, ANSWER_MAX);
	p->has_daemon = q->ask(q->conf, "dump", &answer) == 0;
	if (p->has_daemon && read_conf(&p->conf, &answer))
		status = store_query_fail("cannot read the configuration of the running daemon",
		                          -EINVAL);
	answer.length = 0;
	if (p->has_daemon && q->ask(q->conf, "remake", &answer) == 0 &&
	    json_reader_check(answer.data, answer.length) &&
	    json_reader_uint(json_reader_member(answer.data, "ns_per_kilopixel"), &cost) && cost)
		p->ns_per_kilopixel = cost;
	text_fini(&answer);
	return status;
}

/* The words are names of variants. They are no ids for store_query_each(). */
static int read_variants(struct remake_plan *p, struct store_query *q)
{
	struct text names;

	text_init(&names, p->entry.names, sizeof p->entry.names);
	for (size_t i = 0; i < q->word_count; i++) {
		if (!conf_variant_find(&p->conf, q->words[i]))
			return store_query_usage("%s: expected a variant of the configuration",
			                         q->words[i]);
		text_printf(&names, "%s%s", i ? " " : "", q->words[i]);
	}
	q->word_count = 0;
	p->entry.only_missing = q->only_missing;
	for (unsigned i = 0; i < p->conf.variant_count; i++)
		if (remake_entry_wants(&p->entry, p->conf.variant[i].name))
			p->wanted |= UINT32_C(1) << i;
	return names.overflowed ? store_query_usage("too many variants") : 0;
}

int remake_plan_open(struct remake_plan *p, struct store_query *q)
{
	*p = (struct remake_plan){ .conf = *q->conf, .ns_per_kilopixel = NS_PER_KILOPIXEL };
	if (q->token)
		return store_query_usage("--token does not select images here");
	int status = ask_daemon(p, q);

	return status ? status : read_variants(p, q);
}

/* ---- images ---- */

static int read_document(struct remake_plan *p, int directory_fd)
{
	int fd = openat(directory_fd, STORED_IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int length = stored_image_read(fd, p->data);

	close(fd);
	return length;
}

/* Returns whether the image was removed, or replaced by a remake, since its directory was opened.
 */
static bool has_changed(struct store_query *q, const char *id, int directory_fd)
{
	struct stat then, now;
	int fd = store_open_directory(&q->store, id);
	bool is_same = fd >= 0 && !fstat(directory_fd, &then) && !fstat(fd, &now) &&
	               then.st_ino == now.st_ino && then.st_dev == now.st_dev;

	if (fd >= 0)
		close(fd);
	return fd == -ENOENT || (fd >= 0 && !is_same);
}

enum remake_state remake_plan_look(struct remake_plan *p, struct store_query *q, const char *id,
                                   struct stored_lack *lack)
{
	int fd = store_open_directory(&q->store, id);

	if (fd < 0)
		return fd == -ENOENT ? REMAKE_ABSENT : REMAKE_DAMAGED;
	int length = read_document(p, fd);
	int err =
		length < 0 ? length : stored_lack_find(lack, &p->conf, fd, p->data, (size_t)length);
	bool is_outdated = err && has_changed(q, id, fd);

	close(fd);
	if (is_outdated)
		return remake_plan_look(p, q, id, lack);
	if (err)
		return REMAKE_DAMAGED;
	lack->missing &= p->wanted;
	lack->differs &= p->entry.only_missing ? 0 : p->wanted;
	if (!(lack->missing | lack->differs))
		return REMAKE_COMPLETE;
	return lack->has_original ? REMAKE_POSSIBLE : REMAKE_IMPOSSIBLE;
}

static int add(struct store_query *q, const char *id, void *arg)
{
	struct remake_plan *p = arg;
	struct stored_lack lack;
	enum remake_state state = remake_plan_look(p, q, id, &lack);

	p->images += state != REMAKE_ABSENT;
	if (state == REMAKE_ABSENT && q->ids_path) {
		fprintf(stderr, "darkroomd store: %s: does not exist\n", id);
		p->absent++;
	}
	if (state == REMAKE_DAMAGED) {
		fprintf(stderr, "darkroomd store: %s: image.json is damaged\n", id);
		p->damaged++;
	}
	if (state == REMAKE_ABSENT || state == REMAKE_DAMAGED || state == REMAKE_COMPLETE)
		return 0;
	for (unsigned i = 0; i < p->conf.variant_count; i++) {
		bool is_missing = lack.missing >> i & 1, differs = lack.differs >> i & 1;

		p->missing[i] += is_missing;
		p->differs[i] += differs;
		p->lost[i] += (is_missing || differs) && state == REMAKE_IMPOSSIBLE;
	}
	if (state == REMAKE_IMPOSSIBLE) {
		p->without_original++;
		return 0;
	}
	p->remade++;
	p->bytes += lack.original_bytes;
	p->pixels += lack.pixels;
	return 0;
}

int remake_plan_sum(struct remake_plan *p, struct store_query *q)
{
	return store_query_each(q, add, p);
}

double remake_plan_seconds(const struct remake_plan *p)
{
	return (double)p->pixels / 1000 * (double)p->ns_per_kilopixel / 1e9;
}

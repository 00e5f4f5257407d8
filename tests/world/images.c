/* images.c - contents that follow from an id, and comparisons of the store with them. */
#include "images.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/pool.h"
#include "disk.h"

struct world world;

uint64_t draw(uint64_t below)
{
	return random_next(&world.random) % below;
}

/* ---- contents ---- */

const char *const tokens[TOKENS] = { "", "club", "site" };

void make_content(struct version *v, const struct image *image, unsigned version)
{
	struct content *c = &v->content;

	for (unsigned f = 0; f < 2; f++) {
		uint64_t number = (uint64_t)(unsigned char)image->id[ULID_LENGTH - 1] << 8 |
		                  (unsigned char)image->id[ULID_LENGTH - 2];
		struct random random = { number << 8 | (f ? version : 0) << 1 | f };

		c->data[f] = v->memory + (size_t)f * DATA_MAX;
		c->size[f] = 1 + random_next(&random) % DATA_MAX;
		for (size_t i = 0; i < c->size[f]; i++)
			c->data[f][i] = (char)random_next(&random);
		checksum_of(c->data[f], c->size[f], c->sum[f]);
	}
	c->data[2] = v->memory + 2 * (size_t)DATA_MAX;
	content_write_json(c, image->id, image->token);
}

uint64_t bytes_of(const struct image *image, unsigned version)
{
	static struct version v;

	make_content(&v, image, version);
	return v.content.size[0] + v.content.size[1];
}

struct bytes {
	char data[DATA_MAX + 512];
	ssize_t size;
};

/* Reads an open file, and closes it. */
static const struct bytes *read_bytes(int fd)
{
	static struct bytes b;

	b.size = pread(fd, b.data, sizeof b.data, 0);
	close(fd);
	return &b;
}

static bool is_equal(const struct bytes *b, const struct content *c, unsigned file)
{
	return b->size == (ssize_t)c->size[file] &&
	       memcmp(b->data, c->data[file], c->size[file]) == 0;
}

/* Returns the version of a file that was found, and closes it. The first file has one version. */
static unsigned version_of_file(const struct image *image, unsigned file,
                                const struct store_found *found)
{
	static struct version v;
	const struct bytes *b = read_bytes(found->fd);
	unsigned version = image->version;

	make_content(&v, image, version);
	while (version && !is_equal(b, &v.content, file))
		make_content(&v, image, --version);
	if (!version)
		FAIL("%s of %s has wrong bytes", content_names[file], image->id);
	if (found->size != v.content.size[file])
		FAIL("%s of %s has a wrong size", content_names[file], image->id);
	if (image->has_tags &&
	    (strcmp(found->tag, v.content.sum[file]) != 0 || found->expires != image->expires))
		FAIL("%s of %s has the tag %s, and ends at %" PRIu64, content_names[file],
		     image->id, found->tag, found->expires);
	return version;
}

unsigned look_at(const struct image *image)
{
	unsigned there = 0, version[CONTENT_FILES] = { 0 };
	struct store_found found;

	for (unsigned f = 0; f < CONTENT_FILES; f++) {
		store_find(&world.store, image->id, content_names[f], &found);
		if (found.fd < 0 && found.fd != -ENOENT)
			FAIL("%s of %s cannot be opened: %s", content_names[f], image->id,
			     strerror(-found.fd));
		if (found.fd < 0 && found.is_spooled != store_is_spooled(&world.store, image->id))
			FAIL("a GET does not know whether %s is spooled", image->id);
		if (found.fd < 0)
			continue;
		version[f] = version_of_file(image, f, &found);
		there++;
	}
	if (there && there < CONTENT_FILES)
		FAIL("%s has %u of %d files", image->id, there, CONTENT_FILES);
	if (version[1] != version[2])
		FAIL("%s has files of the versions %u and %u", image->id, version[1], version[2]);
	return version[1];
}

/* ---- checks ---- */

unsigned certain(unsigned states)
{
	return states & GONE || states & (states - 1) ? 0 : states;
}

/* is_durable: what is there is on the disk, and the rest is not. Returns whether it is there. */
static bool check_image(struct image *image, bool is_durable)
{
	unsigned version = look_at(image), state = version ? 1U << version : GONE;

	if (!(image->states & state))
		FAIL(version ? "%s is there, version %u, but must not be"
		             : "%s is gone, but was acknowledged",
		     image->id, version);
	if (is_durable)
		image->states = state;
	return version;
}

struct spool_names names_of(const struct image *image)
{
	struct spool_names n = { .file = "x.jpg", .expires = image->expires };

	snprintf(n.token, sizeof n.token, "%s", image->token);
	if (image->expires % 2)
		snprintf(n.focus, sizeof n.focus, "10%%:20%%");
	if (image->expires % 3)
		n.metadata = (struct image_texts){ "title\0lake", sizeof "title\0lake" };
	return n;
}

static void check_note(const struct image *image, const struct spool_names *found)
{
	struct spool_names n = names_of(image);

	if (strcmp(n.file, found->file) != 0 || strcmp(n.token, found->token) != 0 ||
	    strcmp(n.focus, found->focus) != 0 || n.expires != found->expires ||
	    n.metadata.length != found->metadata.length ||
	    memcmp(n.metadata.data, found->metadata.data, n.metadata.length) != 0)
		FAIL("the note of %s has other texts", image->id);
	int attempts = spool_attempts(&world.store, image->id);

	if (image->attempts != ATTEMPTS_UNKNOWN && attempts != image->attempts)
		FAIL("the note of %s has %d attempts instead of %d", image->id, attempts,
		     image->attempts);
}

/* Returns whether the original is there. */
static bool check_spooled(struct image *image, bool is_durable)
{
	static struct version v;
	struct spool_names spooled;
	struct stat st;
	uint64_t size;
	int fd = spool_open(&world.store, image->id, &size, &spooled);
	unsigned state = fd == -ENOENT ? GONE : 2;

	if (store_is_spooled(&world.store, image->id) != (fd != -ENOENT))
		FAIL("it is not clear whether %s is spooled", image->id);
	/* One that may be gone may also lack a file: recovery looks for the image first. */
	if (fd == -EINVAL && image->spooled & GONE) {
		image->is_unspooled &= !is_durable;
		return false;
	}
	if (fd < 0 && fd != -ENOENT)
		FAIL("the original of %s cannot be read: %s", image->id, strerror(-fd));
	if (fd >= 0 && (fstat(fd, &st) || st.st_mode & 077))
		FAIL("others can read the original of %s", image->id);
	make_content(&v, image, 1);
	if (fd >= 0 && (size != v.content.size[0] || !is_equal(read_bytes(fd), &v.content, 0)))
		FAIL("the original of %s has wrong bytes", image->id);
	if (fd >= 0)
		check_note(image, &spooled);
	if (!(image->spooled & state))
		FAIL(state == GONE ? "the original of %s is gone, but was acknowledged"
		                   : "the original of %s is there, but must not be",
		     image->id);
	if (is_durable) {
		image->spooled = state;
		image->is_unspooled = false;
	}
	return state != GONE;
}

static void check_key(struct key *k)
{
	struct key_record r = k->record;
	int err = key_record_read(&world.store, &r);
	unsigned state = err ? GONE : r.is_settled ? KEY_SETTLED : KEY_OPEN;

	if (!err &&
	    (r.count != 1 || strcmp(r.id[0], k->image->id) != 0 || r.created != k->record.created ||
	     memcmp(r.fingerprint, k->record.fingerprint, sizeof r.fingerprint) != 0 ||
	     r.failed != (r.is_settled ? k->record.failed : 0)))
		FAIL("the record of %s has not what was written", k->image->id);
	if (!err)
		pool_put(r.id);
	if (!(k->states & state))
		FAIL("the record of %s is %s, which must not be", k->image->id,
		     state == GONE       ? "gone"
		     : state == KEY_OPEN ? "open"
		                         : "settled");
	if (disk.has_lost_power)
		k->states = state;
}

void check_all(bool is_start)
{
	unsigned open = disk_open_count();

	disk.is_quiet = true;
	for (unsigned i = 0; i < world.images; i++) {
		struct image *image = &world.image[i];
		bool is_stored = check_image(image, is_start),
		     is_spooled = check_spooled(image, is_start);

		if (image->is_acknowledged && !is_stored && !is_spooled)
			FAIL("%s is lost", image->id);
	}
	for (unsigned i = 0; i < world.keys; i++)
		check_key(&world.key[i]);
	if (disk_open_count() != open)
		FAIL("%u descriptors are open instead of %u", disk_open_count(), open);
	disk.has_lost_power = false;
	disk.is_quiet = false;
}

/* ---- figures, and the list ---- */

void count_some(void)
{
	disk.is_quiet = true;
	usage_check_recount(&world.store.usage, &world.store);
	(void)usage_count(&world.store.usage, &world.store, 1 + (unsigned)draw(4));
	disk.is_quiet = false;
}

/* Compares the list, some images at a time, with those that are there. */
static void check_list(const bool has[IMAGES_MAX])
{
	char id[LIST_MAX][ULID_LENGTH + 1];
	struct store_page page = { .id = id, .max = LIST_MAX, .is_newest_first = world.steps % 2 };
	unsigned at = 0;

	for (unsigned n = 0; n <= world.images; n++) {
		unsigned i = page.is_newest_first ? world.images - 1 - n : n;

		if (n < world.images && !has[i])
			continue;
		if (at == page.count) {
			at = 0;
			store_page_advance(&page);
			if (world.storage.class->list(&world.storage, &page))
				FAIL("the images cannot be listed");
		}
		if (n == world.images)
			break;
		if (at == page.count || strcmp(id[at], world.image[i].id) != 0)
			FAIL("%s is not at its place in the list", world.image[i].id);
		at++;
	}
	if (at < page.count)
		FAIL("%s is in the list, but not there", id[at]);
}

static void note_token(const struct usage_token *token, void *arg)
{
	struct usage_sum *sum = arg;

	for (unsigned t = 1; t < TOKENS; t++)
		if (strcmp(token->name, tokens[t]) == 0)
			sum[t] = token->stored;
}

static void compare_figures(const char *of, const struct usage_sum *is,
                            const struct usage_sum *expected)
{
	if (is->images != expected->images || is->bytes != expected->bytes)
		FAIL("the figures %s are %" PRIu64 " images, %" PRIu64 " bytes instead of %" PRIu64
		     ", %" PRIu64,
		     of, is->images, is->bytes, expected->images, expected->bytes);
}

void check_usage(void)
{
	struct usage_sum all = { 0, 0 }, of[TOKENS] = { 0 }, noted[TOKENS] = { 0 };
	bool has[IMAGES_MAX] = { false };

	disk.is_quiet = true;
	usage_check_recount(&world.store.usage, &world.store);
	while (usage_count(&world.store.usage, &world.store, IMAGES_MAX) == 0)
		;
	for (unsigned i = 0; i < world.images; i++) {
		const struct image *image = &world.image[i];
		unsigned version = look_at(image);
		uint64_t bytes = version ? bytes_of(image, version) : 0;

		has[i] = version;
		all.images += has[i];
		all.bytes += bytes;
		for (unsigned t = 1; t < TOKENS; t++)
			if (image->token == tokens[t]) {
				of[t].images += has[i];
				of[t].bytes += bytes;
			}
	}
	check_list(has);
	disk.is_quiet = false;
	struct usage_total total = usage_total(&world.store.usage);

	if (!total.is_complete)
		FAIL("the images are not counted");
	compare_figures("of all", &total.all, &all);
	usage_each(&world.store.usage, note_token, noted);
	for (unsigned t = 1; t < TOKENS; t++)
		compare_figures(tokens[t], &noted[t], &of[t]);
}

/* key_record.c - small files whose names are hashes of keys. Any thread; calls block. */
#include "key_record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/base16.h>

#include "base/pool.h"
#include "base/text.h"
#include "directory.h"
#include "store.h"
#include "store_path.h"

#define SETTLED 's' /* the first byte of the file */
#define OPEN 'o'
#define HASH_LENGTH BASE16_ENCODE_LENGTH(KEY_RECORD_HASH_SIZE)
/* "s CREATED FINGERPRINT FAILED\n" with numbers of 20 digits, and then a line for each id */
#define HEAD_LENGTH (2 + 20 + 1 + HASH_LENGTH + 1 + 20 + 1)
#define LINE_LENGTH (ULID_LENGTH + 1)

static_assert(HEAD_LENGTH + KEY_RECORD_IDS_MAX * LINE_LENGTH < KEY_RECORD_TEXT_MAX,
              "no record is longer");

static void to_hex(char hex[HASH_LENGTH + 1], const uint8_t hash[KEY_RECORD_HASH_SIZE])
{
	base16_encode_update(hex, KEY_RECORD_HASH_SIZE, hash);
	hex[HASH_LENGTH] = '\0';
}

void key_record_name(const struct key_record *r, char name[2 * KEY_RECORD_HASH_SIZE + 1])
{
	to_hex(name, r->name);
}

static void shard_path(char path[STORE_PATH_MAX], unsigned shard)
{
	snprintf(path, STORE_PATH_MAX, STORE_KEYS_DIRECTORY "/%02x", shard & 0xff);
}

static void key_path(char path[STORE_PATH_MAX], const struct key_record *r)
{
	char name[HASH_LENGTH + 1];

	to_hex(name, r->name);
	snprintf(path, STORE_PATH_MAX, STORE_KEYS_DIRECTORY "/%.2s/%s", name, name + 2);
}

/* ---- writing ---- */

int key_record_format(const struct key_record *r, struct text *to)
{
	char fingerprint[HASH_LENGTH + 1];

	to_hex(fingerprint, r->fingerprint);
	text_init_growable(to, KEY_RECORD_TEXT_MAX);
	text_printf(to, "%c %020" PRIu64 " %s %020" PRIu64 "\n", r->is_settled ? SETTLED : OPEN,
	            r->created, fingerprint, r->failed);
	for (unsigned i = 0; i < r->count; i++) {
		text_puts(to, r->id[i]);
		text_put(to, "\n", 1);
	}
	return to->overflowed ? -ENOMEM : 0;
}

/* Changes the first byte of the written record. */
static int settle(const struct store *s, const char *path)
{
	const char settled = SETTLED;
	int fd = directory_open_file(s->root_fd, path, O_WRONLY);

	if (fd < 0)
		return fd;
	int err = pwrite(fd, &settled, 1, 0) == 1 ? 0 : -errno;

	close(fd);
	return err;
}

int key_record_write(struct store *s, const struct key_record *r)
{
	char path[STORE_PATH_MAX], shard[STORE_PATH_MAX];
	struct text text;

	key_path(path, r);
	if (r->is_settled && !r->failed)
		return settle(s, path);
	int err = key_record_format(r, &text);

	if (!err) /* one that replaces another may not be torn: neither would be left */
		err = directory_write_file(s->root_fd, path, text.data, text.length, r->is_settled);
	if (err == -ENOENT) {
		shard_path(shard, r->name[0]);
		err = directory_make_all(s->root_fd, shard, PRIVATE_DIRECTORY);
		if (!err)
			err = directory_write_file(s->root_fd, path, text.data, text.length, false);
	}
	text_fini(&text);
	return err;
}

/* ---- reading ---- */

/* Reads the first line. Returns false if it is not as key_record_format() writes it. */
static bool read_head(struct key_record *r, const char *text)
{
	char mark = '\0', fingerprint[HASH_LENGTH + 1] = "";
	size_t size = KEY_RECORD_HASH_SIZE;
	struct base16_decode_ctx context;
	int length = 0;

	base16_decode_init(&context);
	sscanf(text, "%c %20" SCNu64 " %64[0-9a-f] %20" SCNu64 "%n", &mark, &r->created,
	       fingerprint, &r->failed, &length);
	r->is_settled = mark == SETTLED;
	return length == HEAD_LENGTH - 1 && text[length] == '\n' &&
	       (mark == SETTLED || mark == OPEN) && strlen(fingerprint) == HASH_LENGTH &&
	       base16_decode_update(&context, &size, r->fingerprint, HASH_LENGTH, fingerprint);
}

int key_record_parse(struct key_record *r, const char *text, size_t length)
{
	size_t rest = length - HEAD_LENGTH; /* unless it is shorter */

	r->count = 0;
	r->id = NULL;
	if (length < HEAD_LENGTH || rest % LINE_LENGTH || rest > KEY_RECORD_IDS_MAX * LINE_LENGTH ||
	    !read_head(r, text))
		return -ENOENT;
	if (!(r->id = pool_get(rest)))
		return -ENOMEM;
	memcpy(r->id, text + HEAD_LENGTH, rest);
	r->count = (unsigned)(rest / LINE_LENGTH);
	unsigned good = 0; /* ids become parts of paths */

	for (; good < r->count && r->id[good][ULID_LENGTH] == '\n' &&
	       ulid_is_valid(r->id[good], ULID_LENGTH);
	     good++)
		r->id[good][ULID_LENGTH] = '\0';
	if (good == r->count)
		return 0;
	pool_put(r->id);
	r->id = NULL;
	r->count = 0;
	return -ENOENT;
}

int key_record_read(struct store *s, struct key_record *r)
{
	char path[STORE_PATH_MAX], *text = pool_get_unfilled(KEY_RECORD_TEXT_MAX);
	int err = -ENOENT;

	r->count = 0;
	key_path(path, r);
	int length =
		text ? directory_read_file(s->root_fd, path, text, KEY_RECORD_TEXT_MAX) : -ENOMEM;

	if (length >= 0)
		err = key_record_parse(r, text, (size_t)length);
	pool_put(text);
	return err ? -ENOENT : 0;
}

/* ---- removing ---- */

int key_record_remove(struct store *s, const struct key_record *r)
{
	char path[STORE_PATH_MAX];

	key_path(path, r);
	int err = directory_unlink(s->root_fd, path, 0);

	return err == -ENOENT ? 0 : err;
}

static bool is_of_record(const char *name)
{
	const size_t n = HASH_LENGTH - 2; /* the directory has the first two */

	return strspn(name, "0123456789abcdef") == n && (!name[n] || strcmp(name + n, ".new") == 0);
}

void key_record_sweep(struct store *s, unsigned shard, uint64_t before)
{
	char path[STORE_PATH_MAX];
	const char *name;
	struct stat st;

	shard_path(path, shard);
	DIR *dir = directory_list(s->root_fd, path);

	while (dir && (name = directory_next(dir)))
		if (is_of_record(name) &&
		    fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (uint64_t)st.st_mtime < before)
			(void)unlinkat(dirfd(dir), name, 0);
	if (dir)
		closedir(dir);
}

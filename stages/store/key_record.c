/* key_record.c - small files whose names are hashes of keys. Any thread; calls block. */
#include "key_record.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/base16.h>

#include "base/pool.h"
#include "store.h"
#include "store_path.h"

#define TEMPORARY ".new"
#define SETTLED 's' /* the first byte of the file */
#define OPEN 'o'
#define NUMBER_LENGTH 20
#define FINGERPRINT_LENGTH BASE16_ENCODE_LENGTH(KEY_RECORD_HASH_SIZE)
/* "s CREATED FINGERPRINT FAILED\n", and then a line for each id */
#define HEAD_LENGTH (2 + NUMBER_LENGTH + 1 + FINGERPRINT_LENGTH + 1 + NUMBER_LENGTH + 1)
#define LINE_LENGTH (ULID_LENGTH + 1)

static_assert(FINGERPRINT_LENGTH == KEY_RECORD_NAME_LENGTH, "both are hashes");
static_assert(HEAD_LENGTH + KEY_RECORD_IDS_MAX * LINE_LENGTH < KEY_RECORD_TEXT_MAX,
              "no record is longer");

static void shard_path(char path[STORE_PATH_MAX], unsigned shard)
{
	snprintf(path, STORE_PATH_MAX, STORE_KEYS_DIRECTORY "/%02x", shard & 0xff);
}

void key_record_name(char name[KEY_RECORD_NAME_LENGTH], const uint8_t key[KEY_RECORD_HASH_SIZE])
{
	base16_encode_update(name, KEY_RECORD_HASH_SIZE, key);
}

static void key_path(char path[STORE_PATH_MAX], const uint8_t key[KEY_RECORD_HASH_SIZE],
                     const char *suffix)
{
	char name[KEY_RECORD_NAME_LENGTH];

	key_record_name(name, key);
	snprintf(path, STORE_PATH_MAX, STORE_KEYS_DIRECTORY "/%.2s/%.*s%s", name,
	         KEY_RECORD_NAME_LENGTH - 2, name + 2, suffix);
}

/* ---- writing ---- */

static int make_shard(const struct store *s, unsigned shard)
{
	char path[STORE_PATH_MAX];

	shard_path(path, shard);
	if (mkdirat(s->root_fd, STORE_KEYS_DIRECTORY, PRIVATE_DIRECTORY) && errno != EEXIST)
		return -errno;
	return mkdirat(s->root_fd, path, PRIVATE_DIRECTORY) && errno != EEXIST ? -errno : 0;
}

/* Opens the temporary file of a key. Returns a descriptor or -errno. */
static int open_new(const struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE],
                    const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(s->root_fd, path, flags, PRIVATE_FILE);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	int err = make_shard(s, key[0]);

	if (err)
		return err;
	fd = openat(s->root_fd, path, flags, PRIVATE_FILE);
	return fd < 0 ? -errno : fd;
}

char *key_record_format(const struct key_record *r, size_t *length)
{
	char fingerprint[FINGERPRINT_LENGTH];
	size_t size = HEAD_LENGTH + (size_t)r->count * LINE_LENGTH;
	char *text = pool_get(size + 1);

	if (!text)
		return NULL;
	base16_encode_update(fingerprint, KEY_RECORD_HASH_SIZE, r->fingerprint);
	snprintf(text, size + 1, "%c %0*" PRIu64 " %.*s %0*" PRIu64 "\n",
	         r->is_settled ? SETTLED : OPEN, NUMBER_LENGTH, r->created, (int)FINGERPRINT_LENGTH,
	         fingerprint, NUMBER_LENGTH, r->failed);
	for (unsigned i = 0; i < r->count; i++) {
		char *line = text + HEAD_LENGTH + (size_t)i * LINE_LENGTH;

		memcpy(line, r->id[i], ULID_LENGTH);
		line[ULID_LENGTH] = '\n';
	}
	*length = size;
	return text;
}

static int write_all(int fd, const char *data, size_t left)
{
	while (left) {
		ssize_t n = write(fd, data, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		left -= (size_t)n;
	}
	return 0;
}

int key_record_write(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE],
                     const struct key_record *r)
{
	char path[STORE_PATH_MAX], new_path[STORE_PATH_MAX];
	size_t length = 0;
	char *text = key_record_format(r, &length);

	if (!text)
		return -ENOMEM;
	key_path(path, key, "");
	key_path(new_path, key, TEMPORARY);
	int fd = open_new(s, key, new_path), err = fd < 0 ? fd : write_all(fd, text, length);

	pool_put(text);
	if (fd < 0)
		return err;
	if (close(fd) && errno != EINTR && !err)
		err = -errno;
	if (!err && renameat(s->root_fd, new_path, s->root_fd, path))
		err = -errno;
	if (err)
		(void)unlinkat(s->root_fd, new_path, 0); /* otherwise key_record_sweep() does */
	return err;
}

int key_record_settle(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE])
{
	const char settled = SETTLED;
	char path[STORE_PATH_MAX];

	key_path(path, key, "");
	int fd = openat(s->root_fd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int err = pwrite(fd, &settled, 1, 0) == 1 ? 0 : -errno;

	close(fd);
	return err;
}

/* ---- reading ---- */

static bool read_number(const char *text, uint64_t *number)
{
	if (strspn(text, "0123456789") != NUMBER_LENGTH)
		return false;
	*number = strtoull(text, NULL, 10);
	return true;
}

/* Reads the first line. Returns false if it is not as key_record_format() writes it. */
static bool read_head(const char *text, struct key_record *r)
{
	const char *created = text + 2, *fingerprint = created + NUMBER_LENGTH + 1;
	const char *failed = fingerprint + FINGERPRINT_LENGTH + 1;
	struct base16_decode_ctx context;
	size_t size = KEY_RECORD_HASH_SIZE;

	base16_decode_init(&context);
	r->is_settled = text[0] == SETTLED;
	return (text[0] == SETTLED || text[0] == OPEN) && text[1] == ' ' &&
	       read_number(created, &r->created) && fingerprint[-1] == ' ' &&
	       base16_decode_update(&context, &size, r->fingerprint, FINGERPRINT_LENGTH,
	                            fingerprint) &&
	       size == KEY_RECORD_HASH_SIZE && failed[-1] == ' ' &&
	       read_number(failed, &r->failed) && failed[NUMBER_LENGTH] == '\n';
}

/* Reads the file, with a zero behind it. Returns pool memory and *length, or NULL with -errno in
 * *length. */
static char *read_text(int fd, ssize_t *length)
{
	struct stat st;
	size_t size = 0, done = 0;
	ssize_t n = 1;

	*length = -ENOENT;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)HEAD_LENGTH ||
	    st.st_size > (off_t)(HEAD_LENGTH + KEY_RECORD_IDS_MAX * LINE_LENGTH))
		return NULL;
	size = (size_t)st.st_size;
	char *text = pool_get(size + 1);

	if (!text) {
		*length = -ENOMEM;
		return NULL;
	}
	while (done < size && n != 0) {
		n = pread(fd, text + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR) {
			*length = -errno;
			pool_put(text);
			return NULL;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	text[done] = '\0';
	*length = (ssize_t)done;
	return text;
}

/* Takes the ids of the text to the front of its memory. Returns false if there is a damaged one. */
static bool take_ids(char *text, size_t length, struct key_record *r)
{
	size_t rest = length - HEAD_LENGTH;

	if (rest % LINE_LENGTH != 0)
		return false;
	memmove(text, text + HEAD_LENGTH, rest);
	r->count = (unsigned)(rest / LINE_LENGTH);
	r->id = (char(*)[LINE_LENGTH])(void *)text;
	for (unsigned i = 0; i < r->count; i++) {
		if (r->id[i][ULID_LENGTH] != '\n' || !ulid_is_valid(r->id[i], ULID_LENGTH))
			return false;
		r->id[i][ULID_LENGTH] = '\0';
	}
	return true;
}

int key_record_parse(char *text, size_t length, struct key_record *r)
{
	*r = (struct key_record){ .count = 0 };
	if (length >= HEAD_LENGTH && read_head(text, r) && take_ids(text, length, r))
		return 0;
	pool_put(text);
	*r = (struct key_record){ .count = 0 };
	return -ENOENT;
}

int key_record_read(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE], struct key_record *r)
{
	char path[STORE_PATH_MAX];
	ssize_t length;

	*r = (struct key_record){ .count = 0 };
	key_path(path, key, "");
	int fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	char *text = read_text(fd, &length);

	close(fd);
	return text ? key_record_parse(text, (size_t)length, r) : (int)length;
}

/* ---- removing ---- */

int key_record_remove(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE])
{
	char path[STORE_PATH_MAX];

	key_path(path, key, "");
	return unlinkat(s->root_fd, path, 0) && errno != ENOENT ? -errno : 0;
}

unsigned key_record_sweep(struct store *s, unsigned shard, uint64_t before)
{
	char path[STORE_PATH_MAX];
	const struct dirent *entry;
	struct stat st;
	unsigned count = 0;

	shard_path(path, shard);
	int fd = openat(s->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (uint64_t)st.st_mtime < before && unlinkat(fd, entry->d_name, 0) == 0)
			count++;
	closedir(dir);
	return count;
}

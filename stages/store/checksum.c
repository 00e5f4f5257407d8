/* checksum.c - computes and prints checksums. Any thread. */
#include "checksum.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/check.h"
#include "directory.h"

#define READ_SIZE (64u << 10)

static void print(XXH128_hash_t hash, char sum[CHECKSUM_LENGTH + 1])
{
	snprintf(sum, CHECKSUM_LENGTH + 1, "%016llx%016llx", (unsigned long long)hash.high64,
	         (unsigned long long)hash.low64);
}

void checksum_of(const void *data, size_t size, char sum[CHECKSUM_LENGTH + 1])
{
	print(XXH3_128bits(data, size), sum);
}

/* ---- in parts: an XXH3_state_t ---- */

static XXH3_state_t *state_of(struct checksum *c)
{
	return (XXH3_state_t *)c;
}

struct checksum *checksum_new(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state)
		XXH3_128bits_reset(state);
	return (struct checksum *)state;
}

void checksum_free(struct checksum *c)
{
	XXH3_freeState(state_of(c));
}

void checksum_reset(struct checksum *c)
{
	XXH3_128bits_reset(state_of(c));
}

void checksum_copy(struct checksum *c, const struct checksum *other)
{
	XXH3_copyState(state_of(c), (const XXH3_state_t *)other);
}

void checksum_add(struct checksum *c, const void *data, size_t size)
{
	XXH3_128bits_update(state_of(c), data, size);
}

void checksum_write(const struct checksum *c, char sum[CHECKSUM_LENGTH + 1])
{
	print(XXH3_128bits_digest((const XXH3_state_t *)c), sum);
}

int checksum_of_file(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	static _Thread_local unsigned char buffer[READ_SIZE];
	struct checksum *c = checksum_new();
	ssize_t n = 0;
	int err = c ? 0 : -ENOMEM;

	*size = 0;
	while (!err && (n = directory_read_at(fd, buffer, sizeof buffer, *size)) > 0) {
		checksum_add(c, buffer, (size_t)n);
		*size += (uint64_t)n;
	}
	if (n < 0)
		err = (int)n;
	if (!err)
		checksum_write(c, sum);
	checksum_free(c);
	return err;
}

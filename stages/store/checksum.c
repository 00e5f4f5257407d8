/* checksum.c - computes and prints checksums. Any thread. */
#include "checksum.h"

#include <errno.h>
#include <stdio.h>

#include <xxhash.h>

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

int checksum_of_end(const struct XXH3_state_s *before, const void *data, size_t size,
                    char sum[CHECKSUM_LENGTH + 1])
{
	XXH3_state_t *state = XXH3_createState();

	if (!state)
		return -ENOMEM;
	XXH3_copyState(state, before);
	XXH3_128bits_update(state, data, size);
	print(XXH3_128bits_digest(state), sum);
	XXH3_freeState(state);
	return 0;
}

int checksum_of_file(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	static _Thread_local unsigned char buffer[READ_SIZE];
	XXH3_state_t *state = XXH3_createState();
	ssize_t n = 0;
	int err = state ? 0 : -ENOMEM;

	*size = 0;
	if (state)
		XXH3_128bits_reset(state);
	while (!err && (n = directory_read_at(fd, buffer, sizeof buffer, *size)) > 0) {
		XXH3_128bits_update(state, buffer, (size_t)n);
		*size += (uint64_t)n;
	}
	if (n < 0)
		err = (int)n;
	if (!err)
		print(XXH3_128bits_digest(state), sum);
	XXH3_freeState(state);
	return err;
}

/* checksum.c - computes and prints checksums. Any thread. */
#include "checksum.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/check.h"

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

int checksum_of_file(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size)
{
	static _Thread_local unsigned char buffer[READ_SIZE];
	XXH3_state_t *state = XXH3_createState();
	ssize_t n = 0;
	int err = state ? 0 : -ENOMEM;

	*size = 0;
	if (!err)
		XXH3_128bits_reset(state);
	while (!err && (n = pread(fd, buffer, sizeof buffer, (off_t)*size)) != 0) {
		if (n > 0) {
			XXH3_128bits_update(state, buffer, (size_t)n);
			*size += (uint64_t)n;
		} else if (errno != EINTR) {
			err = -errno;
		}
	}
	if (!err)
		print(XXH3_128bits_digest(state), sum);
	XXH3_freeState(state);
	return err;
}

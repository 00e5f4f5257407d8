/*
 * checksum.h - checksums of stored files: XXH3 of 128 bits, in hexadecimal as xxh128sum(1) prints
 * it.
 *
 * It finds damage of disks, not changes by an enemy. libxxhash is on every Debian, because apt
 * needs it. On a core without SHA instructions, SHA-256 would take 5 % of an image's CPU time; this
 * takes 0.2 %. Any thread.
 */
#ifndef DARKROOM_STORE_CHECKSUM_H
#define DARKROOM_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct XXH3_state_s;

#define CHECKSUM_LENGTH 32

/* Writes the checksum of data[0..size), zero-terminated. */
void checksum_of(const void *data, size_t size, char sum[CHECKSUM_LENGTH + 1]);

/* Writes the checksum of content of which data[0..size) is the end, zero-terminated. before: the
 * state of the rest. Returns 0 or -ENOMEM. */
int checksum_of_end(const struct XXH3_state_s *before, const void *data, size_t size,
                    char sum[CHECKSUM_LENGTH + 1]);

/* Reads the file from its beginning and writes its checksum and its bytes. Returns 0 or -errno. May
 * block. */
int checksum_of_file(int fd, char sum[CHECKSUM_LENGTH + 1], uint64_t *size);

#endif

/*
 * stored_info.h - what a stored image.json says. Any thread.
 */
#ifndef DARKROOM_STORE_STORED_INFO_H
#define DARKROOM_STORE_STORED_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checksum.h"
#include "conf/conf.h"
#include "spool.h"

struct stored_file {
	char name[CONF_NAME_MAX]; /* of the variant, or "original" */
	uint64_t bytes;
	char sum[CHECKSUM_LENGTH + 1]; /* "": an earlier version stored it */
};

struct stored_info {
	uint64_t width, height;
	bool has_record;       /* otherwise an earlier version stored it */
	uint64_t upload_bytes; /* 0: unknown */
	char token[SPOOL_TOKEN_MAX];
	struct stored_file file[CONF_VARIANT_MAX + 1];
	unsigned file_count;
	char own_sum[CHECKSUM_LENGTH + 1]; /* of image.json up to own_sum_at; "": unknown */
	size_t own_sum_at;
};

/* Reads the text of an image.json, which ends with a zero. Returns 0, or -EINVAL if the daemon did
 * not write it. */
int stored_info_read(struct stored_info *info, const char *data, size_t length);

/* The same for the file of an image, with its text in data. Returns 0, -ENOENT, -EINVAL or -errno.
 */
int stored_info_load(struct stored_info *info, struct store *s, const char *id, char *data);

/* Returns the bytes of all files but image.json. */
uint64_t stored_info_bytes(const struct stored_info *info);

#endif

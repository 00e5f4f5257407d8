/* store_path.c - prints paths. Any thread. */
#include "store_path.h"

#include <stdio.h>

#include "base/check.h"

void store_shard_path(char path[STORE_PATH_MAX], enum store_layout layout, const char *id)
{
	if (layout == STORE_BY_TAIL)
		snprintf(path, STORE_PATH_MAX, "%s", id + ULID_LENGTH - STORE_SHARD_LENGTH);
	else
		snprintf(path, STORE_PATH_MAX, "%.*s/%.*s", STORE_SPAN_LENGTH, id,
		         STORE_SHARD_LENGTH, id + STORE_SPAN_LENGTH);
}

void store_image_path(char path[STORE_PATH_MAX], enum store_layout layout, const char *id,
                      const char *name)
{
	char shard[STORE_PATH_MAX];

	store_shard_path(shard, layout, id);
	int n = snprintf(path, STORE_PATH_MAX, "%s/%s%s%s", shard, id, name ? "/" : "",
	                 name ? name : "");

	assert(n > 0 && n < STORE_PATH_MAX);
}

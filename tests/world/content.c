/* content.c - makes the files of images. */
#include "content.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

const char *const content_names[CONTENT_FILES] = { "a.jpg", "b.jpg", "image.json" };

static size_t fill(char *data, struct random random, size_t max)
{
	size_t size = 1 + random_next(&random) % (max - 8);

	for (size_t i = 0; i < size; i += sizeof(uint64_t))
		memcpy(data + i, &(uint64_t){ random_next(&random) }, sizeof(uint64_t));
	return size;
}

void content_write_json(struct content *c, const char *id, const char *token)
{
	int length = snprintf(
		c->data[2], CONTENT_BYTES(0),
		"{\"id\":\"%s\",\"width\":1,\"height\":1,\"variants\":{\"a\":{\"bytes\":%zu},"
		"\"b\":{\"bytes\":%zu}},\"record\":{\"upload\":{\"bytes\":9,\"token\":\"%s\"},"
		"\"variants\":{\"a\":{\"xxh128\":\"%s\"},\"b\":{\"xxh128\":\"%s\"}}",
		id, c->size[0], c->size[1], token, c->sum[0], c->sum[1]);

	checksum_of(c->data[2], (size_t)length, c->sum[2]);
	length += snprintf(c->data[2] + length, CONTENT_BYTES(0) - (size_t)length,
	                   ",\"xxh128\":\"%s\"}}\n", c->sum[2]);
	c->size[2] = (size_t)length;
	checksum_of(c->data[2], c->size[2], c->sum[2]);
}

void content_make(struct content *c, char *memory, const char *id, unsigned first, unsigned version,
                  size_t max)
{
	uint64_t number = 0;

	for (const char *at = id; *at; at++)
		number = number * 33 + (unsigned char)*at;
	for (unsigned f = 0; f < 2; f++) {
		c->data[f] = memory + f * max;
		c->size[f] = fill(c->data[f],
		                  random_stream(number, f ? version << 1 : first << 1 | 1), max);
		checksum_of(c->data[f], c->size[f], c->sum[f]);
	}
	c->data[2] = memory + 2 * max;
	content_write_json(c, id, "site");
}

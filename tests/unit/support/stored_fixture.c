/* stored_fixture.c - images in a store. */
#include "stored_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/checksum.h"
#include "store/store.h"

const char *stored_put(struct store *s, const char *id, const char *token, size_t bytes,
                       uint64_t expires)
{
	static char own_id[ULID_LENGTH + 1];
	static const char data[1000];
	char json[512], sum[CHECKSUM_LENGTH + 1];
	int length = snprintf(json, sizeof json,
	                      "{\"width\":1,\"height\":1,\"variants\":{\"a\":{\"bytes\":%zu}},"
	                      "\"record\":{\"upload\":{\"bytes\":9,\"token\":\"%s\"},\"variants\":{"
	                      "\"a\":{\"xxh128\":\"%032d\"}},\"xxh128\":\"%032d\"}}\n",
	                      bytes, token, 0, 0);

	checksum_of(json, (size_t)length, sum);
	const struct store_file files[] = { { "a.jpg", data, bytes, sum },
		                            { "image.json", json, (size_t)length, sum } };
	struct store_item item = { .place = STORE_IMAGES,
		                   .id = own_id,
		                   .file = files,
		                   .file_count = 2,
		                   .token = token,
		                   .expires = expires };

	if (id)
		memcpy(own_id, id, sizeof own_id);
	else
		ulid_new(own_id);
	store_put(s, &item, 1);
	assert_int_equal(item.err, 0);
	return own_id;
}

/*
 * fuzz_range.c - Range fields: the result is within the file, and is the same when it is written as
 * a Range field.
 */
#include <inttypes.h>
#include <stdio.h>

#include "http/preconditions.h"
#include "target.h"

const unsigned target_mutants = 3000;

static enum range_result check(struct slice value, uint64_t size)
{
	uint64_t first = 1, last = 0;
	enum range_result result = range_parse(value, size, &first, &last);

	if (result != RANGE_PART) {
		assert(first == 1 && last == 0);
		return result;
	}
	assert(result == RANGE_PART && first <= last && last < size);
	char text[64];
	uint64_t again_first, again_last;
	int length = snprintf(text, sizeof text, "bytes=%" PRIu64 "-%" PRIu64, first, last);
	struct slice again = { text, (size_t)length };

	assert(range_parse(again, size, &again_first, &again_last) == RANGE_PART);
	assert(again_first == first && again_last == last);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = target_copy(data, size);
	struct slice value = { copy, size };

	check(value, 0);
	check(value, 1);
	check(value, 1000);
	check(value, (uint64_t)1 << 40);
	check(value, UINT64_MAX);
	free(copy);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char *const text[] = {
		"bytes=0-0",
		"bytes=0-",
		"bytes=-1",
		"bytes=500-999",
		"bytes=1000-",
		"bytes=-0",
		"bytes=5-4",
		"bytes=0-1,5-6",
		"items=0-1",
		"Bytes = 1-2",
		"bytes=99999999999999999999-",
		"bytes=18446744073709551614-18446744073709551615",
		"bytes=-18446744073709551616",
	};

	target_emit_texts(emit, text, COUNT_OF(text));
}

/* slice_fixture.c - copies texts to the heap. */
#include "slice_fixture.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct slice slice_new(const char *text)
{
	struct slice s = { malloc(strlen(text) ? strlen(text) : 1), strlen(text) };

	assert(s.data);
	memcpy((char *)(uintptr_t)s.data, text, s.length);
	return s;
}

void slice_free(struct slice s)
{
	free((char *)(uintptr_t)s.data);
}

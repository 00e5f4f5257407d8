/* weak_ranges.c - the memory that the threads of a scenario share, by name. */
#include <stdlib.h>

#include "weak_memory.h"

#define RANGES 32

static struct {
	uintptr_t from, to;
	const char *name;
} ranges[RANGES];
static unsigned range_count;

void weak_share_nothing(void)
{
	range_count = 0;
}

void weak_share(const void *from, size_t size, const char *name)
{
	if (range_count == RANGES)
		abort();
	ranges[range_count].from = (uintptr_t)from;
	ranges[range_count].to = (uintptr_t)from + size;
	ranges[range_count++].name = name;
}

const char *weak_name(uintptr_t address, size_t *offset)
{
	for (unsigned i = 0; i < range_count; i++)
		if (address >= ranges[i].from && address < ranges[i].to) {
			*offset = address - ranges[i].from;
			return ranges[i].name;
		}
	return NULL;
}

bool weak_is_shared(uintptr_t address)
{
	size_t offset;

	return weak_name(address, &offset) != NULL;
}

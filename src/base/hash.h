/* hash.h - FNV-1a (Fowler, Noll & Vo), for tables whose keys clients cannot choose at will. */
#ifndef DARKROOM_BASE_HASH_H
#define DARKROOM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline size_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

#endif

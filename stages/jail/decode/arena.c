/* arena.c - classes of a quarter octave, each with a list of free blocks. */
#include "arena.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESSES (UINT64_C(8) << 30)
#define FIRST (UINT64_C(2) << 20) /* for the start of the program and its libraries */
#define ALIGNMENT 16
#define CLASSES 256
#define PAGE ((uintptr_t)4096)

/* Before each block. */
struct head {
	uint32_t class;
	uint32_t back; /* bytes to the start of the block's memory */
	uint64_t size;
};

static struct {
	uint8_t *at, *end;
	bool has_failed;
	void *unused[CLASSES];
} arena;

static bool make_usable(uint8_t *from, uint8_t *to)
{
	return mprotect(from, (size_t)(to - from), PROT_READ | PROT_WRITE) == 0;
}

static void begin(void)
{
	uint8_t *p = mmap(NULL, ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	                  -1, 0);

	if (p == MAP_FAILED || !make_usable(p, p + FIRST))
		_exit(EXIT_FAILURE);
	arena.at = p;
	arena.end = p + FIRST;
}

bool arena_grow(uint64_t bytes)
{
	uint8_t *from = (uint8_t *)(((uintptr_t)arena.at + PAGE - 1) & ~(PAGE - 1));

	if (bytes > ADDRESSES / 2)
		return false;
	uint8_t *end = from + ((bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1));

	if (end > arena.end && !make_usable(arena.end, end))
		return false;
	if (end < arena.end && mprotect(end, (size_t)(arena.end - end), PROT_NONE))
		return false;
	arena.end = end;
	return true;
}

bool arena_has_failed(void)
{
	return arena.has_failed;
}

/* Returns the class of a size, which is raised to that of its blocks. */
static unsigned class_of(size_t *size)
{
	if (*size < 64)
		*size = 64;
	unsigned octave = 63U - (unsigned)__builtin_clzll(*size - 1),
		 quarter = (unsigned)((*size - 1) >> (octave - 2)) & 3;

	*size = ((size_t)quarter + 5) << (octave - 2);
	return octave * 4 + quarter;
}

static void *fail(void)
{
	arena.has_failed = true;
	errno = ENOMEM;
	return NULL;
}

void *memalign(size_t alignment, size_t size)
{
	if (!arena.at)
		begin();
	if (size > ADDRESSES / 2 || alignment > ADDRESSES / 2)
		return fail();
	if (alignment < ALIGNMENT)
		alignment = ALIGNMENT;
	size_t room = size + sizeof(struct head) + (alignment > ALIGNMENT ? alignment : 0);
	unsigned class = class_of(&room);
	uint8_t *block = arena.unused[class];

	if (block) {
		memcpy(&arena.unused[class], block, sizeof(uintptr_t));
	} else {
		if (room > (size_t)(arena.end - arena.at))
			return fail();
		block = arena.at;
		arena.at += (room + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
		if (arena.at > arena.end)
			arena.at = arena.end;
	}
	uint8_t *p = (uint8_t *)(((uintptr_t)block + sizeof(struct head) + alignment - 1) &
	                         ~(uintptr_t)(alignment - 1));
	struct head head = { class, (uint32_t)(p - block), size };

	memcpy(p - sizeof head, &head, sizeof head);
	return p;
}

static struct head head_of(const void *p)
{
	struct head head;

	memcpy(&head, (const uint8_t *)p - sizeof head, sizeof head);
	return head;
}

void *malloc(size_t size)
{
	return memalign(ALIGNMENT, size);
}

void free(void *p)
{
	if (!p)
		return;
	struct head head = head_of(p);
	uint8_t *block = (uint8_t *)p - head.back;

	memcpy(block, &arena.unused[head.class], sizeof(uintptr_t));
	arena.unused[head.class] = block;
}

void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(count, size, &bytes) ? fail() : malloc(bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *p, size_t size)
{
	void *other = malloc(size);

	if (!p || !other)
		return other;
	size_t had = head_of(p).size;

	memcpy(other, p, had < size ? had : size);
	free(p);
	return other;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
	*p = memalign(alignment, size);
	return *p ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *p)
{
	return p ? head_of(p).size : 0;
}

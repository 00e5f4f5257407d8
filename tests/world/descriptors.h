/*
 * descriptors.h - virtual descriptors: events, files of a disk in memory, sockets.
 *
 * Each kind has numbers of its own, above those of real descriptors.
 */
#ifndef DARKROOM_TESTS_WORLD_DESCRIPTORS_H
#define DARKROOM_TESTS_WORLD_DESCRIPTORS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#define DESCRIPTORS_OF_EVENTS (1 << 20)
#define DESCRIPTORS_OF_DISK (2 << 20)
#define DESCRIPTORS_OF_SOCKETS (3 << 20)
#define DESCRIPTORS_MAX (1 << 20) /* of a kind */

/* The calls are as those of libc. NULL: the kind has no such call. */
struct descriptors {
	int first;
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *to, size_t size);
	ssize_t (*write)(int fd, const void *data, size_t size);
	int (*poll)(struct pollfd *p, int ms);
	struct descriptors *next;
};

/* Before main(). */
void descriptors_add(struct descriptors *kind);

/* Returns the kind of a descriptor, or NULL: it is real. */
const struct descriptors *descriptors_of(int fd);

/* Defines the kind of a file, and adds it. */
#define DESCRIPTORS(name, ...)                                                \
	static struct descriptors name = { __VA_ARGS__ };                     \
	__attribute__((constructor)) static void add_descriptors_##name(void) \
	{                                                                     \
		descriptors_add(&name);                                       \
	}

#endif

/*
 * seam.h - functions that the linker replaces (ld --wrap): every call of them from another file
 * comes to the world. The Makefile takes their names from the lines that begin with SEAM.
 *
 * Each seam counts its calls, so that the tests notice one that the program does not reach any
 * more: a function that was moved, renamed or made static.
 */
#ifndef DARKROOM_TESTS_WORLD_SEAM_H
#define DARKROOM_TESTS_WORLD_SEAM_H

#include <stdint.h>

struct seam {
	const char *name;
	uint64_t calls;
	struct seam *next;
};

extern struct seam *seams; /* all of them */

/* Begins the definition of a replacement. __real_NAME() is the function that it replaces. */
#define SEAM(result, name, ...)                                   \
	static struct seam seam_##name = { #name, 0, 0 };         \
	__attribute__((constructor)) static void add_##name(void) \
	{                                                         \
		seam_##name.next = seams;                         \
		seams = &seam_##name;                             \
	}                                                         \
	result __real_##name(__VA_ARGS__);                        \
	result __wrap_##name(__VA_ARGS__);                        \
	result __wrap_##name(__VA_ARGS__)

/* Counts a call: the first statement of each replacement. */
#define CALLED(name) (seam_##name.calls++)

#endif

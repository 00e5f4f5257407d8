/* file_fixture.h - a file of its own for a test program, by mkstemp(3). */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_FILE_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_FILE_FIXTURE_H

#include <stdlib.h>
#include <unistd.h>

/* path: a template, made the name of an empty file. 0 or -1. */
static inline int file_make(char *path)
{
	int fd = mkstemp(path);

	return fd < 0 || close(fd) ? -1 : 0;
}

#endif

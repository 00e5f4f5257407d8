/* file_fixture.h - a temporary file for a test program, by mkstemp(3). */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_FILE_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_FILE_FIXTURE_H

#include <stdlib.h>
#include <unistd.h>

/* Creates an empty file and completes the template in path with its name. 0 or -1. */
static inline int file_make(char *path)
{
	int fd = mkstemp(path);

	return fd < 0 || close(fd) ? -1 : 0;
}

#endif

/* program_path.h - programs that are built beside the tests. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PROGRAM_PATH_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PROGRAM_PATH_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

/* Returns the path of a program below the folder that has tests/unit, until the next call. */
static inline const char *program_path(const char *name)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	assert(n > 0);
	path[n] = '\0';
	char *tests = strstr(path, "/tests/unit/");

	assert(tests);
	snprintf(tests + 1, 64, "%s", name);
	return path;
}

#endif

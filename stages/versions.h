/*
 * versions.h - the versions of the program's compiler and libraries, for bug reports. Main thread.
 */
#ifndef DARKROOM_VERSIONS_H
#define DARKROOM_VERSIONS_H

#include <stdio.h>

/* Prints the compiler, the options of the build, and the libraries: the version compiled with, and
 * the running one where the library reports it. */
void versions_print(FILE *to);

#endif

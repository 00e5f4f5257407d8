/*
 * versions.h - what this program is made of: the first question about every report of a fault.
 *
 * Main thread.
 */
#ifndef DARKROOM_VERSIONS_H
#define DARKROOM_VERSIONS_H

#include <stdio.h>

/* Prints compiler, options of the build, and the libraries: as compiled with, and as running where
 * they tell. */
void versions_print(FILE *to);

#endif

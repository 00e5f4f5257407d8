/* version.c - the version, which the Makefile defines; only this file is recompiled for it. */
#include "version.h"

#ifndef DARKROOM_VERSION
#define DARKROOM_VERSION "unknown"
#endif

const char *const darkroom_version = DARKROOM_VERSION;

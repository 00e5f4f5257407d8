/* version.h - the version of the build. */
#ifndef DARKROOM_BASE_VERSION_H
#define DARKROOM_BASE_VERSION_H

/* As --version prints it, without the program's name. */
extern const char *const darkroom_version;

#endif

/*
 * libjpeg_private.h - access to the private structures of libjpeg-turbo 2.
 *
 * jpegint.h declares them. libjpeg-turbo 3 has changed them but keeps the soname: a program built
 * for version 2 may be loaded with version 3. So both the headers and the loaded library must be
 * version 2. Otherwise the encoder uses public functions only: all passes of a progressive file
 * after the first one are a single step. Define DARKROOM_LIBJPEG_PUBLIC to build
 * that way with any version.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_PRIVATE_H
#define DARKROOM_PIXEL_LIBJPEG_PRIVATE_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && !defined(DARKROOM_LIBJPEG_PUBLIC)
#define LIBJPEG_HAS_PRIVATE \
	(LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 3000000)
#else
#define LIBJPEG_HAS_PRIVATE 0
#endif

#if LIBJPEG_HAS_PRIVATE
#include <jpegint.h>
#endif

/* Returns whether the headers and the loaded library are libjpeg-turbo 2. Any thread. */
bool libjpeg_private_is_usable(void);

#endif

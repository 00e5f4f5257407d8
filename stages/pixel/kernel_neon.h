/* kernel_neon.h - the kernel for NEON. Private to kernel.c. */
#ifndef DARKROOM_PIXEL_KERNEL_NEON_H
#define DARKROOM_PIXEL_KERNEL_NEON_H

#include "kernel.h"

#if defined(__aarch64__)
#define KERNEL_NEON 1
extern const struct kernel kernel_neon;
#else
#define KERNEL_NEON 0
#endif

#endif

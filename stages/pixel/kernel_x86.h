/* kernel_x86.h - the kernels for SSSE3, AVX2 and AVX-512. Private to kernel.c. */
#ifndef DARKROOM_PIXEL_KERNEL_X86_H
#define DARKROOM_PIXEL_KERNEL_X86_H

#include "kernel.h"

#if defined(__x86_64__)
#define KERNEL_X86 1
extern const struct kernel kernel_avx512, kernel_avx2, kernel_ssse3;
#else
#define KERNEL_X86 0
#endif

#endif

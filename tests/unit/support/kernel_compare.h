/*
 * kernel_compare.h - compares two kernels on random inputs, function by function.
 *
 * It does not use cmocka: tests/cross/kernels builds it for another processor. All memory ends
 * before an inaccessible page, so that an access beyond it is a crash without a sanitizer.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_KERNEL_COMPARE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_KERNEL_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;
struct mcu_kernel;

/* Returns whether all functions of the kernels compute the same. Prints the first difference of
 * each function. */
bool kernels_agree(const struct kernel *a, const struct kernel *b);

/* Returns a hash of notes of random blocks, the same for all kernels and all processors. */
uint64_t mcu_notes_hash(const struct mcu_kernel *kernel);

/* The same for the samples of random coefficients, at every size. */
uint64_t mcu_samples_hash(const struct mcu_kernel *kernel);

#endif

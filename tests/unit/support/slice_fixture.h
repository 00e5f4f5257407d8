/*
 * slice_fixture.h - slices on the heap, so that the address sanitizer sees every access beyond
 * them.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_SLICE_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_SLICE_FIXTURE_H

#include "http/field.h"

/* Returns an exact copy of the text without its zero; slice_free() frees it. */
struct slice slice_new(const char *text);
void slice_free(struct slice s);

#endif

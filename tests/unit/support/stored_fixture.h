/* stored_fixture.h - images in a store, for tests of what reads or counts them. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_STORED_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_STORED_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

struct store;

/* Stores an image with a.jpg of that many bytes, at most 1,000, and image.json. id NULL: a new one.
 * expires as in struct store_item. Returns the id until the next call. */
const char *stored_put(struct store *s, const char *id, const char *token, size_t bytes,
                       uint64_t expires);

#endif

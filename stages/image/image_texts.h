/*
 * image_texts.h - texts that a client sends with an image: fields of the form, named by
 * store.metadata. Any thread.
 */
#ifndef DARKROOM_IMAGE_IMAGE_TEXTS_H
#define DARKROOM_IMAGE_IMAGE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include "store/spool.h"

struct json;

#define METADATA_VALUE_MAX 1024 /* bytes of one value */

/* Adds a text. Returns NULL, or what is wrong with it (static). */
const char *image_texts_add(struct image_texts *m, const char *name, size_t name_length,
                            const char *value, size_t length);

/* Appends the member "metadata" to an open JSON object, unless there are none. */
void image_texts_json(struct json *j, const struct image_texts *m);

#endif

/*
 * image_json.h - an image as JSON, for responses and for the stored image.json. Any thread.
 */
#ifndef DARKROOM_IMAGE_IMAGE_JSON_H
#define DARKROOM_IMAGE_IMAGE_JSON_H

#include <stdbool.h>

struct image;
struct json;

/* Appends the members id, url, width, height and so on to an open JSON object. is_stored: with the
 * variants and their URLs; otherwise with "status":"processing". */
void image_json(struct json *j, const struct image *image, bool is_stored);

/* Appends the average colour and the ThumbHash, if they were made. After the last step. */
void image_placeholder_json(struct json *j, const struct image *image);

/* Appends one variant: its URL with a version, size and bytes. */
void image_variant_json(struct json *j, const struct image *image, unsigned index);

#endif

/*
 * upload_key_images.h - what has become of the images of a record. The disk's threads; calls block.
 * Private to upload_key.c.
 */
#ifndef DARKROOM_IMAGE_UPLOAD_KEY_IMAGES_H
#define DARKROOM_IMAGE_UPLOAD_KEY_IMAGES_H

#include "store/key_record.h"

struct image_service;
struct upload_key;

/* Returns whether all images of a record are stored, or will be: 1, 0 or -errno. */
int upload_key_is_complete(struct image_service *s, const struct key_record *r);

/* Removes the images of an upload that was never acknowledged: it is made again. */
void upload_key_remove_images(struct image_service *s, const struct key_record *r);

/* Makes the answer from what has become of the images. The verdict is UPLOAD_KEY_KNOWN, or
 * UPLOAD_KEY_FAILED if the store cannot tell or there is no memory. */
void upload_key_answer(struct image_service *s, struct upload_key *k, const struct key_record *r);

#endif

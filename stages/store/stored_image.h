/*
 * stored_image.h - the parts of a stored image.json, which image/image_record.c writes.
 *
 * The record is the last member of the object, and the checksum of all bytes before it is the last
 * member of the record. Earlier versions wrote neither. Any thread.
 */
#ifndef DARKROOM_STORE_STORED_IMAGE_H
#define DARKROOM_STORE_STORED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct text;

#define STORED_IMAGE "image.json"
#define STORED_IMAGE_MAX (16u << 10) /* bytes; one of 16 variants takes at most half of it */
#define STORED_RECORD "record"
#define STORED_DEGRADED "degraded" /* steps of overload.degrade, as strings */
#define STORED_COLOR "color"       /* of the placeholder; its ThumbHash follows */
#define STORED_FOCUS "focus"       /* X%:Y%, of the upload */

/* Returns the length of what clients may see: it ends before the record, and "}" and a line feed
 * must follow. Returns `length`, with nothing to follow, if there is no record. */
size_t stored_image_public(const char *data, size_t length);

/* Returns when an image ends, in seconds since 1970; 0: never. expires: its own time, of
 * store_tag(); 0: none. max_age_ms: store.max_age. */
uint64_t stored_image_end(const char *id, uint64_t expires, uint64_t max_age_ms);

/* Returns whether the image's time is over, though its files may not be removed yet. Some system
 * calls: for errors only. */
bool stored_image_has_ended(struct store *s, const char *id, uint64_t max_age_ms);

/* Returns whether the image has its original. The same. */
bool stored_image_has_original(struct store *s, const char *id);

/* Reads an open image.json from its beginning, and appends a zero. Returns its length or -errno;
 * -EFBIG if it is too long to be one. Short. */
int stored_image_read(int fd, char data[STORED_IMAGE_MAX + 1]);

/* Appends what clients may see of an open image.json. Returns 0 or -errno. Short. */
int stored_image_read_public(int fd, struct text *to);

/* Returns whether the text of an image.json says that the variant was skipped under load. */
bool stored_image_says_skipped(const char *data, size_t length, const char *variant);

/* Returns whether the image's image.json says that the variant was skipped under load. Some system
 * calls: for errors only. */
bool stored_image_has_skipped(struct store *s, const char *id, const char *variant);

/* Appends the names of the variants that the image has as files, sorted, with commas. Returns their
 * number, or -ENOENT if there is no image, or -errno. Some system calls: for errors only. */
int stored_image_variants(struct store *s, const char *id, struct text *names);

#endif

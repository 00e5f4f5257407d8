/*
 * stored_image.h - a stored image.json, which image/image_json.c writes, and the files it names.
 *
 * The record is the last member of the object, and the checksum of all bytes before it is the last
 * member of the record. Earlier versions wrote neither. Any thread.
 */
#ifndef DARKROOM_STORE_STORED_IMAGE_H
#define DARKROOM_STORE_STORED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checksum.h"
#include "conf/conf_files.h"
#include "spool.h"

struct json;
struct store;
struct text;

#define STORED_IMAGE "image.json"
#define STORED_IMAGE_MAX (16u << 10) /* bytes; one of 16 variants takes at most half of it */
#define STORED_RECORD "record"
#define STORED_DEGRADED "degraded" /* steps of overload.degrade, as strings */
#define STORED_COLOR "color"       /* of the placeholder; its ThumbHash follows */
#define STORED_SOURCES "sources"   /* of a variant: its files of other formats than JPEG */
#define STORED_FOCUS "focus"       /* X%:Y%, of the upload */

/* Returns the length of what clients may see: it ends before the record, and "}" and a line feed
 * must follow. Returns `length`, with nothing to follow, if there is no record. */
size_t stored_image_public(const char *data, size_t length);

/* Returns when an image ends, in seconds since 1970; 0: never. expires: its own time, of
 * store_tag(); 0: none. max_age_ms: store.max_age. */
uint64_t stored_image_end(const char *id, uint64_t expires, uint64_t max_age_ms);

/* Returns the image's own end of which the text of an image.json tells, in seconds since 1970; 0:
 * none. */
uint64_t stored_image_expires(const char *data, size_t length);

/* Reads an open image.json from its beginning, and appends a zero. Returns its length or -errno;
 * -EFBIG if it is too long to be one. Short. */
int stored_image_read(int fd, char data[STORED_IMAGE_MAX + 1]);

/* The same for the file of an image. Sets *expires as store_tag(). */
int stored_image_load(struct store *s, const char *id, char data[STORED_IMAGE_MAX + 1],
                      uint64_t *expires);

/* Appends what clients may see of an open image.json. Returns 0 or -errno. Short. */
int stored_image_read_public(int fd, struct text *to);

/* Returns whether the text of an image.json says that the variant was skipped under load. */
bool stored_image_says_skipped(const char *data, size_t length, const char *variant);

/* Returns whether the text of an image.json says that the image was uploaded with the token of that
 * name. */
bool stored_image_is_of(const char *data, size_t length, const char *token);

/* ---- what it says ---- */

#define STORED_NAME_MAX CONF_FILE_NAME_MAX /* bytes of a file's name, with the zero */

struct stored_file {
	char name[STORED_NAME_MAX]; /* "thumb.jpg", or "original.jpg" */
	uint64_t bytes;
	char sum[CHECKSUM_LENGTH + 1]; /* "": an earlier version stored it */
};

struct stored_info {
	char id[ULID_LENGTH + 1]; /* "": none */
	uint64_t width, height;
	bool has_record;       /* otherwise an earlier version stored it */
	uint64_t upload_bytes; /* 0: unknown */
	char token[SPOOL_TOKEN_MAX];
	struct stored_file file[CONF_FILE_MAX + 1];
	unsigned file_count;
	char own_sum[CHECKSUM_LENGTH + 1]; /* of image.json up to own_sum_at; "": unknown */
	size_t own_sum_at;
};

/* Reads the text of an image.json, which ends with a zero. Returns 0, or -EINVAL if the daemon did
 * not write it: also if it names a file as no variant is called. */
int stored_info_read(struct stored_info *info, const char *data, size_t length);

/* The same for the file of an image, with its text in data. Returns 0, -ENOENT, -EINVAL or -errno.
 */
int stored_info_load(struct stored_info *info, struct store *s, const char *id, char *data);

/* Writes the label of a file: its name without .jpg. */
void stored_file_label(char label[CONF_FILE_NAME_MAX], const char *name);

/* Returns what a variant of image.json says of its file of that format, or NULL. */
const char *stored_source_find(const char *variant, enum file_format format);

/* Returns whether it is the name of image.json, or of a variant or an original: NAME.jpg,
 * NAME.avif. */
bool stored_file_is_named(const char *name);

/* Returns whether the text has its own checksum, or an earlier version stored it without one, and
 * whether it is that of the image. */
bool stored_info_is_sound(const struct stored_info *info, const char *data, const char *id);

/* The same for a text that need not be read otherwise, of any image. */
bool stored_image_is_sound(const char *data, size_t length);

/* Returns the file with that name, or NULL. It is in *info. */
const struct stored_file *stored_info_find(const struct stored_info *info, const char *name);

/* Compares the size and checksum of a file with what image.json says. Returns what is wrong with
 * the file, or NULL. Static. */
const char *stored_file_fault(const struct stored_file *expected, uint64_t size, const char *sum);

#define STORED_FILES_MAX (CONF_FILE_MAX + 2) /* of an image, with the original and image.json */

/* Returns the bytes of all files but image.json. */
uint64_t stored_info_bytes(const struct stored_info *info);

/* ---- what it lacks of a configuration; calls block ---- */

struct stored_lack {
	/* One bit for each file of the configuration. */
	uint32_t missing; /* image.json or the directory does not have it, or its size is wrong */
	uint32_t differs; /* its settings are others, or an earlier version has not recorded them */
	bool has_original;
	uint64_t original_bytes;
	uint64_t pixels; /* of the original */
};

/* Compares an image with the configuration. directory_fd: of the image. data: the text of its
 * image.json. Returns 0, or -EINVAL if the daemon did not write that. */
int stored_lack_find(struct stored_lack *lack, const struct conf *conf, int directory_fd,
                     const char *data, size_t length);

#define STORED_SETTINGS_MAX (2 * CONF_TEXT_MAX + 256) /* bytes of them as an object */

/* Writes the settings of a variant's file as members of an open object. */
void stored_settings_json(struct json *j, const struct conf_variant *variant,
                          enum file_format format);

#endif

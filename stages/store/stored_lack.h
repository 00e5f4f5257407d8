/*
 * stored_lack.h - which variants of a configuration a stored image lacks, or has with other
 * settings. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_STORED_LACK_H
#define DARKROOM_STORE_STORED_LACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct conf_variant;
struct json;

struct stored_lack {
	/* One bit for each variant of the configuration. */
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

/* Writes the settings of a variant as members of an open object. */
void stored_settings_json(struct json *j, const struct conf_variant *variant);

#endif

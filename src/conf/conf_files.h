/*
 * conf_files.h - the files that are made of an image: one for each format of each variant.
 *
 * A file has an index in this list, by which everything else knows it. The first ones are the JPEGs
 * in the order of the variants, so the index of a variant is that of its JPEG. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_FILES_H
#define DARKROOM_CONF_CONF_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file_format.h"
#include "conf.h"

struct conf_file {
	char name[CONF_FILE_NAME_MAX];  /* "medium.jpg", "medium.avif" */
	char label[CONF_FILE_NAME_MAX]; /* "medium", "medium.avif": in records and messages */
	unsigned variant;               /* index in conf->variant */
	enum file_format format;
};

struct conf_files {
	unsigned count;
	uint32_t idle; /* one bit for each file that is made after its image is stored */
	struct conf_file file[CONF_FILE_MAX];
};

/* Lists the files of a configuration: the first CONF_FILE_MAX. */
void conf_files_list(struct conf_files *files, const struct conf *conf);

/* Returns the number of files, which may be larger. */
unsigned conf_files_count(const struct conf *conf);

/* Returns whether the variant has a file of that format. */
bool conf_variant_has(const struct conf_variant *variant, enum file_format format);

/* Returns whether any file but a JPEG has that format. */
bool conf_files_have(const struct conf *conf, enum file_format format);

/* Returns whether the configuration has a file with that label. */
bool conf_files_have_label(const struct conf *conf, const char *label);

/* Writes the label of a file of a variant. */
void conf_file_label(char label[CONF_FILE_NAME_MAX], const char *variant, enum file_format format);

#endif

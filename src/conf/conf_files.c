/* conf_files.c - variants by formats. */
#include "conf_files.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "conf_value.h"

static_assert(CONF_FILE_MAX <= 32, "one bit for each file");

bool conf_variant_has(const struct conf_variant *variant, enum file_format format)
{
	const char *word = file_format_word(format);

	return format == FILE_JPEG /* always; the check wants its word */ ||
	       conf_fields_have(variant->formats, word, strlen(word));
}

bool conf_files_have(const struct conf *conf, enum file_format format)
{
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (conf_variant_has(&conf->variant[i], format))
			return true;
	return false;
}

bool conf_files_have_label(const struct conf *conf, const char *label)
{
	struct conf_files files;
	bool has = false;

	conf_files_list(&files, conf);
	for (unsigned i = 0; i < files.count; i++)
		has |= strcmp(files.file[i].label, label) == 0;
	return has;
}

void conf_file_label(char label[CONF_FILE_NAME_MAX], const char *variant, enum file_format format)
{
	snprintf(label, CONF_FILE_NAME_MAX, "%s%s", variant,
	         format == FILE_JPEG ? "" : file_format_suffix(format));
}

static void add(struct conf_files *files, const struct conf *conf, unsigned variant,
                enum file_format format)
{
	const struct conf_variant *v = &conf->variant[variant];
	struct conf_file *file = &files->file[files->count];

	if (files->count == CONF_FILE_MAX)
		return;
	*file = (struct conf_file){ .variant = variant, .format = format };
	snprintf(file->name, sizeof file->name, "%s%s", v->name, file_format_suffix(format));
	conf_file_label(file->label, v->name, format);
	if (format != FILE_JPEG && v->when == CONF_WHEN_IDLE)
		files->idle |= UINT32_C(1) << files->count;
	files->count++;
}

void conf_files_list(struct conf_files *files, const struct conf *conf)
{
	*files = (struct conf_files){ 0 };
	for (unsigned f = FILE_JPEG; f < FILE_FORMATS; f++)
		for (unsigned i = 0; i < conf->variant_count; i++)
			if (conf_variant_has(&conf->variant[i], f))
				add(files, conf, i, f);
}

unsigned conf_files_count(const struct conf *conf)
{
	unsigned count = 0;

	for (unsigned f = FILE_JPEG; f < FILE_FORMATS; f++)
		for (unsigned i = 0; i < conf->variant_count; i++)
			count += conf_variant_has(&conf->variant[i], f);
	return count;
}

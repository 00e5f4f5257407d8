/* file_format.c - the table of formats. */
#include "file_format.h"

#include <string.h>

static const struct {
	const char *name, *type, *suffix;
} formats[FILE_FORMATS] = {
	[FILE_UNKNOWN] = { "JPEG", "image/jpeg", ".jpg" },
	[FILE_JPEG] = { "JPEG", "image/jpeg", ".jpg" },
	[FILE_PNG] = { "PNG", "image/png", ".png" },
	[FILE_AVIF] = { "AVIF", "image/avif", ".avif" },
	[FILE_WEBP] = { "WebP", "image/webp", ".webp" },
};

const char *file_format_name(enum file_format format)
{
	return formats[format].name;
}

const char *file_format_article(enum file_format format)
{
	return format == FILE_AVIF ? "an" : "a";
}

const char *file_format_word(enum file_format format)
{
	return formats[format].type + sizeof "image/" - 1;
}

const char *file_format_type(enum file_format format)
{
	return formats[format].type;
}

const char *file_format_suffix(enum file_format format)
{
	return formats[format].suffix;
}

enum file_format file_format_of_name(const char *name)
{
	const char *suffix = strrchr(name, '.');
	unsigned f = FILE_FORMATS - 1;

	while (f && !(suffix && strcmp(suffix, formats[f].suffix) == 0))
		f--;
	return (enum file_format)f;
}

/*
 * file_format.h - formats of pictures, and what files and HTTP call them. Any thread.
 */
#ifndef DARKROOM_BASE_FILE_FORMAT_H
#define DARKROOM_BASE_FILE_FORMAT_H

/* AVIF is before WebP: a browser shows the first that it knows. */
enum file_format { FILE_UNKNOWN = 0, FILE_JPEG, FILE_PNG, FILE_AVIF, FILE_WEBP, FILE_FORMATS };

/* "WebP", "webp", "image/webp" and ".webp". FILE_UNKNOWN: of a JPEG. */
const char *file_format_name(enum file_format format);
const char *file_format_word(enum file_format format);
const char *file_format_type(enum file_format format);
const char *file_format_suffix(enum file_format format);

/* Returns "a" or "an", as it is before its name. */
const char *file_format_article(enum file_format format);

/* Returns the format of files with that name; FILE_UNKNOWN: its suffix is another one. */
enum file_format file_format_of_name(const char *name);

#endif

/*
 * image_json.h - an image as JSON: for responses, and the stored image.json.
 *
 * A variant has its JPEG, and the files of other formats as `sources`, which are absent until they
 * are made. The record has all of them by their labels: "medium", "medium.avif".
 *
 * The file is one JSON object. Its members are those of image_json(), and a last one, "record": the
 * operator's record of how the image was made. GET leaves the record out, because it names the
 * token. The record ends with a checksum of all bytes before it. Earlier versions wrote no record.
 * Any thread.
 */
#ifndef DARKROOM_IMAGE_IMAGE_JSON_H
#define DARKROOM_IMAGE_IMAGE_JSON_H

#include <stdbool.h>

#include "store/checksum.h"

struct image;
struct json;
struct text;

/* Appends the members id, url, width, height and so on to an open JSON object. is_stored: with the
 * variants and their URLs; otherwise with "status":"processing". */
void image_json(struct json *j, const struct image *image, bool is_stored);

/* Appends the average colour and the ThumbHash, if they were made. After the last step. */
void image_placeholder_json(struct json *j, const struct image *image);

/* Appends a JPEG: its URL with a version, width, height and bytes, to the open object of its
 * variant. */
void image_jpeg_json(struct json *j, const struct image *image, unsigned file);

/* Appends a file of another format to an open array of them: as a <source> of HTML has it. */
void image_source_json(struct json *j, const struct image *image, unsigned file);

/* ---- the stored image.json ---- */

/* The checksums of an image's files. */
struct image_sums {
	const char (*file)[CHECKSUM_LENGTH + 1]; /* by index in conf_files_list() */
	const char *original;                    /* NULL: it is not kept */
};

/* Writes the content of image.json. */
void image_record_write(struct text *t, const struct image *image, const struct image_sums *sums);

/* The parts of a record, for remade.h. The first writes what precedes the original and the
 * variants. The last one writes the checksum, and closes record and object. */
void image_record_begin(struct json *j, const struct image *image);
void image_record_original(struct json *j, const struct image *image, const char *sum);
void image_record_file(struct json *j, const struct image *image, unsigned file,
                       const struct image_sums *sums);
void image_record_end(struct json *j);

#endif

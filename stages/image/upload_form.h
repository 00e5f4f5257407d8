/*
 * upload_form.h - a form that is being parsed in pieces, and its parts that are files.
 *
 * Knows no format of files. The owner of the connection's event.
 */
#ifndef DARKROOM_IMAGE_UPLOAD_FORM_H
#define DARKROOM_IMAGE_UPLOAD_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/multipart.h"
#include "plan/geometry.h"
#include "store/spool.h"

struct problem;

struct form {
	struct multipart parser[2];  /* of the form, and of a part that is a multipart/mixed */
	unsigned depth;              /* of the parser in use */
	struct multipart_part whole; /* the multipart/mixed */
	struct multipart_part *file; /* pool memory */
	unsigned file_count, file_room;
	char focus[FOCUS_TEXT_MAX];  /* the field focus; "": none */
	struct image_texts metadata; /* of the fields that store.metadata names */
	unsigned bad_count;          /* of the files, not JPEGs */
	uint64_t part_count;         /* of all parts, plain fields included */
};

/* Begins a form; the arguments as for multipart_init(). Returns NULL if there is no memory. */
struct form *form_new(const char *boundary, size_t boundary_length, size_t header_max);
void form_free(struct form *form); /* NULL is ignored */

/* Appends a file. Returns false if there is no memory. */
bool form_add_file(struct form *form, const struct multipart_part *part);

/* Keeps a plain field of the form if it has a meaning: "focus", and the names in metadata, which is
 * store.metadata. Others are ignored. Returns false with the problem set if the value is wrong. */
bool form_keep_field(struct form *form, const struct multipart_part *part, const char *body,
                     const char *metadata, struct problem *problem);

#endif

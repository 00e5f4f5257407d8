/* page_files.h - the files of stages/page/, which are part of the program. Any thread. */
#ifndef DARKROOM_HTTP_PAGE_FILES_H
#define DARKROOM_HTTP_PAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct page_file {
	const char *path; /* of the request */
	const char *type; /* Content-Type */
	const char *data, *end;
	bool is_for_operators;
};

/* Returns the file at the index; NULL after the last. */
const struct page_file *page_file_at(unsigned index);

#define PAGE_ETAG_MAX 36

/* Writes the entity tag of the file, a checksum in quotation marks. */
void page_file_etag(const struct page_file *file, char etag[PAGE_ETAG_MAX]);

#endif

/* page_files.h - the files of stages/page/ and openapi.json, which are part of the program. Any
 * thread. */
#ifndef DARKROOM_PAGE_PAGE_FILES_H
#define DARKROOM_PAGE_PAGE_FILES_H

enum page_audience {
	PAGE_FOR_CLIENTS,   /* with server.page, and at the administrative address */
	PAGE_FOR_OPERATORS, /* where /stats is served */
	PAGE_FOR_ALL
};

struct page_file {
	const char *path; /* of the request */
	const char *type; /* Content-Type */
	const char *data, *end;
	enum page_audience audience;
};

/* Returns the file at the index; NULL after the last. */
const struct page_file *page_file_at(unsigned index);

#define PAGE_ETAG_MAX 36

/* Writes the entity tag of the file, a checksum in quotation marks. */
void page_file_etag(const struct page_file *file, char etag[PAGE_ETAG_MAX]);

#endif

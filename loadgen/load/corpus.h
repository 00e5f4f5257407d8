/*
 * corpus.h - the pictures in memory, each with a request that is ready to be sent.
 *
 * Filled once by the main thread, then read by all threads.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CORPUS_H
#define DARKROOM_LOADGEN_LOAD_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define REQUEST_PARTS_MAX 5 /* with those that corpus_add_field() adds */

struct corpus_file {
	char *name;
	uint64_t size; /* bytes of the picture */
	/* head, picture and end of the form; all from malloc */
	struct iovec parts[REQUEST_PARTS_MAX];
	unsigned part_count;
	bool is_broken; /* by its name: a 4xx is the right answer */
};

struct corpus {
	struct corpus_file *list;
	size_t count;
	size_t room;
	uint64_t total_bytes;
	uint32_t *order; /* shuffled indices */
};

struct corpus_conf {
	const char *path;
	const char *authority;
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	bool is_form;
	bool is_get;   /* one request without a picture, and no files */
	uint64_t seed; /* of the order and of the forms' boundaries */
};

/*
 * Reads the files and, of directories and all below them, the files named .jpg or .jpeg in the
 * order of their names. Makes the requests and shuffles them. With is_get there are no paths, and
 * one request. Returns 0, or -1 after reporting what is wrong. Call corpus_fini() in either case.
 */
int corpus_read(struct corpus *c, char *const *paths, size_t path_count,
                const struct corpus_conf *conf);
void corpus_fini(struct corpus *c);

/* Makes the parts of the file's request with one more header field, which stays the caller's.
 * Returns their number. */
unsigned corpus_add_field(const struct corpus_file *file, char *line, size_t length,
                          struct iovec parts[REQUEST_PARTS_MAX]);

#endif

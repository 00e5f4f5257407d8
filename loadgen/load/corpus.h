/*
 * corpus.h - the pictures, all in memory, each with its request ready to be sent.
 *
 * Filled once by the main thread, then read by all.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CORPUS_H
#define DARKROOM_LOADGEN_LOAD_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define REQUEST_PARTS_MAX 3

struct corpus_file {
	char *name;
	uint64_t size;                         /* of the picture */
	struct iovec parts[REQUEST_PARTS_MAX]; /* the request: head, picture, end of the form; all
	                                       from malloc */
	unsigned part_count;
	bool is_broken; /* says its name: a 4xx is the right answer */
};

struct corpus {
	struct corpus_file *list;
	size_t count;
	size_t room;
	uint64_t total_bytes;
	uint32_t *order; /* the shuffled order */
};

struct corpus_conf {
	const char *path;
	const char *authority;
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	bool is_form;
	uint64_t seed;
};

/*
 * Reads files, and from directories (with all below them) what ends in .jpg or .jpeg, in the order
 * of the names; makes the requests and shuffles. Returns 0, or -1 after saying on standard error
 * what is wrong. corpus_fini() in any case.
 */
int corpus_read(struct corpus *f, char *const *paths, size_t path_count,
                const struct corpus_conf *conf);
void corpus_fini(struct corpus *f);

#endif

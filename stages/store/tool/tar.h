/*
 * tar.h - tar archives (POSIX.1-2017, pax: "ustar Interchange Format" and "pax
 * Extended Header"), as far as export and import of a store need them.
 *
 * libarchive reads more formats, but the daemon would load it and its libraries (libxml2, zlib,
 * liblzma and others) into a process that serves the network. The archive is not trusted, and
 * memory is fixed, whatever the archive says. Any thread, one for each reader.
 */
#ifndef DARKROOM_STORE_TOOL_TAR_H
#define DARKROOM_STORE_TOOL_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "store/store_find.h"
#include "store/store_path.h"

#define TAR_BLOCK 512
#define TAR_NAME_MAX 257 /* prefix, slash, name and zero */
#define TAR_PAX_MAX 4096 /* bytes of a pax header's records */
#define TAR_COMMENT_MAX 64

enum tar_type {
	TAR_FILE = '0',
	TAR_DIRECTORY = '5',
	TAR_PAX = 'x',        /* records about the next member */
	TAR_PAX_GLOBAL = 'g', /* records about all members */
	TAR_OTHER = '?'       /* links, devices and all others */
};

struct tar_header {
	char name[TAR_NAME_MAX];
	enum tar_type type;
	uint64_t size; /* bytes of data behind the header; 0 of TAR_DIRECTORY and TAR_OTHER */
};

/* Reads a header. Returns 0, or -EINVAL if it is damaged or not supported: a wrong checksum, a size
 * that is not octal, or data behind what is not a file. */
int tar_header_read(struct tar_header *h, const uint8_t block[TAR_BLOCK]);

/* Writes a header of a member whose name has at most 99 bytes. mtime: seconds since 1970. */
void tar_header_write(uint8_t block[TAR_BLOCK], const struct tar_header *h, unsigned mode,
                      uint64_t mtime);

/* What the records of a pax header say. */
struct tar_pax {
	char tag[STORE_TAG_MAX];       /* of the attribute STORE_TAG_ATTRIBUTE; "": none */
	char comment[TAR_COMMENT_MAX]; /* its beginning; "": none */
};

/* Reads records, and adds to *p. Returns 0, or -EINVAL if they are damaged, or change name, size or
 * meaning of a member. */
int tar_pax_read(struct tar_pax *p, const char *data, size_t size);

/* Writes one record. Returns its length. The value must be short. */
size_t tar_pax_write(char *to, size_t size, const char *key, const char *value);

#define TAR_TAG_KEY "SCHILY.xattr." STORE_TAG_ATTRIBUTE

/* Returns the bytes that follow data of that size, up to the next block. */
size_t tar_padding(uint64_t size);

/* ---- the members of an archive from a stream, in their order ---- */

struct tar_reader {
	FILE *in;               /* borrowed */
	uint64_t left;          /* bytes of the member's data that were not read */
	size_t padding;         /* behind them */
	struct tar_pax global;  /* of all members */
	struct tar_pax pax;     /* of the present one */
	struct tar_header head; /* the present one */
};

#define TAR_END 1

/* Skips the rest of the present member, and reads the header of the next one into r->head and
 * r->pax. It is a file, a directory, or TAR_OTHER. Returns 0, TAR_END behind the last one, or
 * -errno: -EINVAL for what is not such an archive, -ENODATA if the archive ends too early. The last
 * call is the one that does not return 0. */
int tar_reader_next(struct tar_reader *r);

/* Reads up to size bytes of the member's data. Returns their number, 0 at its end, or -errno; see
 * tar_reader_next(). */
long tar_reader_data(struct tar_reader *r, void *data, size_t size);

#endif

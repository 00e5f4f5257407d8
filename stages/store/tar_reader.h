/*
 * tar_reader.h - the members of a tar archive from a stream, in their order. The archive is not
 * trusted. Memory is fixed, whatever the archive says. One thread.
 */
#ifndef DARKROOM_STORE_TAR_READER_H
#define DARKROOM_STORE_TAR_READER_H

#include <stddef.h>
#include <stdint.h>

#include "tar_header.h"

struct tar_reader {
	/* Reads up to size > 0 bytes. Returns their number, 0 at the end, or -errno. */
	long (*read)(void *arg, void *data, size_t size);
	void *arg;
	uint64_t left;          /* bytes of the member's data that were not read */
	size_t padding;         /* behind them */
	uint64_t bytes;         /* read so far */
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

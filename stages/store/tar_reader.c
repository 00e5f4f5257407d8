/* tar_reader.c - reads a tar archive. One thread. */
#include "tar_reader.h"

#include <errno.h>
#include <string.h>

/* Returns 0, -ENODATA at the end of the stream, or -errno. */
static int read_all(struct tar_reader *r, void *data, size_t size)
{
	char *to = data;

	while (size > 0) {
		long n = r->read(r->arg, to, size);

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		r->bytes += (uint64_t)n;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

static int skip(struct tar_reader *r)
{
	char data[16 * TAR_BLOCK];
	long n;

	do
		n = tar_reader_data(r, data, sizeof data);
	while (n > 0);
	return n < 0 ? (int)n : read_all(r, data, r->padding);
}

static int read_pax(struct tar_reader *r)
{
	char data[TAR_PAX_MAX + TAR_BLOCK];
	size_t size = (size_t)r->head.size;
	int err = read_all(r, data, size + tar_padding(size));

	if (err)
		return err;
	return tar_pax_read(r->head.type == TAR_PAX_GLOBAL ? &r->global : &r->pax, data, size);
}

int tar_reader_next(struct tar_reader *r)
{
	static const uint8_t zeros[TAR_BLOCK];
	uint8_t block[TAR_BLOCK];
	int err = skip(r);

	r->pax = (struct tar_pax){ .tag = "" };
	while (!err) {
		err = read_all(r, block, sizeof block);
		if (!err && memcmp(block, zeros, sizeof zeros) == 0)
			return TAR_END;
		if (!err)
			err = tar_header_read(&r->head, block);
		if (err)
			break;
		if (r->head.type != TAR_PAX && r->head.type != TAR_PAX_GLOBAL) {
			r->left = r->head.size;
			r->padding = tar_padding(r->head.size);
			return 0;
		}
		err = read_pax(r);
	}
	return err;
}

long tar_reader_data(struct tar_reader *r, void *data, size_t size)
{
	size_t n = r->left < size ? (size_t)r->left : size;

	if (n == 0)
		return 0;
	int err = read_all(r, data, n);

	if (err)
		return err;
	r->left -= n;
	return (long)n;
}

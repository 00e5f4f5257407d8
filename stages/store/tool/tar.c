/* tar.c - headers, records and the reader of tar archives. One thread for each reader. */
#include "tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

/* Offsets and lengths of the fields. */
#define NAME_LENGTH 100
#define MODE_AT 100
#define SIZE_AT 124
#define MTIME_AT 136
#define SUM_AT 148
#define SUM_LENGTH 8
#define TYPE_AT 156
#define MAGIC_AT 257
#define PREFIX_AT 345
#define PREFIX_LENGTH 155
#define NUMBER_LENGTH 12

/* The sum of all bytes, with the sum's own field as spaces. */
static unsigned sum_of(const uint8_t block[TAR_BLOCK])
{
	unsigned sum = SUM_LENGTH * ' ';

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= SUM_AT && i < SUM_AT + SUM_LENGTH ? 0 : block[i];
	return sum;
}

/* Reads octal digits between spaces or zeros. */
static bool read_octal(const uint8_t *field, size_t length, uint64_t *number)
{
	size_t i = 0, digits = 0;

	*number = 0;
	while (i < length && field[i] == ' ')
		i++;
	for (; i < length && field[i] >= '0' && field[i] <= '7'; i++, digits++)
		*number = *number << 3 | (uint64_t)(field[i] - '0');
	return digits > 0 && (i == length || field[i] == ' ' || field[i] == '\0');
}

static void read_name(struct tar_header *h, const uint8_t block[TAR_BLOCK])
{
	bool is_posix = memcmp(block + MAGIC_AT, "ustar", 6) == 0;
	size_t prefix = is_posix ? strnlen((const char *)block + PREFIX_AT, PREFIX_LENGTH) : 0;

	snprintf(h->name, sizeof h->name, "%.*s%s%.*s", (int)prefix,
	         (const char *)block + PREFIX_AT, prefix ? "/" : "", NAME_LENGTH,
	         (const char *)block);
}

int tar_header_read(struct tar_header *h, const uint8_t block[TAR_BLOCK])
{
	uint64_t sum;

	*h = (struct tar_header){ .type = TAR_OTHER };
	if (memcmp(block + MAGIC_AT, "ustar", 5) != 0 ||
	    !read_octal(block + SUM_AT, SUM_LENGTH, &sum) || sum != sum_of(block) ||
	    !read_octal(block + SIZE_AT, NUMBER_LENGTH, &h->size))
		return -EINVAL;
	read_name(h, block);
	switch (block[TYPE_AT]) {
	case '\0':
	case TAR_FILE:
		h->type = TAR_FILE;
		return 0;
	case TAR_PAX:
	case TAR_PAX_GLOBAL:
		h->type = (enum tar_type)block[TYPE_AT];
		return h->size <= TAR_PAX_MAX ? 0 : -EINVAL;
	case TAR_DIRECTORY:
		h->type = TAR_DIRECTORY;
		break;
	default:
		break;
	}
	/* Programs disagree on whether data follows these. */
	return h->size == 0 ? 0 : -EINVAL;
}

void tar_header_write(uint8_t block[TAR_BLOCK], const struct tar_header *h, unsigned mode,
                      uint64_t mtime)
{
	char *at = (char *)block;
	size_t length = strlen(h->name);

	assert(length < NAME_LENGTH && mode < 010000 && h->size < UINT64_C(1) << 33);
	memset(block, 0, TAR_BLOCK);
	memcpy(at, h->name, length);
	snprintf(at + MODE_AT, 8, "%07o", mode);
	snprintf(at + MODE_AT + 8, 8, "%07o", 0U); /* owner and group: root */
	snprintf(at + MODE_AT + 16, 8, "%07o", 0U);
	snprintf(at + SIZE_AT, NUMBER_LENGTH, "%011" PRIo64, h->size);
	snprintf(at + MTIME_AT, NUMBER_LENGTH, "%011" PRIo64, mtime & 077777777777);
	block[TYPE_AT] = (uint8_t)h->type;
	memcpy(at + MAGIC_AT, "ustar\00000", 8);
	snprintf(at + SUM_AT, SUM_LENGTH, "%06o", sum_of(block));
	block[SUM_AT + SUM_LENGTH - 1] = ' ';
}

/* ---- records: "length key=value\n" ---- */

/* Returns whether a record changes what the header says about the member or its data. */
static bool is_unsupported(const char *key, size_t length)
{
	static const char *const names[] = { "path", "linkpath", "size", "hdrcharset" };
	static const char sparse[] = "GNU.sparse.";

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strlen(names[i]) == length && memcmp(key, names[i], length) == 0)
			return true;
	return length >= sizeof sparse - 1 && memcmp(key, sparse, sizeof sparse - 1) == 0;
}

static bool is_key(const char *key, size_t length, const char *expected)
{
	return strlen(expected) == length && memcmp(key, expected, length) == 0;
}

/* Returns the length of the record at data[0..size), or 0 if it is damaged; sets *key. */
static size_t record_length(const char *data, size_t size, size_t *key)
{
	size_t length = 0, i = 0;

	for (; i < size && i < 5 && data[i] >= '0' && data[i] <= '9'; i++)
		length = length * 10 + (size_t)(data[i] - '0');
	if (i == 0 || i >= size || data[i] != ' ' || length > size || length < i + 3 ||
	    data[length - 1] != '\n')
		return 0;
	*key = i + 1;
	return length;
}

int tar_pax_read(struct tar_pax *p, const char *data, size_t size)
{
	size_t key, length;

	for (; size > 0; data += length, size -= length) {
		length = record_length(data, size, &key);
		const char *equals = length ? memchr(data + key, '=', length - key) : NULL;

		if (!equals)
			return -EINVAL;
		size_t key_length = (size_t)(equals - data) - key;
		size_t value_length = length - key - key_length - 2;

		if (is_unsupported(data + key, key_length))
			return -EINVAL;
		if (is_key(data + key, key_length, TAR_TAG_KEY) && value_length < sizeof p->tag) {
			memcpy(p->tag, equals + 1, value_length);
			p->tag[value_length] = '\0';
		} else if (is_key(data + key, key_length, "comment")) {
			snprintf(p->comment, sizeof p->comment, "%.*s", (int)value_length,
			         equals + 1);
		}
	}
	return 0;
}

size_t tar_pax_write(char *to, size_t size, const char *key, const char *value)
{
	/* The length counts its own digits, of which there are two or three. */
	size_t rest = strlen(key) + strlen(value) + 3, length = rest + (rest + 2 > 99 ? 3 : 2);
	int n = snprintf(to, size, "%zu %s=%s\n", length, key, value);

	assert(n >= 0 && (size_t)n == length && length < size);
	return length;
}

/* ---- reading an archive ---- */

size_t tar_padding(uint64_t size)
{
	return (size_t)(-size & (TAR_BLOCK - 1));
}

/* Returns 0, -ENODATA at the end of the stream, or -errno. */
static int read_all(struct tar_reader *r, void *data, size_t size)
{
	errno = 0;
	if (fread(data, 1, size, r->in) == size)
		return 0;
	return !ferror(r->in) ? -ENODATA : errno ? -errno : -EIO;
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

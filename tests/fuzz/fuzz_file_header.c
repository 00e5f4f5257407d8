/*
 * fuzz_file_header.c - headers of PNG and WebP: what is found is within the file, and what is
 * computed of it does not overflow.
 */
#include "base/pool.h"
#include "jail/file_header.h"
#include "jail/jail_protocol.h"
#include "pixel/metadata.h"
#include "target.h"

const unsigned target_mutants = 500;

static void check_part(const struct file_part *part, const uint8_t *data, size_t size)
{
	if (!part->size)
		return;
	assert(part->data >= data && part->data <= data + size);
	assert(part->size <= (size_t)(data + size - part->data));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);
	struct file_header h;
	struct metadata m;

	file_header_read(&h, copy, size);
	assert((h.width == 0) == (h.height == 0));
	check_part(&h.exif, copy, size);
	check_part(&h.icc, copy, size);
	/* Sides up to this have passed limits.width and height. */
	if (h.width <= 65500 && h.height <= 65500) {
		uint64_t area = (uint64_t)h.width * h.height;

		assert(file_header_memory(&h, h.width, h.height) >= (h.is_whole ? area : 0));
		assert(file_header_memory(&h, 1, 1) < UINT64_C(1) << 40);
	}
	assert(file_header_icc_max(&h) <= ICC_BYTES_MAX);
	metadata_read(&m, copy, size);
	assert(m.orientation >= 1 && m.orientation <= 8 && m.icc_bytes <= ICC_BYTES_MAX);
	free(copy);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\6\0\0\1crc!"
				  "\0\0\0\x16"
				  "eXIfII*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0crc!"
				  "\0\0\0\4iCCPa\0\0bcrc!\0\0\0\1tRNS\0crc!\0\0\0\4IDATabcdcrc!";
	static const char webp[] =
		"RIFF\x50\0\0\0WEBPVP8X\n\0\0\0\x3c\0\0\0\xff\0\0\xff\0\0"
		"ICCP\4\0\0\0abcdEXIF\x06\0\0\0II*\0\x08\0"
		"VP8L\5\0\0\0\x2f\xff\xc0\x3f\x10\0VP8 \n\0\0\0\0\0\0\x9d\1\x2a\1\0\1\0";

	emit(png, sizeof png - 1);
	emit(webp, sizeof webp - 1);
	/* Without its extended header, each kind of picture tells its own size. */
	emit("RIFF\x10\0\0\0WEBPVP8L\5\0\0\0\x2f\xff\xc0\x3f\x10", 25);
	emit("RIFF\x10\0\0\0WEBPVP8 \n\0\0\0\0\0\0\x9d\1\x2a\1\0\1\0", 30);
}

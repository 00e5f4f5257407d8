/* codec_png.c - libpng: all kinds of samples become 8 bits of grey or RGB, perhaps with alpha. */
#include "codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libpng16.so.16"
#define CHUNK_MAX (4U << 20) /* bytes of a colour profile */
#define CHUNKS_MAX 16        /* that the library keeps */

#define FULL_NAME(name) png_##name
/* clang-format off */
#define FUNCTIONS(X) \
	X(create_read_struct) X(create_info_struct) X(set_read_fn) X(get_io_ptr) X(get_error_ptr) \
	X(error) X(set_user_limits) X(set_chunk_cache_max) X(set_chunk_malloc_max) \
	X(set_keep_unknown_chunks) X(read_info) X(get_image_width) X(get_image_height) \
	X(get_color_type) X(set_expand) X(set_scale_16) X(set_gray_to_rgb) \
	X(set_interlace_handling) X(read_update_info) X(get_channels) X(get_rowbytes) X(read_row) \
	X(get_iCCP)
/* clang-format on */

CODEC_LIBRARY(codec_png_load, LIBRARY)

struct png_file {
	const uint8_t *at;
	size_t left;
	png_structp png;
	png_infop info;
	jmp_buf failed;
};

static void read_bytes(png_structp png, png_bytep to, png_size_t count)
{
	struct png_file *f = lib.get_io_ptr(png);

	if (count > f->left)
		lib.error(png, "the end is missing");
	memcpy(to, f->at, count);
	f->at += count;
	f->left -= count;
}

_Noreturn static void on_error(png_structp png, png_const_charp text)
{
	struct png_file *f = lib.get_error_ptr(png);

	(void)text;
	longjmp(f->failed, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

/* Reads the header. Only what the picture needs is parsed. Returns whether it is the one that was
 * announced. */
static bool begin(struct png_file *f, struct codec_job *job)
{
	static const png_byte unread[] =
		"tEXt\0zTXt\0iTXt\0eXIf\0sPLT\0hIST\0pCAL\0sCAL\0tIME\0bKGD\0oFFs\0pHYs\0sBIT";

	lib.set_read_fn(f->png, f, read_bytes);
	lib.set_user_limits(f->png, job->request->width, job->request->height);
	lib.set_chunk_cache_max(f->png, CHUNKS_MAX);
	lib.set_chunk_malloc_max(f->png, CHUNK_MAX);
	lib.set_keep_unknown_chunks(f->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
	lib.set_keep_unknown_chunks(f->png, PNG_HANDLE_CHUNK_NEVER, unread, sizeof unread / 5);
	lib.read_info(f->png, f->info);
	lib.set_expand(f->png);
	lib.set_scale_16(f->png);
	if (job->request->plane_count == 3 &&
	    !(lib.get_color_type(f->png, f->info) & PNG_COLOR_MASK_COLOR))
		lib.set_gray_to_rgb(f->png);
	return codec_is_size(job, lib.get_image_width(f->png, f->info),
	                     lib.get_image_height(f->png, f->info));
}

static enum jail_status read_rows(struct png_file *f, struct codec_job *job)
{
	uint32_t height = job->request->height;
	int passes = lib.set_interlace_handling(f->png);

	lib.read_update_info(f->png, f->info);
	size_t bytes = lib.get_rowbytes(f->png, f->info);
	uint8_t *rows = calloc(passes > 1 ? height : 1, bytes);

	if (!rows || !codec_rows_begin(job, job->request->width, lib.get_channels(f->png, f->info),
	                               job->request->reduce))
		return JAIL_DAMAGED;
	for (int pass = 1; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++) {
			lib.read_row(f->png, rows + y * bytes, NULL);
			codec_count(job, job->width);
		}
	for (uint32_t y = 0; y < height; y++) {
		uint8_t *row = passes > 1 ? rows + y * bytes : rows;

		lib.read_row(f->png, row, NULL);
		codec_row(job, row);
	}
	return codec_rows_end(job) ? JAIL_DECODED : JAIL_DAMAGED;
}

static void take_icc(struct png_file *f, struct codec_job *job)
{
	png_charp name;
	png_bytep icc;
	png_uint_32 size;
	int compression;

	if (lib.get_iCCP(f->png, f->info, &name, &compression, &icc, &size))
		codec_put(job, icc, size);
}

enum jail_status codec_png(struct codec_job *job)
{
	struct png_file *f = calloc(1, sizeof *f);

	if (!f)
		return JAIL_NO_MEMORY;
	f->at = job->source;
	f->left = job->request->source_bytes;
	f->png = lib.create_read_struct(PNG_LIBPNG_VER_STRING, f, on_error, on_warning);
	f->info = f->png ? lib.create_info_struct(f->png) : NULL;
	if (!f->info || setjmp(f->failed))
		return JAIL_DAMAGED;
	if (!begin(f, job))
		return JAIL_DAMAGED;
	enum jail_status status = read_rows(f, job);

	if (status == JAIL_DECODED)
		take_icc(f, job);
	return status;
}

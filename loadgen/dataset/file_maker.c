/*
 * file_maker.c - finds the width, height and detail that give a scene's file the specified size.
 *
 * First the number of pixels is chosen to suit the scene, as the content of a photograph determines
 * the size of its file. Then the amount of fine texture and noise corrects the size. Most trials
 * encode only a sample of the picture's rows. Any thread, with a maker of its own.
 */
#include "file_maker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/random.h"
#include "exif_writer.h"
#include "scene.h"

#define SAMPLE_ROWS 8 /* least number of rows of MCUs in a sample */
#define SAMPLE_MAX 12 /* a sample has at least every 12th row */
#define DETAIL_MIN 16
#define DETAIL_MAX 1536
#define SHAPES 3      /* trials of width and height */
#define TRIALS 7      /* of detail, on a sample */
#define ENCODINGS 3   /* of the whole picture */
#define NEAR_SAMPLE 5 /* permille off that are close enough */
#define NEAR_WHOLE 15
#define THUMBNAIL_SIDE 160
#define JUNK_MAX (256u << 10)

struct file_maker {
	const struct texture_set *textures;
	struct jpeg_writer *writer;
	struct scene scene;
	uint8_t exif[EXIF_SEGMENT_MAX];
	size_t exif_size; /* 0: none */
	uint8_t junk[JUNK_MAX];
};

struct file_maker *file_maker_new(const struct texture_set *textures)
{
	struct file_maker *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->textures = textures;
	m->writer = jpeg_writer_new();
	if (m->writer)
		return m;
	free(m);
	return NULL;
}

void file_maker_free(struct file_maker *m)
{
	if (!m)
		return;
	jpeg_writer_free(m->writer);
	free(m);
}

static void compose(struct file_maker *m, const struct file_spec *f, int32_t width, int32_t height)
{
	static const enum scene_top tops[] = {
		/* by EXIF's orientation */
		0,
		SCENE_TOP_FIRST_ROW,
		SCENE_TOP_FIRST_ROW,
		SCENE_TOP_LAST_ROW,
		SCENE_TOP_LAST_ROW,
		SCENE_TOP_FIRST_COLUMN,
		SCENE_TOP_FIRST_COLUMN,
		SCENE_TOP_LAST_COLUMN,
		SCENE_TOP_LAST_COLUMN,
	};

	scene_compose(&m->scene, m->textures, f->id, width, height, tops[f->orientation]);
}

/* Makes a camera's EXIF segment with a thumbnail of the picture. */
static int make_exif(struct file_maker *m, const struct file_spec *f)
{
	int32_t width = f->form.width, height = f->form.height,
		longer = width > height ? width : height, rows;

	assert(longer > 0);
	struct jpeg_form form = { .width = THUMBNAIL_SIDE * width / longer,
		                  .height = THUMBNAIL_SIDE * height / longer,
		                  .quality = 80,
		                  .sampling = JPEG_422 };
	struct random r = random_stream(f->id, 3);
	struct jpeg_stream stream;
	struct exif exif = {
		.id = f->id, .orientation = f->orientation, .width = width, .height = height
	};
	int err;

	compose(m, f, form.width, form.height);
	err = jpeg_writer_encode(m->writer, &m->scene, &form, SCENE_DETAIL_ONE, 1, &stream, &rows);
	if (err)
		return err;
	exif.thumbnail = stream.data;
	exif.thumbnail_size = stream.size <= EXIF_THUMBNAIL_MAX ? stream.size : 0;
	exif.note_size = (size_t)random_range(&r, EXIF_NOTE_MIN, f->bytes < 250000 ? 1000 : 9000);
	m->exif_size = exif_write(&exif, m->exif);
	return 0;
}

/* Returns about the size of markers and tables, which do not grow with the picture. */
static uint32_t header_bytes(const struct jpeg_form *form)
{
	if (form->sampling == JPEG_GREY)
		return form->is_optimised ? 180 : 330;
	return form->is_optimised ? 360 : 620;
}

/* Returns n such that a sample has every n-th row of MCUs. */
static int32_t sample_of(const struct jpeg_form *form)
{
	int32_t sample = form->height / jpeg_mcu_height(form->sampling) / SAMPLE_ROWS;

	return sample < 1 ? 1 : sample > SAMPLE_MAX ? SAMPLE_MAX : sample;
}

/* Encodes the picture or a sample. *size gets the size of the whole file, or an estimate. */
static int measure(struct file_maker *m, const struct file_spec *f, int32_t detail, int32_t sample,
                   struct jpeg_stream *stream, uint32_t *size)
{
	uint64_t header = header_bytes(&f->form);
	int32_t rows;
	int err = jpeg_writer_encode(m->writer, &m->scene, &f->form, detail, sample, stream, &rows);

	if (err)
		return err;
	if (sample == 1)
		*size = (uint32_t)(m->exif_size + stream->size);
	else
		*size = (uint32_t)(m->exif_size + header +
		                   (stream->size - header) * (uint64_t)f->form.height /
		                           (uint64_t)rows);
	assert(*size > 0);
	return 0;
}

/* Chooses width and height, and leaves the scene composed at that size. */
static int choose_shape(struct file_maker *m, struct file_spec *f)
{
	uint64_t pixels = (uint64_t)f->bytes * 5; /* 1.6 bits each for the first trial */
	int32_t width = 0, height = 0;
	int i, err = 0;

	m->exif_size = 0;
	for (i = 0; i < SHAPES; i++) {
		struct jpeg_stream stream;
		int64_t fixed, is, wanted;
		uint32_t size;

		file_mix_shape(f, pixels);
		if (f->form.width == width && f->form.height == height)
			break;
		width = f->form.width;
		height = f->form.height;
		if (f->is_camera)
			err = make_exif(m, f);
		if (err)
			return err;
		compose(m, f, width, height);
		err = measure(m, f, SCENE_DETAIL_ONE, sample_of(&f->form), &stream, &size);
		if (err)
			return err;
		fixed = (int64_t)m->exif_size + header_bytes(&f->form);
		wanted = f->bytes > fixed + 50 ? f->bytes - fixed : 50;
		is = size > fixed + 20 ? size - fixed : 20;
		pixels = (uint64_t)(width * (int64_t)height * wanted / is);
	}
	return 0;
}

static bool is_near(uint32_t size, uint32_t wanted, uint32_t permille)
{
	uint64_t difference = size > wanted ? size - wanted : wanted - size;

	return difference * 1000 <= (uint64_t)wanted * permille;
}

static int32_t clamp_detail(int64_t detail)
{
	return (int32_t)(detail < DETAIL_MIN   ? DETAIL_MIN
	                 : detail > DETAIL_MAX ? DETAIL_MAX
	                                       : detail);
}

/* Searches the detail that gives the file the wanted size. *detail is the first trial and gets the
 * last one. */
static int search_detail(struct file_maker *m, const struct file_spec *f, uint32_t wanted,
                         int32_t sample, int32_t *detail, struct jpeg_stream *stream,
                         uint32_t *size)
{
	struct {
		int64_t detail, size;
	} low = { 0, 0 }, high = { 0, 0 }; /* the last trials that were too small and too large */
	int32_t next = *detail;
	int i, err;

	for (i = 0; i < TRIALS; i++) {
		*detail = next;
		err = measure(m, f, *detail, sample, stream, size);
		if (err || is_near(*size, wanted, sample == 1 ? NEAR_WHOLE : NEAR_SAMPLE))
			return err;
		if (*size < wanted) {
			low.detail = *detail;
			low.size = *size;
		} else {
			high.detail = *detail;
			high.size = *size;
		}
		if (low.size > 0 && high.size > low.size)
			next = (int32_t)(low.detail + (high.detail - low.detail) *
			                                      (wanted - low.size) /
			                                      (high.size - low.size));
		else
			next = clamp_detail((int64_t)*detail * wanted / *size * wanted / *size);
		if (next == *detail)
			return 0;
	}
	return 0;
}

/* Searches the detail on a sample. The size of the whole corrects the next search. */
static int fit_detail(struct file_maker *m, const struct file_spec *f, struct jpeg_stream *stream,
                      uint32_t *size)
{
	int32_t detail = SCENE_DETAIL_ONE, sample = sample_of(&f->form);
	uint32_t wanted = f->bytes, sampled = 0;
	int i, err = 0;

	for (i = 0; i < ENCODINGS && !err; i++) {
		err = search_detail(m, f, wanted, sample, &detail, stream, &sampled);
		*size = sampled;
		if (err || sample == 1)
			return err;
		err = measure(m, f, detail, 1, stream, size);
		if (err || is_near(*size, f->bytes, NEAR_WHOLE))
			return err;
		wanted = (uint32_t)((uint64_t)f->bytes * sampled / *size);
	}
	return err;
}

/* Makes the picture with a usual width, or with any if no usual one gives the specified size. */
static int make_picture(struct file_maker *m, struct file_spec *f, struct jpeg_stream *stream)
{
	uint32_t size = 0;
	int err = choose_shape(m, f);

	if (!err)
		err = fit_detail(m, f, stream, &size);
	if (err || is_near(size, f->bytes, NEAR_WHOLE))
		return err;
	f->has_camera_size = false;
	f->has_common_size = false;
	err = choose_shape(m, f);
	return err ? err : fit_detail(m, f, stream, &size);
}

/* Makes a file that users mistake for a picture. */
static void make_junk(struct file_maker *m, const struct file_spec *f)
{
	static const char *const heads[] = { "\x89PNG\r\n\x1a\n", "GIF89a", "%PDF-1.4\n",
		                             "<!DOCTYPE html>\n", "PK\3\4" };
	struct random r = random_stream(f->id, 5);
	const char *head = heads[random_range(&r, 0, (int32_t)COUNT_OF(heads) - 1)];
	uint32_t i;

	assert(f->bytes <= JUNK_MAX);
	for (i = 0; i < f->bytes; i++)
		m->junk[i] = (uint8_t)random_range(&r, 0, 255);
	memcpy(m->junk, head, strlen(head));
}

static struct iovec part(const uint8_t *data, size_t size, size_t *left)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)data,
		           .iov_len = size < *left ? size : *left };

	*left -= v.iov_len;
	return v;
}

int file_maker_make(struct file_maker *m, struct file_spec *f, struct iovec parts[FILE_PARTS])
{
	size_t left = f->kind == FILE_TRUNCATED ? f->cut_bytes : SIZE_MAX;
	struct jpeg_stream stream = { m->junk, 0 };
	int err = 0;

	m->exif_size = 0;
	if (f->kind == FILE_NOT_JPEG) {
		make_junk(m, f);
		stream.size = f->bytes;
	} else if (f->kind != FILE_EMPTY) {
		err = make_picture(m, f, &stream);
	}
	if (err)
		return err;
	/* EXIF follows the start of image */
	parts[0] = part(stream.data, m->exif_size ? 2 : 0, &left);
	parts[1] = part(m->exif, m->exif_size, &left);
	parts[2] = part(stream.data + parts[0].iov_len, stream.size - parts[0].iov_len, &left);
	return 0;
}

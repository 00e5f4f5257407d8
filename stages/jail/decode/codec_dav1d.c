/* codec_dav1d.c - dav1d: the AV1 of an AVIF, which becomes grey or RGB of 8 bits. libaom, which
 * encodes them, decodes a picture in three times the time and four times the memory. */
#include "codec.h"

#include <dav1d/dav1d.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "jail/avif_file.h"

#define LIBRARY "libdav1d.so." CODEC_TEXT(DAV1D_API_VERSION_MAJOR)
#define PIECES_MAX 64    /* of a stream: avif_piece() walks iloc for each */
#define ONE 65536        /* of a weight */
#define CHROMA_PARTS 16U /* that a sample of chroma is counted in */

#define FULL_NAME(name) dav1d_##name
/* clang-format off */
#define FUNCTIONS(X) \
	X(default_settings) X(open) X(data_wrap) X(send_data) X(get_picture) X(picture_unref) X(flush)
/* clang-format on */

CODEC_LIBRARY(codec_dav1d_load, LIBRARY)

/* What is decoded of the file. */
struct avif {
	struct avif_file file;
	Dav1dContext *decoder;
	/* Of colour, and of alpha: the pictures of one row of cells, and the number of the next
	 * one. */
	struct layer {
		const struct avif_item *item;
		Dav1dPicture *cell;
		Dav1dPictureParameters kind; /* of the first cell */
		uint32_t next_row;
	} color, alpha;
	/* What Y, Cb and Cr add to each channel, and a sample of alpha to that. */
	struct weights {
		int32_t of[3][3], base[3], alpha, alpha_base;
	} weights;
	uint16_t *row[4];     /* Y, Cb, Cr and alpha of a row */
	uint16_t *near, *far; /* rows of chroma */
	uint8_t *pixels;
};

/* ---- decoding ---- */

static void keep(const uint8_t *data, void *cookie)
{
	(void)data;
	(void)cookie;
}

/* Returns the data of an item; NULL: there is none, or they are more than the file. Sets `joined`
 * to memory for them if they are in pieces. */
static const uint8_t *data_of(const struct avif_file *f, uint32_t id, size_t *size,
                              uint8_t **joined)
{
	struct file_part piece;
	unsigned count = avif_piece(f, id, 0, &piece);

	if (count > PIECES_MAX)
		count = 0;
	*size = count ? piece.size : 0;
	*joined = count > 1 ? malloc(f->file.size) : NULL;
	if (count <= 1 || !*joined)
		return *size ? piece.data : NULL;
	*size = 0;
	for (unsigned i = 0; i < count; i++, *size += piece.size) {
		if (!avif_piece(f, id, i, &piece) || piece.size > f->file.size - *size)
			return NULL;
		memcpy(*joined + *size, piece.data, piece.size);
	}
	return *joined;
}

/* Decodes one cell. Returns whether it is what the boxes say. */
static bool decode_cell(struct avif *a, const struct avif_item *item, uint32_t cell,
                        Dav1dPicture *to)
{
	uint8_t *joined;
	Dav1dData in = { 0 };
	size_t size;
	const uint8_t *data = data_of(&a->file, avif_cell(&a->file, item, cell), &size, &joined);
	int got = -EAGAIN;

	if (!data || lib.data_wrap(&in, data, size, keep, NULL))
		return false;
	/* Without data the decoder gives what it has kept. */
	for (unsigned idle = 0; got == -EAGAIN && idle < 2; idle += !in.sz) {
		int sent = in.sz ? lib.send_data(a->decoder, &in) : 0;

		if (sent && sent != -EAGAIN)
			return false;
		got = lib.get_picture(a->decoder, to);
	}
	lib.flush(a->decoder);
	free(joined);
	return !got && to->p.w == (int)item->cell_width && to->p.h == (int)item->cell_height;
}

/* Decodes the next row of cells, which all are of the same kind. */
static bool decode_row(struct avif *a, struct layer *l)
{
	const struct avif_item *item = l->item;

	for (uint32_t x = 0; x < item->columns; x++) {
		uint32_t n = l->next_row * item->columns + x;
		Dav1dPicture *cell = l->cell + x;

		if (l->next_row > 0)
			lib.picture_unref(cell);
		if (!decode_cell(a, item, n, cell))
			return false;
		if (n == 0)
			l->kind = cell->p;
		if (cell->p.layout != l->kind.layout || cell->p.bpc != l->kind.bpc)
			return false;
	}
	l->next_row++;
	return true;
}

/* ---- colours ---- */

/* Returns the weight of a sample that becomes 8 bits, and sets that of none. */
static double luma_weight(const Dav1dPicture *p, bool is_full_range, double *zero)
{
	unsigned above = (unsigned)p->p.bpc - 8;

	*zero = is_full_range ? 0 : 16U << above;
	return 255.0 * ONE / (is_full_range ? (256U << above) - 1 : 219U << above);
}

static double chroma_weight(const Dav1dPicture *p, bool is_full_range, double *zero)
{
	unsigned above = (unsigned)p->p.bpc - 8;

	*zero = 128U << above;
	return 255.0 * ONE / (is_full_range ? (256U << above) - 1 : 224U << above);
}

/* Finds what the matrix makes of Y, Cb and Cr (H.273, table 4). Returns whether it is known. */
static bool find_matrix(unsigned matrix, double m[3][3])
{
	static const struct {
		unsigned matrix;
		double red, blue;
	} known[] = { { 1, 0.2126, 0.0722 }, { 2, 0.299, 0.114 }, { 4, 0.3, 0.11 },
		      { 5, 0.299, 0.114 },   { 6, 0.299, 0.114 }, { 7, 0.212, 0.087 },
		      { 9, 0.2627, 0.0593 } };
	static const double identity[3][3] = { { 0, 0, 1 }, { 1, 0, 0 }, { 0, 1, 0 } },
			    ycgco[3][3] = { { 1, -1, 1 }, { 1, 1, 0 }, { 1, -1, -1 } };

	if (matrix == DAV1D_MC_IDENTITY || matrix == DAV1D_MC_SMPTE_YCGCO) {
		memcpy(m, matrix ? ycgco : identity, sizeof identity);
		return true;
	}
	for (unsigned i = 0; i < COUNT_OF(known); i++) {
		double red = known[i].red, blue = known[i].blue, green = 1 - red - blue;
		const double all[3][3] = { { 1, 0, 2 * (1 - red) },
			                   { 1, -2 * blue * (1 - blue) / green,
			                     -2 * red * (1 - red) / green },
			                   { 1, 2 * (1 - blue), 0 } };

		if (known[i].matrix != matrix)
			continue;
		memcpy(m, all, sizeof all);
		return true;
	}
	return false;
}

static int32_t rounded(double x)
{
	return (int32_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* Prepares the colours, of the boxes or else of the stream. Returns whether they are known. */
static bool begin_colors(struct avif *a)
{
	const struct avif_file *f = &a->file;
	const Dav1dPicture *p = a->color.cell;
	unsigned matrix = f->has_codes ? f->matrix : (unsigned)p->seq_hdr->mtrx,
		 transfer = f->has_codes ? f->transfer : (unsigned)p->seq_hdr->trc;
	bool is_full = f->has_codes ? f->is_full_range : p->seq_hdr->color_range,
	     is_grey = p->p.layout == DAV1D_PIXEL_LAYOUT_I400;
	double m[3][3], y_zero, c_zero, y = luma_weight(p, is_full, &y_zero),
					c = chroma_weight(p, is_full, &c_zero);

	if (transfer == AVIF_TRANSFER_PQ || transfer == AVIF_TRANSFER_HLG)
		return false;
	if (matrix == DAV1D_MC_IDENTITY && !is_grey) {
		c = y; /* these are samples of blue and red */
		c_zero = y_zero;
	}
	if (!find_matrix(is_grey ? AVIF_MATRIX_UNSPECIFIED : matrix, m))
		return false;
	for (unsigned i = 0; i < 3; i++) {
		double base = ONE / 2.0 - m[i][0] * y * y_zero;

		a->weights.of[i][0] = rounded(m[i][0] * y);
		for (unsigned k = 1; k < 3 && !is_grey; k++) {
			a->weights.of[i][k] = rounded(m[i][k] * c / CHROMA_PARTS);
			base -= m[i][k] * c * c_zero;
		}
		a->weights.base[i] = rounded(base);
	}
	if (a->alpha.cell) {
		y = luma_weight(a->alpha.cell, a->alpha.cell->seq_hdr->color_range, &y_zero);
		a->weights.alpha = rounded(y);
		a->weights.alpha_base = rounded(ONE / 2.0 - y * y_zero);
	}
	return true;
}

/* ---- rows ---- */

static void load(const Dav1dPicture *p, unsigned plane, uint32_t y, uint16_t *to, uint32_t count)
{
	const uint8_t *row = (const uint8_t *)p->data[plane] + y * p->stride[plane > 0];

	if (p->p.bpc > 8)
		memcpy(to, row, count * sizeof *to);
	else
		for (uint32_t x = 0; x < count; x++)
			to[x] = row[x];
}

/* Loads chroma at each sample of luma, in parts. Those between two samples of chroma have 3/4 of
 * the nearer one and 1/4 of the other, in both directions, as in a JPEG. */
static void load_chroma(struct avif *a, const Dav1dPicture *p, unsigned plane, uint32_t y,
                        uint16_t *to)
{
	bool half_width = p->p.layout != DAV1D_PIXEL_LAYOUT_I444,
	     half_height = p->p.layout == DAV1D_PIXEL_LAYOUT_I420;
	uint32_t width = (uint32_t)p->p.w, count = jail_plane_side(width, half_width ? 2 : 1),
		 rows = jail_plane_side((uint32_t)p->p.h, 2), far_y = y;
	uint16_t *near = a->near + 1; /* with a copy of the first and the last sample beside them */

	if (half_height)
		far_y = y % 2 ? y / 2 + (y / 2 + 1 < rows) : y / 2 - (y > 0);
	load(p, plane, half_height ? y / 2 : y, near, count);
	load(p, plane, far_y, a->far, count);
	for (uint32_t x = 0; x < count; x++)
		near[x] = (uint16_t)(3 * near[x] + a->far[x]);
	near[-1] = near[0];
	near[count] = near[count - 1];
	for (uint32_t x = 0; !half_width && x < width; x++)
		to[x] = (uint16_t)(4 * near[x]);
	for (uint32_t x = 0; half_width && x < width / 2; x++) {
		to[2 * x] = (uint16_t)(3 * near[x] + near[(ptrdiff_t)x - 1]);
		to[2 * x + 1] = (uint16_t)(3 * near[x] + near[x + 1]);
	}
	if (half_width && width % 2)
		to[width - 1] = (uint16_t)(3 * near[count - 1] + near[(ptrdiff_t)count - 2]);
}

/* Loads a row of colour or alpha. Returns false if it cannot be decoded. */
static bool load_row(struct avif *a, struct layer *l, uint32_t y, uint16_t *const to[3])
{
	const struct avif_item *item = l->item;
	uint32_t width = item->cell_width, height = item->cell_height;

	while (y >= (uint64_t)l->next_row * height)
		if (!decode_row(a, l))
			return false;
	y %= height;
	for (uint32_t k = 0; k < item->columns; k++) {
		const Dav1dPicture *cell = l->cell + k;
		size_t at = (size_t)k * width;

		load(cell, 0, y, to[0] + at, width);
		if (!to[1] || cell->p.layout == DAV1D_PIXEL_LAYOUT_I400)
			continue;
		load_chroma(a, cell, 1, y, to[1] + at);
		load_chroma(a, cell, 2, y, to[2] + at);
	}
	return true;
}

static uint32_t clamp(int32_t value)
{
	value >>= 16;
	return value < 0 ? 0 : value > 255 ? 255 : (uint32_t)value;
}

/* Makes a row of pixels. Inlined for each kind. */
static inline void convert(const struct avif *a, unsigned colors, bool has_alpha)
{
	const struct avif_file *f = &a->file;
	const uint16_t *y = a->row[0] + f->left, *u = a->row[1] + f->left, *v = a->row[2] + f->left,
		       *alpha = a->row[3] + f->left;
	const struct weights k = a->weights; /* which no pixel can change */
	uint8_t *to = a->pixels;

	for (uint32_t x = 0; x < f->width; x++, to += colors + has_alpha) {
		uint32_t opaque = 255;

		if (has_alpha)
			opaque = to[colors] = (uint8_t)clamp(alpha[x] * k.alpha + k.alpha_base);
		for (unsigned c = 0; c < colors; c++) {
			const int32_t *w = k.of[c];
			uint32_t value = clamp(y[x] * w[0] + u[x] * w[1] + v[x] * w[2] + k.base[c]);

			if (f->is_premultiplied && opaque)
				value = value < opaque ? value * 255 / opaque : 255;
			to[c] = (uint8_t)value;
		}
	}
}

/* ---- a file ---- */

static bool begin_layer(struct layer *l, const struct avif_item *item)
{
	l->item = item;
	l->cell = item->id ? calloc(item->columns, sizeof *l->cell) : NULL;
	return l->cell || !item->id;
}

/* Reads the boxes, opens the decoder, and takes memory. */
static bool begin(struct avif *a, struct codec_job *job)
{
	struct avif_file *f = &a->file;
	Dav1dSettings settings;

	if (!avif_read(f, job->source, job->request->source_bytes) ||
	    !codec_is_size(job, f->width, f->height))
		return false;
	size_t room = (size_t)f->color.columns * f->color.cell_width,
	       of_alpha = (size_t)f->alpha.columns * f->alpha.cell_width;

	room = room > of_alpha ? room : of_alpha;
	for (unsigned i = 0; i < COUNT_OF(a->row); i++)
		a->row[i] = calloc(room, sizeof *a->row[i]);
	a->near = calloc(room + 2, sizeof *a->near);
	a->far = calloc(room, sizeof *a->far);
	a->pixels = calloc(room, 4);
	lib.default_settings(&settings);
	settings.n_threads = settings.max_frame_delay = 1;
	settings.all_layers = 0;
	settings.logger.callback = NULL;
	return a->row[3] && a->pixels && begin_layer(&a->color, &f->color) &&
	       begin_layer(&a->alpha, &f->alpha) && !lib.open(&a->decoder, &settings) &&
	       decode_row(a, &a->color) && (!f->alpha.id || decode_row(a, &a->alpha));
}

enum jail_status codec_dav1d(struct codec_job *job)
{
	struct avif *a = calloc(1, sizeof *a);
	uint16_t *alpha[3] = { NULL };

	if (!a || !begin(a, job))
		return JAIL_DAMAGED;
	bool is_grey = job->request->plane_count == 1, has_alpha = a->file.alpha.id;

	if (is_grey && a->color.cell->p.layout != DAV1D_PIXEL_LAYOUT_I400)
		return JAIL_DAMAGED;
	if (!begin_colors(a))
		return JAIL_UNSUPPORTED;
	if (!codec_rows_begin(job, a->file.width, (is_grey ? 1U : 3U) + has_alpha,
	                      job->request->reduce))
		return JAIL_DAMAGED;
	alpha[0] = a->row[3];
	for (uint32_t y = 0; y < a->file.height; y++) {
		if (!load_row(a, &a->color, a->file.top + y, a->row) ||
		    (has_alpha && !load_row(a, &a->alpha, a->file.top + y, alpha)))
			return JAIL_DAMAGED;
		if (is_grey)
			has_alpha ? convert(a, 1, true) : convert(a, 1, false);
		else
			has_alpha ? convert(a, 3, true) : convert(a, 3, false);
		codec_row(job, a->pixels);
	}
	return codec_rows_end(job) ? JAIL_DECODED : JAIL_DAMAGED;
}

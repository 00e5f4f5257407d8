/* avif_file.c - walks the boxes again for each question, and keeps none of them. */
#include "avif_file.h"

#include <string.h>

#include "base/check.h"

#define TYPE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))
#define VERSION_BYTES 4 /* of a full box, with its flags */
/* Bounds on what one picture needs: together with them the work is linear. */
#define PROPERTIES_MAX 32
#define PROPERTY_BOXES_MAX 4096
#define AUXILIARIES_MAX 8
#define META_MAX (16U << 20)        /* bytes; a profile has at most 4 MB */
#define ASSOCIATIONS_MAX (1U << 20) /* bytes of ipma; 256 x 256 cells need fewer */
#define CELL_SIDE_MIN 64            /* of a grid (23000-22, 7.3.11.4.2) */
#define SPARE_SAMPLES 1000000U
#define CELL_SIDE_MAX 65536 /* AV1 5.5.1: 16 bits */

enum { PITM = 0, ILOC, IINF, IREF, IDAT, IPRP };

static const uint32_t box_types[] = {
	[PITM] = TYPE('p', 'i', 't', 'm'), [ILOC] = TYPE('i', 'l', 'o', 'c'),
	[IINF] = TYPE('i', 'i', 'n', 'f'), [IREF] = TYPE('i', 'r', 'e', 'f'),
	[IDAT] = TYPE('i', 'd', 'a', 't'), [IPRP] = TYPE('i', 'p', 'r', 'p')
};

/* ---- bytes and boxes ---- */

/* Removes a number from the front. Without enough bytes it is 0, and nothing is left. */
static uint64_t take(struct file_part *in, unsigned bytes)
{
	uint64_t value = 0;

	if (bytes > in->size) {
		in->size = 0;
		return 0;
	}
	for (; bytes > 0; bytes--, in->size--)
		value = value << 8 | *in->data++;
	return value;
}

static uint32_t take_32(struct file_part *in)
{
	return (uint32_t)take(in, 4);
}

/* Removes the next box. Returns its type, or 0 at the end. */
static uint32_t next_box(struct file_part *in, struct file_part *content)
{
	struct file_part box = *in;
	uint64_t size = take(&box, 4);
	uint32_t type = take_32(&box);

	if (size == 1)
		size = take(&box, 8);
	else if (size == 0)
		size = in->size;
	size_t head = (size_t)(box.data - in->data);

	if (head < 8 || size < head || size > in->size)
		return 0;
	*content = (struct file_part){ box.data, (size_t)size - head };
	in->data += size;
	in->size -= (size_t)size;
	return type;
}

static bool find_box(struct file_part in, uint32_t type, struct file_part *content)
{
	for (uint32_t t; (t = next_box(&in, content));)
		if (t == type)
			return true;
	*content = (struct file_part){ NULL, 0 };
	return false;
}

/* Removes version and flags, which it returns, from a copy of a box. */
static uint32_t open_box(const struct avif_file *f, unsigned box, struct file_part *content)
{
	*content = f->boxes[box];
	return take_32(content);
}

/* ---- items ---- */

static uint32_t type_of(const struct avif_file *f, uint32_t id)
{
	struct file_part in, box;
	unsigned version = open_box(f, IINF, &in) >> 24;

	take(&in, version ? 4 : 2);
	for (uint32_t type; (type = next_box(&in, &box));) {
		unsigned entry = take_32(&box) >> 24;

		if (type != TYPE('i', 'n', 'f', 'e') || entry < 2 ||
		    take(&box, entry == 2 ? 2 : 4) != id)
			continue;
		take(&box, 2);
		return take_32(&box);
	}
	return 0;
}

unsigned avif_piece(const struct avif_file *f, uint32_t id, unsigned index, struct file_part *piece)
{
	struct file_part in;
	unsigned version = open_box(f, ILOC, &in) >> 24, sizes = (unsigned)take(&in, 2),
		 of_offset = sizes >> 12, of_length = sizes >> 8 & 15, of_base = sizes >> 4 & 15,
		 of_index = version ? sizes & 15 : 0, of_id = version < 2 ? 2 : 4;

	for (uint64_t items = take(&in, of_id); items > 0 && in.size > 0; items--) {
		bool is_it = take(&in, of_id) == id;
		unsigned method = version ? take(&in, 2) & 15 : 0;

		take(&in, 2);
		uint64_t base = take(&in, of_base);
		unsigned count = (unsigned)take(&in, 2);
		size_t entry = of_index + of_offset + of_length, before = is_it ? index : count;

		if (entry * before > in.size)
			return 0;
		in.data += entry * before;
		in.size -= entry * before;
		if (!is_it)
			continue;
		take(&in, of_index);
		uint64_t offset = take(&in, of_offset), length = take(&in, of_length);
		struct file_part from = method ? f->boxes[IDAT] : f->file;

		if (index >= count || method > 1 || length == 0 || base > from.size ||
		    offset > from.size - base || length > from.size - base - offset)
			return 0;
		*piece = (struct file_part){ from.data + base + offset, (size_t)length };
		return count;
	}
	return 0;
}

/* Removes the next reference from the boxes of iref, of that type. Returns the item that refers,
 * and sets those that it refers to; 0: there is none. */
static uint32_t next_reference(struct file_part *in, uint32_t type, unsigned of_id,
                               struct file_part *to)
{
	for (uint32_t t; (t = next_box(in, to));) {
		uint32_t from = (uint32_t)take(to, of_id);
		size_t count = (size_t)take(to, 2);

		if (t != type || count * of_id > to->size)
			continue;
		to->size = count * of_id;
		return from;
	}
	return 0;
}

static unsigned open_references(const struct avif_file *f, struct file_part *in)
{
	return open_box(f, IREF, in) >> 24 ? 4 : 2;
}

uint32_t avif_cell(const struct avif_file *f, const struct avif_item *item, uint32_t cell)
{
	struct file_part in, to;
	unsigned of_id = open_references(f, &in);

	if (!item->is_grid)
		return item->id;
	for (uint32_t from; (from = next_reference(&in, TYPE('d', 'i', 'm', 'g'), of_id, &to));)
		if (from == item->id && (cell + (size_t)1) * of_id <= to.size) {
			to.data += cell * (size_t)of_id;
			return (uint32_t)take(&to, of_id);
		}
	return 0;
}

/* ---- properties ---- */

struct properties {
	uint16_t index[PROPERTIES_MAX]; /* in ipco, from 1; the highest bit: essential */
	unsigned count;
	struct avif_item item; /* width, height, is_grey, is_deep */
	bool has_stream, is_alpha, has_clap;
	bool is_cut;               /* it has more than are kept */
	unsigned rotation, mirror; /* by 90 degrees to the left; 0: none, 1: rows, 2: columns */
	uint32_t clap[8];
};

/* Finds which properties an item has. */
static void find_associations(struct file_part iprp, uint32_t id, struct properties *p)
{
	struct file_part in;

	if (!find_box(iprp, TYPE('i', 'p', 'm', 'a'), &in) || in.size > ASSOCIATIONS_MAX)
		return;
	uint32_t version = take_32(&in);
	unsigned of_id = version >> 24 ? 4 : 2, of_index = version & 1 ? 2 : 1;

	for (uint32_t entries = take_32(&in); entries > 0 && in.size > 0; entries--) {
		bool is_it = take(&in, of_id) == id;

		for (unsigned count = (unsigned)take(&in, 1); count > 0; count--) {
			unsigned index = (unsigned)take(&in, of_index);

			if (of_index == 1)
				index = (index & 0x80) << 8 | (index & 0x7f);
			if (is_it && p->count < PROPERTIES_MAX)
				p->index[p->count++] = (uint16_t)index;
			else if (is_it)
				p->is_cut = true;
		}
	}
}

static void read_color(struct avif_file *f, struct file_part in)
{
	uint32_t kind = take_32(&in);

	if (kind == TYPE('n', 'c', 'l', 'x') && in.size >= 7) {
		take(&in, 2);
		f->has_codes = true;
		f->transfer = (unsigned)take(&in, 2);
		f->matrix = (unsigned)take(&in, 2);
		f->is_full_range = take(&in, 1) >> 7;
	} else if (kind == TYPE('p', 'r', 'o', 'f') || kind == TYPE('r', 'I', 'C', 'C')) {
		f->icc = in;
	}
}

static bool is_alpha(struct file_part in)
{
	static const char *const names[] = { "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
		                             "urn:mpeg:hevc:2015:auxid:1" };

	take(&in, VERSION_BYTES);
	for (unsigned i = 0; i < COUNT_OF(names); i++)
		if (in.size > strlen(names[i]) &&
		    memcmp(in.data, names[i], strlen(names[i]) + 1) == 0)
			return true;
	return false;
}

/* f: of the picture that is shown; NULL: of another item. Returns whether the type is known. */
static bool read_property(struct avif_file *f, struct properties *p, uint32_t type,
                          struct file_part in)
{
	switch (type) {
	case TYPE('i', 's', 'p', 'e'):
		take(&in, VERSION_BYTES);
		p->item.width = take_32(&in);
		p->item.height = take_32(&in);
		return true;
	case TYPE('a', 'v', '1', 'C'):
		p->has_stream = in.size >= 4;
		take(&in, 2);
		p->item.is_deep = in.size > 0 && *in.data >> 6 & 1;
		p->item.is_grey = take(&in, 1) >> 4 & 1;
		return true;
	case TYPE('c', 'o', 'l', 'r'):
		if (f)
			read_color(f, in);
		return true;
	case TYPE('i', 'r', 'o', 't'):
		p->rotation = take(&in, 1) & 3;
		return true;
	case TYPE('i', 'm', 'i', 'r'):
		p->mirror = 1 + (take(&in, 1) & 1);
		return true;
	case TYPE('c', 'l', 'a', 'p'):
		p->has_clap = true;
		for (unsigned i = 0; i < COUNT_OF(p->clap); i++)
			p->clap[i] = take_32(&in);
		return true;
	case TYPE('a', 'u', 'x', 'C'):
		p->is_alpha = is_alpha(in);
		return true;
	default: /* without a choice of layers the decoder shows the best one */
		return type == TYPE('p', 'i', 'x', 'i') ||
		       (type == TYPE('l', 's', 'e', 'l') && take(&in, 2) == 0xffff);
	}
}

/* Returns false if the item has an essential property that is not known. */
static bool read_properties(const struct avif_file *f, struct avif_file *shown, uint32_t id,
                            struct properties *p)
{
	struct file_part ipco, box;
	bool is_known = true;
	uint32_t type;

	*p = (struct properties){ 0 };
	find_associations(f->boxes[IPRP], id, p);
	if (!find_box(f->boxes[IPRP], TYPE('i', 'p', 'c', 'o'), &ipco))
		return false;
	for (unsigned n = 1; n <= PROPERTY_BOXES_MAX && (type = next_box(&ipco, &box)); n++)
		for (unsigned i = 0; i < p->count; i++)
			if ((p->index[i] & 0x7fff) == n && !read_property(shown, p, type, box) &&
			    p->index[i] >> 15)
				is_known = false;
	return is_known && !p->is_cut;
}

/* ---- the picture ---- */

/* Reads the grid of an item, and what its cells are. Returns whether they cover it. */
static bool read_grid(struct avif_file *f, struct avif_item *item)
{
	struct file_part in;
	struct properties cell;

	if (!avif_piece(f, item->id, 0, &in))
		return false;
	unsigned of_side = take(&in, 2) & 1 ? 4 : 2;

	item->is_grid = true;
	item->rows = (uint32_t)take(&in, 1) + 1;
	item->columns = (uint32_t)take(&in, 1) + 1;
	uint64_t width = take(&in, of_side), height = take(&in, of_side);
	uint32_t first = avif_cell(f, item, 0);

	if (!first || !read_properties(f, NULL, first, &cell))
		return false;
	item->cell_width = cell.item.width;
	item->cell_height = cell.item.height;
	item->is_grey = cell.item.is_grey;
	item->is_deep = cell.item.is_deep;
	return cell.has_stream && cell.item.width >= CELL_SIDE_MIN &&
	       cell.item.height >= CELL_SIDE_MIN && width == item->width &&
	       height == item->height && (uint64_t)item->columns * cell.item.width >= width &&
	       (uint64_t)item->rows * cell.item.height >= height &&
	       (item->columns - 1) * (uint64_t)cell.item.width < width &&
	       (item->rows - 1) * (uint64_t)cell.item.height < height;
}

/* Makes an item of its properties. */
static bool read_item(struct avif_file *f, uint32_t id, const struct properties *p,
                      struct avif_item *item)
{
	uint32_t type = type_of(f, id);

	*item = p->item;
	item->id = id;
	item->columns = item->rows = 1;
	item->cell_width = item->width;
	item->cell_height = item->height;
	bool is_there = type == TYPE('g', 'r', 'i', 'd')
	                        ? read_grid(f, item)
	                        : type == TYPE('a', 'v', '0', '1') && p->has_stream;

	return is_there && item->width && item->height && item->cell_width <= CELL_SIDE_MAX &&
	       item->cell_height <= CELL_SIDE_MAX;
}

/* Finds the item that has the alpha of the picture. Returns false if that is damaged. */
static bool read_alpha(struct avif_file *f)
{
	struct file_part in, to;
	unsigned of_id = open_references(f, &in), left = AUXILIARIES_MAX;
	struct properties p;

	for (uint32_t from;
	     left > 0 && (from = next_reference(&in, TYPE('a', 'u', 'x', 'l'), of_id, &to));) {
		bool is_ours = false;

		while (to.size > 0)
			is_ours |= take(&to, of_id) == f->color.id;
		if (!is_ours)
			continue;
		left--;
		read_properties(f, NULL, from, &p);
		if (p.is_alpha)
			return read_item(f, from, &p, &f->alpha) &&
			       f->alpha.width == f->color.width &&
			       f->alpha.height == f->color.height;
	}
	return true;
}

/* Sets where one side of the shown part begins, and its length, from fractions (ISO/IEC 14496-12,
 * 12.1.4); half a sample is left out. Returns whether it lies within the picture. */
static bool crop(const uint32_t *length, const uint32_t *center, uint32_t side, uint32_t *at,
                 uint32_t *shown)
{
	int64_t offset = 2 * (int64_t)(int32_t)center[0], twice;

	if (!length[1] || !center[1] || length[0] % length[1] || offset % center[1])
		return false;
	*shown = length[0] / length[1];
	twice = offset / center[1] + side - *shown;
	*at = (uint32_t)(twice / 2);
	return *shown > 0 && *shown <= side && twice >= 0 && twice / 2 <= side - *shown;
}

/* Turned to the left, and then mirrored, as one orientation of EXIF. */
static const uint8_t orientations[3][4] = { { 1, 8, 3, 6 }, { 4, 5, 2, 7 }, { 2, 7, 4, 5 } };

/* Returns whether most of what is decoded for an item is shown. */
static bool is_thrifty(const struct avif_file *f, const struct avif_item *item)
{
	uint64_t width = (uint64_t)item->columns * item->cell_width,
		 height = (uint64_t)item->rows * item->cell_height;

	return width * height <= 2 * (uint64_t)f->width * f->height + SPARE_SAMPLES;
}

static bool read_picture(struct avif_file *f, uint32_t id)
{
	struct properties p;

	f->is_unsupported = !read_properties(f, f, id, &p);
	if (!read_item(f, id, &p, &f->color) || !read_alpha(f))
		return false;
	f->orientation = orientations[p.mirror][p.rotation];
	f->width = f->color.width;
	f->height = f->color.height;
	if (p.has_clap && (!crop(p.clap, p.clap + 4, f->color.width, &f->left, &f->width) ||
	                   !crop(p.clap + 2, p.clap + 6, f->color.height, &f->top, &f->height)))
		return false;
	f->is_wasteful = !is_thrifty(f, &f->color) || !is_thrifty(f, &f->alpha);
	return true;
}

bool avif_read(struct avif_file *f, const uint8_t *data, size_t size)
{
	struct file_part meta, box, to;

	*f = (struct avif_file){ .file = { data, size },
		                 .orientation = 1,
		                 .matrix = AVIF_MATRIX_UNSPECIFIED };
	if (!find_box(f->file, TYPE('m', 'e', 't', 'a'), &meta) || meta.size > META_MAX)
		return false;
	take(&meta, VERSION_BYTES);
	for (uint32_t type; (type = next_box(&meta, &box));)
		for (unsigned k = 0; k < COUNT_OF(box_types); k++)
			if (type == box_types[k] && !f->boxes[k].data)
				f->boxes[k] = box;
	unsigned version = open_box(f, PITM, &box) >> 24;
	uint32_t id = (uint32_t)take(&box, version ? 4 : 2);

	if (!id || !read_picture(f, id))
		return false;
	unsigned of_id = open_references(f, &box);

	f->is_premultiplied =
		f->alpha.id && next_reference(&box, TYPE('p', 'r', 'e', 'm'), of_id, &to) == id;
	return true;
}

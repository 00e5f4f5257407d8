/*
 * test_avif_file.c - what the boxes of an AVIF say, and files that are not sound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <endian.h>

#include "base/check.h"
#include "jail/avif_file.h"
#include "pixel/container.h"
#include "pixel/orient.h"

#define FILE_MAX 65536
#define STREAM "0123456789"
#define ALPHA "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha"

/* What a file is made of. 0: as most files have it. */
struct recipe {
	uint32_t width, height;
	bool is_grid; /* of cells of 100 x 80 */
	unsigned columns, rows;
	const char *type;     /* of the first item */
	const char *property; /* one more of it, and its data */
	const void *data;
	size_t data_size;
	bool is_essential;
	unsigned rotation, mirror; /* each from 1; 0: no box */
	uint32_t alpha_width;      /* 0: no alpha */
	bool is_premultiplied;
	const char *kind; /* of the auxiliary item; NULL: alpha */
	unsigned version; /* of iloc */
	unsigned method;  /* of it: where the data are */
	unsigned pieces;
	uint32_t beyond; /* added to the length of the last piece */
};

static uint8_t file[FILE_MAX];
static size_t length;
static size_t offsets_at; /* of the first extent's offset */

static void put(const void *data, size_t size)
{
	assert_true(length + size <= FILE_MAX);
	if (size > 0)
		memcpy(file + length, data, size);
	length += size;
}

static void put_number(uint32_t value, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0;)
		put(&(uint8_t){ (uint8_t)(value >> 8 * i) }, 1);
}

static size_t begin(const char *type)
{
	size_t at = length;

	put_number(0, 4);
	put(type, 4);
	return at;
}

static size_t begin_full(const char *type, unsigned version)
{
	size_t at = begin(type);

	put_number(version << 24, 4);
	return at;
}

static void set_number(size_t at, uint32_t value)
{
	size_t end = length;

	length = at;
	put_number(value, 4);
	length = end;
}

static void end(size_t at)
{
	set_number(at, (uint32_t)(length - at));
}

static void put_box(const char *type, const void *data, size_t size)
{
	size_t at = begin(type);

	put(data, size);
	end(at);
}

static void put_size(uint32_t width, uint32_t height)
{
	size_t at = begin_full("ispe", 0);

	put_number(width, 4);
	put_number(height, 4);
	end(at);
}

/* Items: 1 the picture, 2 alpha, 3 and so on the cells. Each has the same data, but for a grid. */
static unsigned item_count(const struct recipe *r)
{
	return 2 + r->columns * r->rows;
}

static void put_items(const struct recipe *r)
{
	size_t all = begin_full("iinf", 0);

	put_number(item_count(r), 2);
	for (unsigned id = 1; id <= item_count(r); id++) {
		size_t at = begin_full("infe", 2);

		put_number(id, 2);
		put_number(0, 2);
		put(id > 1 ? "av01" : r->type ? r->type : r->is_grid ? "grid" : "av01", 4);
		put_number(0, 1);
		end(at);
	}
	end(all);
}

static void put_locations(const struct recipe *r)
{
	size_t all = begin_full("iloc", r->version);
	unsigned of_id = r->version < 2 ? 2 : 4, pieces = r->pieces ? r->pieces : 1;

	put_number(0x4440, 2);
	put_number(item_count(r), of_id);
	for (unsigned id = 1; id <= item_count(r); id++) {
		put_number(id, of_id);
		if (r->version)
			put_number(r->method, 2);
		put_number(0, 2);
		put_number(0, 4); /* base */
		put_number(pieces, 2);
		for (unsigned k = 0; k < pieces; k++) {
			if (id == 1 && k == 0)
				offsets_at = length;
			put_number(k, 4); /* set_offsets() adds where the data are */
			put_number(r->is_grid && id == 1 ? 8
			           : k + 1 < pieces      ? 1
			                                 : (uint32_t)strlen(STREAM) - k + r->beyond,
			           4);
		}
	}
	end(all);
}

static void put_associations(const struct recipe *r, unsigned extra)
{
	size_t at = begin_full("ipma", 0);

	put_number(item_count(r), 4);
	for (unsigned id = 1; id <= item_count(r); id++) {
		put_number(id, 2);
		if (id == 2) { /* the size, av1C and auxC of alpha */
			put("\3\3\2\5", 4);
			continue;
		}
		put_number(id == 1 ? 2 + extra : 2, 1);
		put_number(id == 1 ? 1 : 4, 1); /* ispe */
		put_number(0x80 | 2, 1);        /* av1C */
		for (unsigned k = 0; id == 1 && k < extra; k++)
			put_number((r->is_essential ? 0x80U : 0) | (6 + k), 1);
	}
	end(at);
}

static void put_properties(const struct recipe *r)
{
	size_t all = begin("iprp"), ipco = begin("ipco"), at;
	unsigned extra = 0;

	put_size(r->width, r->height);
	put_box("av1C", "\x81\x00\x0c\x00", 4);
	put_size(r->alpha_width, r->height);
	put_size(100, 80);
	at = begin_full("auxC", 0);
	put(r->kind ? r->kind : ALPHA, strlen(r->kind ? r->kind : ALPHA) + 1);
	end(at);
	if (r->rotation && ++extra)
		put_box("irot", &(uint8_t){ (uint8_t)(r->rotation - 1) }, 1);
	if (r->mirror && ++extra)
		put_box("imir", &(uint8_t){ (uint8_t)(r->mirror - 1) }, 1);
	if (r->property && ++extra)
		put_box(r->property, r->data, r->data_size);
	end(ipco);
	put_associations(r, extra);
	end(all);
}

static void put_reference(const char *type, unsigned from, unsigned to, unsigned count)
{
	size_t at = begin(type);

	put_number(from, 2);
	put_number(count, 2);
	for (unsigned k = 0; k < count; k++)
		put_number(to + k, 2);
	end(at);
}

static void put_references(const struct recipe *r)
{
	size_t all = begin_full("iref", 0);

	if (r->alpha_width)
		put_reference("auxl", 2, 1, 1);
	if (r->is_premultiplied)
		put_reference("prem", 1, 2, 1);
	if (r->is_grid)
		put_reference("dimg", 1, 3, r->columns * r->rows);
	end(all);
}

/* The data: of a grid first, and then those of all others. */
static void put_data(const struct recipe *r)
{
	const uint8_t grid[] = { 0,
		                 0,
		                 (uint8_t)(r->rows - 1),
		                 (uint8_t)(r->columns - 1),
		                 (uint8_t)(r->width >> 8),
		                 (uint8_t)r->width,
		                 (uint8_t)(r->height >> 8),
		                 (uint8_t)r->height };

	if (r->is_grid)
		put(grid, sizeof grid);
	put(STREAM, strlen(STREAM));
}

static void make(const struct recipe *r)
{
	unsigned pieces = r->pieces ? r->pieces : 1, of_id = r->version < 2 ? 2 : 4;
	size_t meta, idat, data_at = 0;

	length = 0;
	put_box("ftyp", "avif\0\0\0\0", 8);
	meta = begin_full("meta", 0);
	size_t pitm = begin_full("pitm", 0);

	put_number(1, 2);
	end(pitm);
	put_items(r);
	put_locations(r);
	put_properties(r);
	put_references(r);
	idat = begin("idat");
	if (r->method == 1)
		put_data(r);
	end(idat);
	end(meta);
	idat = begin("mdat");
	if (r->method == 0) {
		data_at = length;
		put_data(r);
	}
	end(idat);
	/* Where the data of each item begin. */
	size_t at = offsets_at, others = data_at + (r->is_grid ? 8 : 0);

	for (unsigned id = 1; id <= item_count(r); id++) {
		for (unsigned k = 0; k < pieces; k++, at += 8)
			set_number(at, (uint32_t)(id == 1 ? data_at : others) + k);
		at += of_id + (r->version ? 2U : 0) + 8;
	}
}

/* Reads a copy of the file that ends where the file does. */
static bool read_file(struct avif_file *f, size_t size)
{
	static uint8_t *copy;

	free(copy);
	copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, file, size);
	return avif_read(f, copy, size);
}

static struct avif_file read_recipe(const struct recipe *r)
{
	struct avif_file f;

	make(r);
	assert_true(read_file(&f, length));
	return f;
}

static bool is_read(const struct recipe *r)
{
	struct avif_file f;

	make(r);
	return read_file(&f, length);
}

static void assert_stream(const struct avif_file *f, uint32_t id)
{
	struct file_part piece;
	char text[32] = "";
	size_t n = 0;
	unsigned count = avif_piece(f, id, 0, &piece);

	assert_in_range(count, 1, 10);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(avif_piece(f, id, i, &piece), count);
		assert_true(n + piece.size < sizeof text);
		memcpy(text + n, piece.data, piece.size);
		n += piece.size;
	}
	assert_string_equal(text, STREAM);
	assert_int_equal(avif_piece(f, id, count, &piece), 0);
}

/* ---- tests ---- */

static void the_daemons_own_file_is_read(void **state)
{
	static const uint8_t icc[200] = { 1 };
	static const uint8_t stream[] = { 0x0a, 6, 0x18, 0, 0, 0, 0, 0, 0x32, 1, 9 };
	uint8_t head[1024];

	(void)state;
	for (enum chroma chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++)
		for (size_t size = 0; size <= sizeof icc; size += sizeof icc) {
			const struct container c = { FILE_AVIF, 301, 77, chroma, icc, size };
			struct avif_file f;

			length = 0;
			put(head, container_head(&c, head, stream, sizeof stream));
			put(stream, sizeof stream);
			assert_true(read_file(&f, length));
			assert_int_equal(f.width, 301);
			assert_int_equal(f.height, 77);
			assert_int_equal(f.color.is_grey, chroma == CHROMA_NONE);
			assert_false(f.color.is_deep || f.alpha.id || f.is_unsupported);
			assert_true(f.has_codes && f.is_full_range);
			assert_int_equal(f.matrix, 6);
			assert_int_equal(f.transfer, 13);
			assert_int_equal(f.orientation, ORIENT_UPRIGHT);
			assert_int_equal(f.icc.size, size);
			assert_true(size == 0 || memcmp(f.icc.data, icc, size) == 0);

			struct file_part piece;

			assert_int_equal(avif_piece(&f, f.color.id, 0, &piece), 1);
			assert_int_equal(piece.size, sizeof stream);
			assert_memory_equal(piece.data, stream, sizeof stream);
		}
}

/* Where a sample of the stored picture of 3 x 2 is shown: turned to the left, then mirrored. */
static void show(unsigned rotation, unsigned mirror, int *x, int *y)
{
	int width = 3, height = 2;

	for (; rotation > 0; rotation--) {
		int turned = width - 1 - *x, side = width;

		*x = *y;
		*y = turned;
		width = height;
		height = side;
	}
	if (mirror == 1)
		*y = height - 1 - *y;
	if (mirror == 2)
		*x = width - 1 - *x;
}

static void it_is_turned_and_then_mirrored(void **state)
{
	(void)state;
	for (unsigned rotation = 0; rotation < 4; rotation++)
		for (unsigned mirror = 0; mirror < 3; mirror++) {
			struct recipe r = {
				.width = 3, .height = 2, .rotation = rotation + 1, .mirror = mirror
			};
			struct orient o = orient_of(read_recipe(&r).orientation);

			for (int i = 0; i < 6; i++) {
				int x = i % 3, y = i / 3, u = o.mirror_x ? 2 - x : x,
				    v = o.mirror_y ? 1 - y : y;

				show(rotation, mirror, &x, &y);
				assert_int_equal(x, o.transpose ? v : u);
				assert_int_equal(y, o.transpose ? u : v);
			}
		}
}

/* Of 100 x 80. Fractions: width, height, and how far the middle is from that of the picture. */
static void a_part_may_be_shown(void **state)
{
	static const struct {
		int32_t clap[8];
		uint32_t shown[4]; /* left, top, width, height; 0: it is damaged */
	} cases[] = {
		{ { 90, 1, 60, 1, 0, 1, 0, 1 }, { 5, 10, 90, 60 } },
		{ { 198, 2, 79, 1, -1, 2, 1, 2 }, { 0, 1, 99, 79 } },
		{ { 99, 1, 79, 1, 0, 1, 0, 1 }, { 0, 0, 99, 79 } }, /* half a sample */
		{ { 101, 1, 79, 1, 1, 2, 1, 2 }, { 0 } },
		{ { 99, 1, 79, 1, 3, 2, 1, 2 }, { 0 } },
		{ { 99, 1, 79, 1, -3, 2, 1, 2 }, { 0 } },
		{ { 0, 1, 79, 1, 0, 1, 1, 2 }, { 0 } },
		{ { 99, 2, 79, 1, 1, 2, 1, 2 }, { 0 } },
		{ { 99, 0, 79, 1, 1, 2, 1, 2 }, { 0 } },
		{ { 99, 1, 79, 1, 1, 0, 1, 2 }, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const uint32_t *shown = cases[i].shown;
		uint32_t bytes[8];
		struct recipe r = { .width = 100,
			            .height = 80,
			            .property = "clap",
			            .data = bytes,
			            .data_size = sizeof bytes,
			            .is_essential = true };

		for (unsigned k = 0; k < 8; k++)
			bytes[k] = htobe32((uint32_t)cases[i].clap[k]);
		assert_int_equal(is_read(&r), shown[2] > 0);
		if (!shown[2])
			continue;
		struct avif_file f = read_recipe(&r);

		assert_false(f.is_unsupported);
		assert_int_equal(f.left, shown[0]);
		assert_int_equal(f.top, shown[1]);
		assert_int_equal(f.width, shown[2]);
		assert_int_equal(f.height, shown[3]);
	}
}

/* What would be decoded and then thrown away is not worth it. */
static void a_small_part_of_a_large_picture_is_refused(void **state)
{
	static const uint8_t part[32] = {
		[3] = 100, [7] = 1, [11] = 100, [15] = 1, [23] = 1, [31] = 1
	};
	struct recipe r = { .width = 60000,
		            .height = 60000,
		            .property = "clap",
		            .data = part,
		            .data_size = sizeof part };

	(void)state;
	assert_true(read_recipe(&r).is_wasteful);
	assert_false(read_recipe(&r).is_unsupported);
	r.property = NULL;
	assert_false(read_recipe(&r).is_wasteful);
}

static void data_may_be_in_pieces_and_at_two_places(void **state)
{
	(void)state;
	for (unsigned version = 0; version <= 2; version++)
		for (unsigned method = 0; method <= (version ? 1 : 0); method++)
			for (unsigned pieces = 1; pieces <= 3; pieces++) {
				struct recipe r = { .width = 9,
					            .height = 7,
					            .version = version,
					            .method = method,
					            .pieces = pieces };
				struct avif_file f = read_recipe(&r);

				assert_int_equal(f.color.id, 1);
				assert_stream(&f, 1);
			}
}

static void data_beyond_the_file_are_none(void **state)
{
	struct file_part piece;
	struct recipe r = { .width = 9, .height = 7, .beyond = 1, .version = 1 };

	(void)state;
	for (r.method = 0; r.method <= 2; r.method++) {
		struct avif_file f = read_recipe(&r);

		assert_int_equal(avif_piece(&f, 1, 0, &piece), 0);
	}
	r.method = 0;
	r.beyond = UINT32_MAX - (uint32_t)strlen(STREAM);
	struct avif_file f = read_recipe(&r);

	assert_int_equal(avif_piece(&f, 1, 0, &piece), 0);
	assert_int_equal(avif_piece(&f, 77, 0, &piece), 0);
	r.beyond = 0U - (uint32_t)strlen(STREAM); /* no bytes */
	f = read_recipe(&r);
	assert_int_equal(avif_piece(&f, 1, 0, &piece), 0);
}

static void a_grid_has_cells(void **state)
{
	struct recipe r = { .width = 250, .height = 150, .is_grid = true, .columns = 3, .rows = 2 };
	struct avif_file f = read_recipe(&r);

	(void)state;
	assert_int_equal(f.width, 250);
	assert_int_equal(f.color.columns, 3);
	assert_int_equal(f.color.rows, 2);
	assert_int_equal(f.color.cell_width, 100);
	assert_int_equal(f.color.cell_height, 80);
	for (uint32_t cell = 0; cell < 6; cell++) {
		assert_int_equal(avif_cell(&f, &f.color, cell), 3 + cell);
		assert_stream(&f, 3 + cell);
	}
	assert_int_equal(avif_cell(&f, &f.color, 6), 0);
	/* Cells that do not cover it, and those that lie outside. */
	static const uint32_t bad[][2] = { { 301, 150 }, { 250, 161 }, { 200, 150 }, { 250, 80 } };

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		r.width = bad[i][0];
		r.height = bad[i][1];
		assert_false(is_read(&r));
	}
}

static void alpha_is_another_item(void **state)
{
	struct recipe r = { .width = 9, .height = 7, .alpha_width = 9 };

	(void)state;
	assert_int_equal(read_recipe(&r).alpha.id, 2);
	assert_false(read_recipe(&r).is_premultiplied);
	r.is_premultiplied = true;
	assert_true(read_recipe(&r).is_premultiplied);
	r.alpha_width = 8;
	assert_false(is_read(&r));
	r.alpha_width = 9;
	r.kind = "urn:mpeg:hevc:2015:auxid:1";
	assert_int_equal(read_recipe(&r).alpha.id, 2);
	r.kind = "urn:mpeg:hevc:2015:auxid:2"; /* depth */
	assert_int_equal(read_recipe(&r).alpha.id, 0);
	r.kind = NULL;
	r.is_grid = true; /* one item of alpha for all cells */
	r.width = r.alpha_width = 150;
	r.columns = 2;
	r.rows = 1;
	r.height = 80;
	assert_int_equal(read_recipe(&r).alpha.id, 2);
}

static void what_is_not_known_is_not_shown_wrong(void **state)
{
	struct recipe r = { .width = 9, .height = 7, .property = "wxyz" };

	(void)state;
	assert_false(read_recipe(&r).is_unsupported);
	r.is_essential = true;
	assert_true(read_recipe(&r).is_unsupported);
	r.property = "lsel"; /* all layers, or one of them */
	r.data = "\xff\xff";
	r.data_size = 2;
	assert_false(read_recipe(&r).is_unsupported);
	r.data = "\0\0";
	assert_true(read_recipe(&r).is_unsupported);
	r.property = NULL;
	r.type = "hvc1";
	assert_false(is_read(&r));
}

static void colours_and_profiles_are_found(void **state)
{
	struct recipe r = { .width = 9,
		            .height = 7,
		            .property = "colr",
		            .data = "nclx\0\x09\0\x10\0\x09\x80",
		            .data_size = 11 };
	struct avif_file f = read_recipe(&r);

	(void)state;
	assert_true(f.has_codes && f.is_full_range && f.transfer == AVIF_TRANSFER_PQ);
	assert_int_equal(f.matrix, 9);
	r.data_size = 10; /* too short */
	assert_false(read_recipe(&r).has_codes);
	r.data = "rICCprofile";
	r.data_size = 11;
	f = read_recipe(&r);
	assert_int_equal(f.icc.size, 7);
	assert_memory_equal(f.icc.data, "profile", 7);
}

static void a_file_that_is_cut_has_no_picture(void **state)
{
	struct recipe r = { .width = 150,
		            .height = 80,
		            .alpha_width = 150,
		            .is_grid = true,
		            .columns = 2,
		            .rows = 1,
		            .method = 1,
		            .version = 1 };
	struct avif_file f;

	(void)state;
	make(&r);
	for (size_t size = 0; size + 8 < length; size++) /* the last box is empty */
		assert_false(read_file(&f, size));
	assert_true(read_file(&f, length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_daemons_own_file_is_read),
		cmocka_unit_test(it_is_turned_and_then_mirrored),
		cmocka_unit_test(a_part_may_be_shown),
		cmocka_unit_test(a_small_part_of_a_large_picture_is_refused),
		cmocka_unit_test(data_may_be_in_pieces_and_at_two_places),
		cmocka_unit_test(data_beyond_the_file_are_none),
		cmocka_unit_test(a_grid_has_cells),
		cmocka_unit_test(alpha_is_another_item),
		cmocka_unit_test(what_is_not_known_is_not_shown_wrong),
		cmocka_unit_test(colours_and_profiles_are_found),
		cmocka_unit_test(a_file_that_is_cut_has_no_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* jpeg_mutator.c - makes JPEG files, and changes whole segments or fields of a header. */
#include "jpeg_mutator.h"

#include "support/jpeg_fixture.h"
#include "target.h"

#define FILES 1024
#define SEGMENT_MAX 64
#define BLOCKS_IN_MCU_MAX 10 /* C_MAX_BLOCKS_IN_MCU of libjpeg */

static uint32_t state = 1;

static unsigned pick(unsigned count)
{
	return target_random(&state) % count;
}

/* ---- files ---- */

static void pick_components(struct fixture *f)
{
	static const struct {
		J_COLOR_SPACE space;
		int components;
	} kinds[] = { { JCS_YCbCr, 3 }, { JCS_YCbCr, 3 }, { JCS_GRAYSCALE, 1 },
		      { JCS_RGB, 3 },   { JCS_CMYK, 4 },  { JCS_YCCK, 4 } };
	unsigned kind = pick(COUNT_OF(kinds)), blocks = 0;
	bool is_regular = pick(2);

	f->from = f->in = kinds[kind].space;
	f->components = kinds[kind].components;
	for (int i = 0; i < f->components; i++) {
		bool is_chroma = i == 1 || i == 2;

		for (int k = 0; k < 2; k++)
			f->sampling[i][k] =
				is_regular ? (is_chroma ? 1 : (int)pick(2) + 1) : (int)pick(4) + 1;
		blocks += (unsigned)(f->sampling[i][0] * f->sampling[i][1]);
	}
	f->is_progressive = pick(3) == 0;
	f->is_per_component = pick(4) == 0;
	if (blocks > BLOCKS_IN_MCU_MAX) {
		f->is_progressive = false;
		f->is_per_component = true;
	}
}

/* Fills icc, of `size` bytes, with a profile for the colour space. */
static void make_profile(uint8_t *icc, size_t size, bool is_grey)
{
	for (size_t i = 0; i < size; i++)
		icc[i] = (uint8_t)i;
	icc[0] = icc[1] = 0;
	icc[2] = (uint8_t)(size >> 8);
	icc[3] = (uint8_t)size;
	memcpy(icc + 16, is_grey ? "GRAY" : "RGB ", 4);
	memcpy(icc + 36, "acsp", 4);
}

uint8_t *jpeg_random(unsigned seed, size_t *size)
{
	uint8_t exif[64], icc[300];
	struct fixture f = { .is_raw = true };

	state = seed * 2654435761U | 1;
	f.width = 1 + (int)pick(pick(2) ? 20 : 100);
	f.height = 1 + (int)pick(pick(2) ? 20 : 100);
	f.quality = 1 + (int)pick(100);
	f.is_arithmetic = pick(12) == 0;
	f.no_adobe = pick(3) == 0;
	f.restart_rows = pick(3) == 0;
	pick_components(&f);
	if (pick(2)) {
		f.app1 = exif;
		f.app1_size = fixture_exif(exif, pick(10), pick(2));
	}
	if (pick(3) == 0) {
		f.icc = icc;
		f.icc_size = 128 + pick(sizeof icc - 128);
		make_profile(icc, f.icc_size, f.components == 1);
	}
	return fixture_make(&f, size);
}

/* Returns one of FILES files, which are made once: that takes longer than most executions. */
static const uint8_t *file_of(unsigned seed, size_t *size)
{
	static struct {
		uint8_t *jpeg;
		size_t size;
	} files[FILES];
	unsigned i = seed % FILES;
	uint32_t kept = state;

	if (!files[i].jpeg)
		files[i].jpeg = jpeg_random(i, &files[i].size);
	state = kept;
	*size = files[i].size;
	return files[i].jpeg;
}

/* ---- segments ---- */

/* A marker with its parameters; that of a scan has the coded data as well. */
struct segment {
	size_t at, length;
	unsigned marker;
};

static bool ends_scan(const uint8_t *p)
{
	return p[0] == 0xff && p[1] != 0 && p[1] != 0xff && (p[1] & 0xf8) != 0xd0;
}

/* Lists the segments behind SOI. Returns their number. */
static unsigned find_segments(const uint8_t *data, size_t size, struct segment *list)
{
	unsigned count = 0;
	size_t at = 2;

	while (count < SEGMENT_MAX && at + 4 <= size && data[at] == 0xff) {
		size_t length = 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);

		if (length > size - at)
			break;
		if (data[at + 1] == 0xda)
			while (at + length + 2 <= size && !ends_scan(data + at + length))
				length++;
		list[count++] = (struct segment){ at, length, data[at + 1] };
		at += length;
	}
	return count;
}

static size_t insert(uint8_t *data, size_t size, size_t size_max, size_t at, const uint8_t *part,
                     size_t length)
{
	if (length > size_max - size || at > size)
		return size;
	memmove(data + at + length, data + at, size - at);
	memcpy(data + at, part, length);
	return size + length;
}

static size_t erase(uint8_t *data, size_t size, size_t at, size_t length)
{
	memmove(data + at, data + at + length, size - at - length);
	return size - length;
}

/* Copies or moves a segment to another one's place. */
static size_t transplant(uint8_t *data, size_t size, size_t size_max, const struct segment *from,
                         const struct segment *to, bool is_move)
{
	uint8_t *part = target_copy(data + from->at, from->length);
	size_t length = from->length, at = to->at;

	if (is_move) {
		size = erase(data, size, from->at, length);
		if (at > from->at)
			at -= length;
	}
	size = insert(data, size, size_max, at, part, length);
	free(part);
	return size;
}

/* Inserts a segment of another file. */
static size_t graft(uint8_t *data, size_t size, size_t size_max, const struct segment *to)
{
	struct segment list[SEGMENT_MAX];
	size_t other_size;
	const uint8_t *other = file_of(target_random(&state), &other_size);
	unsigned count = find_segments(other, other_size, list);

	if (count) {
		const struct segment *from = &list[pick(count)];

		size = insert(data, size, size_max, to->at, other + from->at, from->length);
	}
	return size;
}

/* ---- fields ---- */

static bool is_frame(unsigned marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

/* Changes a field of a frame header (ITU T.81, B.2.2), or its type. */
static void change_frame(uint8_t *segment, size_t length)
{
	if (length < 13)
		return;
	switch (pick(5)) {
	case 0:
		segment[5] = (uint8_t)(pick(20) == 0);
		segment[6] = (uint8_t)(1 + pick(200));
		break;
	case 1:
		segment[7] = (uint8_t)(pick(20) == 0);
		segment[8] = (uint8_t)(1 + pick(200));
		break;
	case 2:
		segment[1] = (uint8_t)(0xc0 + pick(3));
		break;
	case 3:
		segment[9] = (uint8_t)(1 + pick(4));
		break;
	default: {
		size_t at = 11 + 3 * (size_t)pick(4);

		if (at < length)
			segment[at] = (uint8_t)((1 + pick(4)) << 4 | (1 + pick(4)));
	}
	}
}

/* Changes bytes of the coded data, or inserts restart markers by overwriting it. */
static void change_scan(uint8_t *segment, size_t length)
{
	size_t head = 2 + ((size_t)segment[2] << 8 | segment[3]);

	if (head + 2 >= length) {
		return;
	}
	size_t at = head + pick((unsigned)(length - head - 1));

	if (pick(4) == 0) {
		segment[at] = 0xff;
		segment[at + 1] = (uint8_t)(0xd0 + pick(8));
	} else {
		segment[at] ^= (uint8_t)(1U << pick(8));
	}
}

static void change_fields(uint8_t *segment, const struct segment *s)
{
	size_t head = 2 + ((size_t)segment[2] << 8 | segment[3]);

	if (is_frame(s->marker) && pick(4))
		change_frame(segment, s->length);
	else if (s->marker == 0xda && pick(3))
		change_scan(segment, s->length);
	else if (head > 4)
		segment[4 + pick((unsigned)(head - 4))] = (uint8_t)(pick(2) ? pick(6) : pick(256));
}

size_t jpeg_mutate(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	struct segment list[SEGMENT_MAX];

	state = seed * 2654435761U | 1;
	unsigned count = find_segments(data, size, list), what = pick(16);

	if (what == 0 || count == 0) {
		const uint8_t *other = file_of(seed >> 8, &size);

		if (size > size_max)
			size = size_max;
		memcpy(data, other, size);
		return size;
	}
	const struct segment *s = &list[pick(count)], *other = &list[pick(count)];

	switch (what) {
	case 1:
		return LLVMFuzzerMutate(data, size, size_max);
	case 2:
		return erase(data, size, s->at, s->length);
	case 3:
	case 4:
		return transplant(data, size, size_max, s, other, what == 3);
	case 5:
		return graft(data, size, size_max, s);
	case 6:
		return s->marker == 0xda ? s->at + 1 + pick((unsigned)s->length) : size;
	default:
		change_fields(data + s->at, s);
		return size;
	}
}

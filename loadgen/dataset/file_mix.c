/*
 * file_mix.c - the mix of a community site around 2009: sizes, qualities, sampling and formats.
 *
 * Pure functions over integers without state. Any thread.
 */
#include "file_mix.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/random.h"
#include "integer_root.h"

/* The quantiles of the file sizes. Table 4.1 gives those at 0, 50, 90 and 100 %; the others make
 * the mean 204.4 KB. */
static const struct quantile {
	uint32_t permille, bytes;
} quantiles[] = {
	{ 0, 398 },       { 5, 900 },       { 20, 1500 },     { 50, 2600 },     { 100, 4600 },
	{ 200, 9600 },    { 300, 16200 },   { 400, 25400 },   { 500, 38093 },   { 560, 50000 },
	{ 620, 70000 },   { 680, 102000 },  { 740, 155000 },  { 790, 230000 },  { 840, 364000 },
	{ 870, 484000 },  { 900, 638000 },  { 930, 861000 },  { 950, 1060000 }, { 970, 1376000 },
	{ 980, 1638000 }, { 990, 2142000 }, { 995, 2709000 }, { 999, 3600000 }, { 1000, 4404019 },
};

#define LONG_SIDE_MAX 6000 /* pixels */
#define CAMERA_SIZES 16

uint32_t file_mix_count(const struct file_mix *mix)
{
	uint32_t sum = 0;
	unsigned i;

	for (i = FILE_GOOD; i < FILE_KIND_COUNT; i++)
		sum += mix->count[i];
	return sum;
}

uint32_t file_mix_bytes(uint32_t i, uint32_t count)
{
	/* permille << 16, in the middle of the rank's share */
	uint64_t at = (2 * (uint64_t)i + 1) * 1000 * 65536 / (2 * (uint64_t)count);
	const struct quantile *q = quantiles;

	assert(i < count);
	if (i == 0)
		return quantiles[0].bytes;
	if (i == count - 1 && count >= FILE_MIX_MAXIMUM_FROM)
		return quantiles[COUNT_OF(quantiles) - 1].bytes;
	while ((uint64_t)q[1].permille << 16 < at)
		q++;
	return q->bytes +
	       (uint32_t)((at - ((uint64_t)q->permille << 16)) * (q[1].bytes - q->bytes) /
	                  ((uint64_t)(q[1].permille - q->permille) << 16));
}

/* ---- the form ---- */

static const struct aspect {
	int32_t long_side, short_side;
} aspects[] = { { 4, 3 }, { 3, 2 }, { 16, 9 }, { 1, 1 }, { 5, 4 } };

enum { ASPECT_4_3, ASPECT_3_2, ASPECT_16_9, ASPECT_SQUARE, ASPECT_5_4 };

/* Long sides of pictures from cameras and phones, by aspect ratio. The short side follows. */
static const int32_t camera_sides[][CAMERA_SIZES] = {
	[ASPECT_4_3] = { 320, 480, 640, 800, 1024, 1280, 1600, 2048, 2304, 2592, 2816, 3072, 3264,
	                 3648, 4000, 4608 },
	[ASPECT_3_2] = { 480, 720, 960, 1152, 1536, 1728, 1944, 2256, 2496, 2784, 3072, 3456, 3888,
	                 4272, 4752 },
	[ASPECT_16_9] = { 640, 848, 1280, 1536, 1920, 2240, 2560, 3072, 3264, 3840, 4096, 4608 },
};

/* Long sides to which sites and people scale. */
static const int32_t common_sides[] = {
	48,   64,   75,   96,   100,  120,  128,  150,  160,  180,  200,  220, 240, 250,
	300,  320,  360,  400,  450,  480,  500,  550,  600,  640,  720,  800, 900, 960,
	1000, 1024, 1200, 1280, 1440, 1600, 1800, 2000, 2048, 2500, 3000, 4000
};

static enum jpeg_sampling pick_sampling(struct random *r, bool is_camera)
{
	int32_t p = random_range(r, 0, 999);

	if (p < 45)
		return JPEG_GREY;
	if (p < (is_camera ? 240 : 130)) /* many cameras of the time used 4:2:2 */
		return JPEG_422;
	if (p < (is_camera ? 280 : 260)) /* and many image editors 4:4:4 */
		return JPEG_444;
	return JPEG_420;
}

static int pick_quality(struct random *r, const struct file_spec *f)
{
	static const uint8_t site[] = { 75, 75, 75, 75, 80, 80, 80, 85, 85,
		                        85, 90, 90, 92, 70, 65, 60, 95 };
	static const uint8_t camera[] = { 97, 96, 95, 95, 95, 94, 94, 93, 93,
		                          92, 92, 91, 90, 89, 88, 86, 85 };
	/* a round number; otherwise the choice of a camera or an optimiser */
	bool is_exact = random_chance(r, 650);
	int base = f->is_camera ? camera[random_range(r, 0, (int32_t)COUNT_OF(camera) - 1)]
	                        : site[random_range(r, 0, (int32_t)COUNT_OF(site) - 1)];

	if (!is_exact)
		base += random_range(r, -4, 4);
	return base < 60 ? 60 : base > 97 ? 97 : base;
}

static unsigned pick_orientation(struct random *r)
{
	/* mirrored pictures are rare */
	static const uint8_t turned[] = { 6, 6, 6, 6, 6, 6, 6, 8, 8, 8, 3, 3, 2, 4, 5, 7 };
	bool is_turned = random_chance(r, 220);
	unsigned which = turned[random_range(r, 0, (int32_t)COUNT_OF(turned) - 1)];

	return is_turned ? which : 1;
}

static void choose_form(struct random *r, struct file_spec *f)
{
	int32_t aspect = random_range(r, 0, 999), camera_permille = f->bytes < 20000    ? 0
	                                                            : f->bytes < 250000 ? 250
	                                                                                : 900;
	unsigned orientation = pick_orientation(r);

	f->is_camera = random_chance(r, camera_permille);
	f->has_camera_size = f->is_camera;
	f->has_common_size = random_chance(r, 650);
	f->aspect = aspect < 560   ? ASPECT_4_3
	            : aspect < 780 ? ASPECT_3_2
	            : aspect < 870 ? ASPECT_16_9
	            : f->is_camera ? ASPECT_4_3
	            : aspect < 950 ? ASPECT_SQUARE
	                           : ASPECT_5_4;
	f->orientation = f->is_camera ? orientation : 1;
	/* a turned camera stores the picture lying on its side */
	f->is_portrait = random_chance(r, 300) && f->orientation < 5;
	f->form.sampling = pick_sampling(r, f->is_camera);
	f->form.quality = pick_quality(r, f);
	f->form.is_progressive = random_chance(r, f->is_camera ? 20 : 110);
	f->form.is_optimised = random_chance(r, 250) || f->form.is_progressive;
	f->form.has_jfif = !f->is_camera;
	f->form.has_restarts = random_chance(r, f->is_camera ? 120 : 10);
	if (f->bytes < 10000)
		f->form.is_optimised = true; /* standard tables would be too large a part */
	if (f->bytes < 2500) {
		f->form.is_progressive = false;
		f->form.has_restarts = false;
	}
	if (f->bytes < 1200)
		f->form.sampling = JPEG_GREY;
}

void file_mix_spec(const struct file_mix *mix, uint32_t index, struct file_spec *file)
{
	struct random r;
	unsigned kind = FILE_GOOD;
	uint32_t rank = index;

	assert(index < file_mix_count(mix));
	while (rank >= mix->count[kind])
		rank -= mix->count[kind++];
	*file = (struct file_spec){ .id = random_mix(random_mix(mix->seed) + index + 1),
		                    .kind = (enum file_kind)kind };
	r = random_stream(file->id, 0);
	if (kind == FILE_GOOD)
		file->bytes = file_mix_bytes(rank, mix->count[FILE_GOOD]);
	else if (kind != FILE_EMPTY)
		/* not one of the smallest or largest */
		file->bytes = file_mix_bytes((uint32_t)random_range(&r, 5, 74), 100);
	choose_form(&r, file);
	file->cut_bytes = file->bytes;
	if (kind == FILE_TRUNCATED) /* half of a file is more than its headers */
		file->cut_bytes = (uint32_t)((uint64_t)file->bytes *
		                             (uint32_t)random_range(&r, 500, 900) / 1000);
}

/* Returns the element of a sorted list whose ratio to `side` is nearest to 1. A list ends with 0 or
 * at `count`. */
static int32_t nearest(const int32_t *list, size_t count, int64_t side)
{
	size_t i = 0;

	while (i + 1 < count && list[i + 1] && (int64_t)list[i] * list[i + 1] < side * side)
		i++;
	return list[i];
}

void file_mix_shape(struct file_spec *file, uint64_t pixels)
{
	const struct aspect *a = &aspects[file->aspect];
	int64_t side = integer_root(pixels * (uint64_t)a->long_side / (uint64_t)a->short_side),
		other;

	side = side < 8 ? 8 : side > LONG_SIDE_MAX ? LONG_SIDE_MAX : side;
	if (file->has_camera_size && side >= camera_sides[file->aspect][0])
		side = nearest(camera_sides[file->aspect], CAMERA_SIZES, side);
	else if (file->has_common_size && file->bytes >= 2500)
		side = nearest(common_sides, COUNT_OF(common_sides), side);
	other = side * a->short_side / a->long_side;
	file->form.width = (int32_t)(file->is_portrait ? other : side);
	file->form.height = (int32_t)(file->is_portrait ? side : other);
}

void file_mix_name(const struct file_spec *file, char name[FILE_NAME_SIZE])
{
	static const char *const suffixes[FILE_KIND_COUNT] = { "", "", ".truncated", ".notjpeg",
		                                               ".empty" };

	snprintf(name, FILE_NAME_SIZE, "%016" PRIx64 "%s.jpg", file->id, suffixes[file->kind]);
}

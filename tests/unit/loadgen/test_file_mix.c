/* test_file_mix.c - the specifications of files: sizes like the paper's, forms and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataset/file_mix.c"
#include "dataset/size_table.c"

#define FULL                                                              \
	{                                                                 \
		.seed = 1, .count = { [FILE_GOOD] = FILE_MIX_FULL_COUNT } \
	}

static uint32_t sizes[FILE_MIX_FULL_COUNT];
static FILE *nowhere;

static struct size_table planned(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		sizes[i] = file_mix_bytes(i, count);
	return size_table_make(sizes, count);
}

static void full_set_has_the_sizes_of_the_paper(void **state)
{
	struct size_table s = planned(FILE_MIX_FULL_COUNT);

	(void)state;
	assert_true(s.minimum == 398);
	assert_true(fabs(s.median / (37.2 * 1024) - 1) < 0.002);
	assert_true(fabs(s.mean / (204.4 * 1024) - 1) < 0.002);
	assert_true(fabs(s.p90 / (623.2 * 1024) - 1) < 0.002);
	assert_true(fabs(s.maximum / (4.2 * 1024 * 1024) - 1) < 0.002);
}

/* The other half of the tolerance is left to the encoder. */
static void every_smaller_set_has_the_same_shape(void **state)
{
	uint32_t count;

	(void)state;
	for (count = SIZE_TABLE_COUNT_MIN; count < FILE_MIX_FULL_COUNT;
	     count += count < 1000 ? 1 : 37) {
		struct size_table s = planned(count);

		assert_true(fabs(s.median / (37.2 * 1024) - 1) < 0.01);
		assert_true(fabs(s.mean / (204.4 * 1024) - 1) < 0.01);
		assert_true(fabs(s.p90 / (623.2 * 1024) - 1) < 0.01);
		assert_true(size_table_print(&s, nowhere));
	}
}

static void statistics_that_are_off_are_rejected(void **state)
{
	struct size_table good = planned(FILE_MIX_FULL_COUNT), s = good;
	double *const values[] = { &s.minimum, &s.median, &s.mean, &s.p90, &s.maximum };
	size_t i;

	(void)state;
	assert_true(size_table_print(&good, nowhere));
	for (i = 0; i < COUNT_OF(values); i++) {
		s = good;
		*values[i] *= 1.025;
		assert_false(size_table_print(&s, nowhere));
		s = good;
		*values[i] *= 0.975;
		assert_false(size_table_print(&s, nowhere));
	}
}

static void quantiles_lie_between_sizes(void **state)
{
	uint32_t few[] = { 30, 10, 20, 40 };
	struct size_table s = size_table_make(few, 4), one;

	(void)state;
	assert_true(s.minimum == 10 && s.median == 25 && s.mean == 25 && s.maximum == 40);
	assert_true(s.p90 == 40);
	one = size_table_make(few, 1);
	assert_true(one.minimum == 10 && one.median == 10 && one.p90 == 10 && one.maximum == 10);
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void names_are_unique_and_unordered(void **state)
{
	static uint64_t ids[2 * FILE_MIX_FULL_COUNT];
	struct file_mix mix = FULL;
	struct file_spec f;
	uint32_t i, rising = 0;

	(void)state;
	for (i = 0; i < 2 * FILE_MIX_FULL_COUNT; i++) {
		mix.seed = 1 + i / FILE_MIX_FULL_COUNT; /* and differ from those of another seed */
		file_mix_spec(&mix, i % FILE_MIX_FULL_COUNT, &f);
		ids[i] = f.id;
		rising += i > 0 && ids[i] > ids[i - 1];
	}
	assert_in_range(rising, FILE_MIX_FULL_COUNT * 95 / 100, FILE_MIX_FULL_COUNT * 105 / 100);
	qsort(ids, COUNT_OF(ids), sizeof ids[0], by_id);
	for (i = 1; i < COUNT_OF(ids); i++)
		assert_true(ids[i] != ids[i - 1]);
}

static void mix_is_that_of_a_community_site(void **state)
{
	uint32_t sampling[JPEG_GREY + 1] = { 0 }, orientation[9] = { 0 }, progressive = 0,
				      cameras = 0, low = 0, high = 0, i;
	struct file_mix mix = FULL;
	struct file_spec f;

	(void)state;
	for (i = 0; i < FILE_MIX_FULL_COUNT; i++) {
		file_mix_spec(&mix, i, &f);
		assert_int_equal(f.kind, FILE_GOOD);
		assert_in_range(f.form.quality, 60, 97);
		assert_in_range(f.orientation, 1, 8);
		sampling[f.form.sampling]++;
		orientation[f.orientation]++;
		progressive += f.form.is_progressive;
		cameras += f.is_camera;
		low += f.form.quality < 70;
		high += f.form.quality > 94;
		assert_true(f.is_camera || f.orientation == 1);
	}
	assert_in_range(sampling[JPEG_420], FILE_MIX_FULL_COUNT * 60 / 100,
	                FILE_MIX_FULL_COUNT * 80 / 100);
	assert_in_range(sampling[JPEG_422], FILE_MIX_FULL_COUNT * 5 / 100,
	                FILE_MIX_FULL_COUNT * 20 / 100);
	assert_in_range(sampling[JPEG_444], FILE_MIX_FULL_COUNT * 5 / 100,
	                FILE_MIX_FULL_COUNT * 20 / 100);
	assert_in_range(sampling[JPEG_GREY], FILE_MIX_FULL_COUNT * 2 / 100,
	                FILE_MIX_FULL_COUNT * 10 / 100);
	assert_in_range(progressive, FILE_MIX_FULL_COUNT * 3 / 100, FILE_MIX_FULL_COUNT * 15 / 100);
	assert_in_range(cameras, FILE_MIX_FULL_COUNT * 15 / 100, FILE_MIX_FULL_COUNT * 40 / 100);
	assert_true(low > FILE_MIX_FULL_COUNT / 20 && high > FILE_MIX_FULL_COUNT / 20);
	assert_in_range(orientation[1], FILE_MIX_FULL_COUNT * 90 / 100,
	                FILE_MIX_FULL_COUNT * 97 / 100);
	assert_true(orientation[6] > orientation[8] && orientation[8] > orientation[5]);
	for (i = 2; i <= 8; i++)
		assert_true(orientation[i] > 0);
}

static void shapes_have_about_the_wanted_pixels(void **state)
{
	struct file_mix mix = FULL;
	struct file_spec f;
	uint64_t pixels;
	uint32_t i;

	(void)state;
	for (i = 0; i < FILE_MIX_FULL_COUNT; i += 7) {
		file_mix_spec(&mix, i, &f);
		for (pixels = 1; pixels < UINT64_C(1) << 40; pixels *= 3) {
			file_mix_shape(&f, pixels);
			assert_in_range(f.form.width, 4, LONG_SIDE_MAX);
			assert_in_range(f.form.height, 4, LONG_SIDE_MAX);
			if (f.bytes < 2500 && pixels > 5000 && pixels < 10000000) {
				uint64_t got = (uint64_t)f.form.width * (uint64_t)f.form.height;

				assert_in_range(got, pixels * 95 / 100, pixels * 105 / 100);
			}
		}
	}
}

static void broken_files_follow_the_good_ones(void **state)
{
	struct file_mix mix = { .seed = 3,
		                .count = { [FILE_GOOD] = 2,
		                           [FILE_TRUNCATED] = 1,
		                           [FILE_NOT_JPEG] = 2,
		                           [FILE_EMPTY] = 1 } };
	static const enum file_kind kinds[] = { FILE_GOOD,     FILE_GOOD,     FILE_TRUNCATED,
		                                FILE_NOT_JPEG, FILE_NOT_JPEG, FILE_EMPTY };
	static const char *const suffixes[] = { ".jpg",         ".jpg",         ".truncated.jpg",
		                                ".notjpeg.jpg", ".notjpeg.jpg", ".empty.jpg" };
	char name[FILE_NAME_SIZE];
	struct file_spec f;
	uint32_t i;

	(void)state;
	assert_int_equal(file_mix_count(&mix), COUNT_OF(kinds));
	for (i = 0; i < COUNT_OF(kinds); i++) {
		file_mix_spec(&mix, i, &f);
		file_mix_name(&f, name);
		assert_int_equal(f.kind, kinds[i]);
		assert_string_equal(name + 16, suffixes[i]);
		if (f.kind == FILE_TRUNCATED)
			assert_in_range(f.cut_bytes, f.bytes / 2, f.bytes * 9 / 10);
		if (f.kind == FILE_EMPTY)
			assert_int_equal(f.bytes, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_set_has_the_sizes_of_the_paper),
		cmocka_unit_test(every_smaller_set_has_the_same_shape),
		cmocka_unit_test(statistics_that_are_off_are_rejected),
		cmocka_unit_test(quantiles_lie_between_sizes),
		cmocka_unit_test(names_are_unique_and_unordered),
		cmocka_unit_test(mix_is_that_of_a_community_site),
		cmocka_unit_test(shapes_have_about_the_wanted_pixels),
		cmocka_unit_test(broken_files_follow_the_good_ones),
	};
	int failed;

	nowhere = fopen("/dev/null", "w");
	if (!nowhere)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fclose(nowhere);
	return failed;
}

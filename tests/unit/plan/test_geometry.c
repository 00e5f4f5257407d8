/* test_geometry.c - the sizes of pictures, and which part of their parents they show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "plan/geometry.h"
#include "support/plan_fixture.h"

static unsigned children(const struct plan *p, int parent)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->step_count; i++)
		n += p->step[i].parent == parent;
	return n;
}

static void pictures_fit_into_the_box_and_keep_their_proportions(void **state)
{
	static const int cases[][6] = {
		{ 1600, 1200, 800, 800, 800, 600 }, { 1200, 1600, 800, 800, 600, 800 },
		{ 800, 800, 800, 800, 800, 800 },   { 799, 10, 800, 800, 799, 10 },
		{ 20000, 3, 800, 800, 800, 1 },     { 3, 20000, 160, 160, 1, 160 },
		{ 1000, 1000, 0, 0, 1000, 1000 },   { 4000, 3000, 800, 100, 133, 100 },
		{ 4000, 3000, 100, 800, 100, 75 },  { 65500, 65500, 1, 65500, 1, 1 },
		{ 1601, 1200, 800, 800, 800, 600 }, { 5, 3, 4, 4, 4, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const int *k = cases[i];
		int w, h;

		size_fit(k[0], k[1], (uint32_t)k[2], (uint32_t)k[3], &w, &h);
		assert_int_equal(w, k[4]);
		assert_int_equal(h, k[5]);
	}
}

static void a_derived_step_has_the_size_of_a_direct_one(void **state)
{
	struct geometry g;

	(void)state;
	plan_add_variant("medium", "scale 800x800 inside");
	plan_add_variant("thumb", "scale 160x160 inside");
	plan_add_variant("up", "scale 100x100 inside, scale 400x400 inside");
	assert_int_equal(plan_make(), 0);
	for (int w = 1; w < 5000; w += 37)
		for (int h = 1; h < 5000; h += 41) {
			int width, height;

			size_fit(w, h, 160, 160, &width, &height);
			geometry_of_step(&g, &plan, 1, w, h, NULL);
			assert_int_equal(g.width, width);
			assert_int_equal(g.height, height);
		}
	/* A later scale never enlarges what an earlier one made small. */
	geometry_of_step(&g, &plan, (unsigned)plan_file_of(2), 1000, 500, NULL);
	assert_int_equal(g.width, 100);
	assert_int_equal(g.height, 50);
}

static void assert_size(unsigned variant, int width, int height, int wanted_width,
                        int wanted_height)
{
	struct geometry g;

	geometry_of_step(&g, &plan, (unsigned)plan_file_of(variant), width, height, NULL);
	if (g.width != wanted_width || g.height != wanted_height)
		fail_msg("%s of %dx%d: %dx%d, not %dx%d", conf.variant[variant].operations, width,
		         height, g.width, g.height, wanted_width, wanted_height);
}

static void every_fit_has_its_sizes(void **state)
{
	(void)state;
	conf.limits.width = conf.limits.height = 65500;
	conf.limits.pixels = UINT64_C(1) << 32;
	plan_add_variant("cover", "scale 300x200 cover");
	plan_add_variant("exact", "scale 300x200 exact");
	plan_add_variant("cover+", "scale 300x200 cover");
	plan_add_variant("exact+", "scale 300x200 exact");
	plan_add_variant("inside+", "scale 300x200 inside");
	plan_add_variant("chain", "scale 300x200 cover, scale 150x150 inside, rotate 90");
	plan_add_variant("turned", "rotate 270, scale 300x200 cover");
	plan_add_variant("again", "scale 100x100 cover, scale 200x200 cover");
	for (unsigned i = 2; i < 5; i++)
		conf.variant[i].enlarge = CONF_YES;
	assert_int_equal(plan_make(), 0);
	assert_size(0, 1000, 1000, 300, 200);
	assert_size(0, 299, 1000, 299, 199);
	assert_size(0, 1000, 150, 225, 150);
	assert_size(0, 1, 1000, 1, 1);
	assert_size(1, 1000, 1000, 300, 200);
	assert_size(1, 100, 1000, 100, 200);
	assert_size(1, 100, 100, 100, 100);
	assert_size(2, 10, 10, 300, 200);
	assert_size(3, 10, 10, 300, 200);
	assert_size(4, 10, 10, 200, 200);
	assert_size(4, 1, 1000, 1, 200);
	assert_size(4, 30, 1, 300, 10);
	assert_size(5, 1000, 1000, 100, 150);
	assert_size(6, 1000, 1000, 300, 200);
	assert_size(6, 1000, 250, 250, 167);
	assert_size(7, 1000, 1000, 100, 100);
}

static void a_derived_cover_has_the_size_of_a_direct_one_and_cuts_no_more(void **state)
{
	static const int boxes[][2] = { { 160, 160 }, { 100, 70 }, { 7, 300 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(boxes); i++) {
		struct plan both;
		char text[64];

		plan_reset(state);
		for (int by = 3; by >= 1; by -= 2) {
			snprintf(text, sizeof(text), "scale %dx%d cover", boxes[i][0] * by,
			         boxes[i][1] * by);
			plan_add_variant("v", text);
		}
		assert_int_equal(plan_make(), 0);
		both = plan;
		assert_int_equal(children(&both, PLAN_ROOT), 1);
		conf.variant[0] = conf.variant[1];
		conf.variant_count = 1;
		assert_int_equal(plan_make(), 0);
		for (int w = 1; w < 1200; w += 7)
			for (int h = 1; h < 1200; h += 11) {
				struct geometry a, b;

				geometry_of_step(&a, &plan, 0, w, h, NULL);
				geometry_of_step(&b, &both, 1, w, h, NULL);
				assert_int_equal(a.width, b.width);
				assert_int_equal(a.height, b.height);
				if (b.shown_width < 1 || b.shown_height < 1)
					fail_msg("%dx%d: %dx%d %g %g", w, h, a.width, a.height,
					         b.shown_width, b.shown_height);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_fit_into_the_box_and_keep_their_proportions),
		cmocka_unit_test_setup(a_derived_step_has_the_size_of_a_direct_one, plan_reset),
		cmocka_unit_test_setup(every_fit_has_its_sizes, plan_reset),
		cmocka_unit_test_setup(
			a_derived_cover_has_the_size_of_a_direct_one_and_cuts_no_more, plan_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

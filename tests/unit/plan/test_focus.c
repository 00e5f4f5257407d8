/* test_focus.c - focal points: their notation, and the covers around them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "plan/geometry.h"
#include "support/plan_fixture.h"

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9)
		fail_msg("%.12f is not %.12f", a, b);
}

static void points_are_two_percentages(void **state)
{
	static const struct {
		const char *text;
		double x, y;
	} points[] = {
		{ "30%:70%", .3, .7 },
		{ "0%:100%", 0, 1 },
		{ "33.25%:0.5%", .3325, .005 },
		{ ".5%:5.%", .005, .05 },
	};
	static const char *const others[] = {
		"",           "30%",      "30:70",    "30%:70",
		"30%:70%x",   "30%:%",    "%:70%",    ".%:70%",
		"1.2.3%:70%", "-1%:70%",  "101%:70%", "30%:100.1%",
		"30% :70%",   "1e1%:70%", "30%,70%",  "0000000000000030%:000070%",
	};
	struct focus f;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(points); i++) {
		assert_true(focus_parse(&f, points[i].text, strlen(points[i].text)));
		assert_near(f.x, points[i].x);
		assert_near(f.y, points[i].y);
	}
	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (focus_parse(&f, others[i], strlen(others[i])))
			fail_msg("'%s' is read as %g:%g", others[i], f.x, f.y);
	assert_false(focus_parse(&f, "30%:70%", 6));
}

/* A cover of half of the side. */
static void a_cover_keeps_the_point_in_its_middle_as_far_as_it_can(void **state)
{
	static const double cases[][3] = { { .5, 0, .5 },  { 0, -1, 0 },   { .25, -1, .5 },
		                           { .1, -1, .2 }, { .6, .4, .5 }, { .375, -.5, .5 },
		                           { .75, 1, .5 }, { .9, 1, .8 },  { 1, 1, 1 } };
	double at, place;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		at = cases[i][0];
		focus_cover(&at, .5, &place);
		assert_near(place, cases[i][1]);
		assert_near(at, cases[i][2]);
	}
	at = .1;
	focus_cover(&at, 1, &place);
	assert_near(place, 0);
	assert_near(at, .1);
}

static void points_are_turned_back(void **state)
{
	const struct focus top = { .5, 0 };
	static const double expected[][2] = { { .5, 0 }, { 0, .5 }, { .5, 1 }, { 1, .5 } };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct focus f = focus_before_rotation(top, i * 90);

		assert_near(f.x, expected[i][0]);
		assert_near(f.y, expected[i][1]);
	}
}

static struct geometry geometry_of(int step, const struct focus *focus)
{
	struct geometry g;

	geometry_of_step(&g, &plan, (unsigned)step, 1000, 500, focus);
	return g;
}

static void a_focus_replaces_the_gravity_of_each_cover_of_a_chain(void **state)
{
	const struct focus focus = { .3, .8 };

	(void)state;
	plan_add_variant("chain", "scale 500x500 cover right, scale 100x50 cover bottom");
	assert_int_equal(plan_make(), 0);
	assert_near(geometry_of(0, NULL).place_x, 1);
	assert_near(geometry_of(1, NULL).place_x, 0);
	assert_near(geometry_of(1, NULL).place_y, 1);
	/* The square shows 50 to 550 of 1000, and the point lies at its middle. */
	assert_near(geometry_of(0, &focus).place_x, -.8);
	assert_near(geometry_of(0, &focus).focus.x, .5);
	/* Half of the height is left: the point would be its middle at 250 and 750 of 1000. */
	assert_near(geometry_of(1, &focus).place_y, 1);
	assert_near(geometry_of(1, &focus).focus.y, .6);
}

static void the_place_never_changes_a_size(void **state)
{
	(void)state;
	plan_add_variant("top", "scale 90x160 cover top");
	plan_add_variant("middle", "scale 90x160 cover");
	assert_int_equal(plan_make(), 0);
	for (double x = 0; x <= 1; x += .25) {
		const struct focus focus = { x, 1 - x };
		struct geometry a = geometry_of(0, &focus), b = geometry_of(1, NULL);

		assert_int_equal(a.width, b.width);
		assert_int_equal(a.height, b.height);
		assert_near(a.shown_width, b.shown_width);
	}
}

static void covers_share_steps_only_with_the_same_gravity(void **state)
{
	(void)state;
	plan_add_variant("large", "scale 800x600 cover top");
	plan_add_variant("small", "scale 400x300 cover 50%:0%");
	plan_add_variant("middle", "scale 400x300 cover");
	plan_add_variant("same", "scale 800x600 cover top, blur 2");
	plan_add_variant("other", "scale 800x600 cover bottom, blur 2");
	assert_int_equal(plan_make(), 0);
	int large = plan.step[plan_file_of(0)].parent;

	assert_int_equal(plan_parent_of(plan_file_of(1))->parent, large);
	assert_int_equal(plan_parent_of(plan_file_of(2))->parent, PLAN_ROOT);
	assert_int_equal(plan_parent_of(plan_file_of(3))->parent, large);
	assert_int_not_equal(plan_parent_of(plan_file_of(4))->parent, large);
}

static void gravity_belongs_to_the_picture_as_it_is_at_that_place(void **state)
{
	(void)state;
	plan_add_variant("turned", "rotate 90, scale 300x300 cover top");
	plan_add_variant("inside", "scale 70x70 inside");
	plan_add_variant("also", "rotate 180, scale 70x70 inside, rotate 180");
	assert_int_equal(plan_make(), 0);
	/* The top of the picture that was rotated clockwise is the left of the upright one. */
	const struct plan_step *cover = &plan.step[0];

	assert_int_equal(cover->op.fit, PLAN_COVER);
	assert_near(cover->op.gravity.x, 0);
	assert_near(cover->op.gravity.y, .5);
	assert_int_equal(plan.step[plan_file_of(1)].parent, plan.step[plan_file_of(2)].parent);
}

static void a_wrong_gravity_is_reported(void **state)
{
	static const char *const wrong[] = { "scale 9x9 cover up", "scale 9x9 cover 30:70",
		                             "scale 9x9 inside top", "scale 9x9 cover top left" };

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		plan_reset(state);
		plan_add_variant("v", wrong[i]);
		assert_true(plan_make() < 0);
		assert_non_null(strstr(plan_error, i < 2 ? "expected top, bottom, left, right or "
		                                           "X%:Y%, each 0%..100%"
		                                         : "expected a comma"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_two_percentages),
		cmocka_unit_test(a_cover_keeps_the_point_in_its_middle_as_far_as_it_can),
		cmocka_unit_test(points_are_turned_back),
		cmocka_unit_test_setup(a_focus_replaces_the_gravity_of_each_cover_of_a_chain,
		                       plan_reset),
		cmocka_unit_test_setup(the_place_never_changes_a_size, plan_reset),
		cmocka_unit_test_setup(covers_share_steps_only_with_the_same_gravity, plan_reset),
		cmocka_unit_test_setup(gravity_belongs_to_the_picture_as_it_is_at_that_place,
		                       plan_reset),
		cmocka_unit_test(a_wrong_gravity_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

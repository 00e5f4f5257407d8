/* test_plan.c - the grammar of operations, and the tree that is made of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/conf.h"
#include "../../stages/pixel/geometry.h"
#include "../../stages/plan.h"
#include "../../stages/stages.h"

static struct conf conf;
static struct plan plan;
static char error[256];
static unsigned at_fault;

static void add(const char *name, const char *operations)
{
	struct conf_variant *v = &conf.variant[conf.variant_count++];

	snprintf(v->name, sizeof(v->name), "%s", name);
	snprintf(v->operations, sizeof(v->operations), "%s", operations);
	v->quality = 80;
}

static int setup(void **state)
{
	(void)state;
	memset(&conf, 0, sizeof(conf));
	error[0] = '\0';
	return 0;
}

static int build(void)
{
	return plan_build(&plan, &conf, &at_fault, error, sizeof(error));
}

static void assert_step(int index, unsigned stage, int parent, unsigned children)
{
	assert_true(index >= 0 && (unsigned)index < plan.step_count);
	assert_int_equal(plan.step[index].stage, stage);
	assert_int_equal(plan.step[index].parent, parent);
	assert_int_equal(plan.step[index].child_count, children);
}

/* The step that encodes a variant. */
static int file_of(unsigned variant)
{
	for (unsigned i = 0; i < plan.step_count; i++)
		if (plan.step[i].stage == STAGE_JPEG_ENCODE && plan.step[i].variant == variant)
			return (int)i;
	return -1;
}

static const struct plan_step *parent_of(int index)
{
	assert_true(index >= 0 && plan.step[index].parent >= 0);
	return &plan.step[plan.step[index].parent];
}

static void reference_variants(void **state)
{
	(void)state;
	add("medium", "scale 800x800 inside");
	add("thumb", "scale 160x160 inside");
	add("blurred", "scale 800x800 inside, blur 8");
	assert_int_equal(build(), 0);
	/* medium and blurred share their scale, and thumb is made from it */
	assert_int_equal(plan.step_count, 6);
	assert_int_equal(plan.root_child_count, 1);
	assert_int_equal(plan.variant_count, 3);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 3);
	assert_int_equal(plan.step[0].width, 800);
	assert_step(1, STAGE_SCALE, 0, 1);
	assert_int_equal(plan.step[1].width, 160);
	assert_step(file_of(0), STAGE_JPEG_ENCODE, 0, 0);
	assert_step(file_of(1), STAGE_JPEG_ENCODE, 1, 0);
	assert_int_equal(parent_of(file_of(2))->stage, STAGE_BLUR);
	assert_int_equal(parent_of(file_of(2))->parent, 0);
	assert_true(parent_of(file_of(2))->sigma > 7.99 && parent_of(file_of(2))->sigma < 8.01);
}

static void parents_stand_before_children(void **state)
{
	(void)state;
	add("tiny", "scale 20x20 inside");
	add("small", "scale 100x100 inside, blur 1.5");
	add("large", "scale 2000x2000 inside");
	add("same", "scale 2000x2000 inside, blur 3, scale 50x50 inside");
	add("whole", "");
	assert_int_equal(build(), 0);
	for (unsigned i = 0; i < plan.step_count; i++)
		assert_true(plan.step[i].parent < (int)i);
	/* whole <- large <- small <- tiny: each from the nearest that is large enough */
	assert_int_equal(plan.root_child_count, 1);
	assert_int_equal(parent_of(file_of(4))->width, 0);
	assert_int_equal(parent_of(file_of(2))->width, 2000);
	assert_int_equal(plan.step[parent_of(file_of(2))->parent].width, 0);
	assert_int_equal(plan.step[parent_of(file_of(0))->parent].width, 100);
}

static void no_derivation_unless_larger_both_ways(void **state)
{
	(void)state;
	add("wide", "scale 800x100 inside");
	add("high", "scale 100x800 inside");
	add("near", "scale 500x90 inside");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 3);
}

static void every_chain_begins_with_a_scale(void **state)
{
	(void)state;
	add("empty", "  ");
	add("blurred", "blur 2");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 1);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 2);
	assert_int_equal(plan.step[0].width, 0);
	assert_int_equal(plan.step[0].height, 0);
}

static void blanks_are_free(void **state)
{
	(void)state;
	add("v", " scale\t7x9   inside ,blur .5,scale 65500x1 inside");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.step_count, 4);
	assert_int_equal(plan.step[0].width, 7);
	assert_int_equal(plan.step[0].height, 9);
}

static void errors_say_what_was_expected(void **state)
{
	static const struct {
		const char *operations, *says;
	} wrong[] = {
		{"scal 8x8 inside", "variant.v: operations: 'scal' is not an operation; expected scale, blur, sharpen, grayscale or rotate"},
		{"scale", "'' is not a size for scale"},
		{"scale 800 inside", "'800' is not a size for scale; expected WIDTHxHEIGHT, each 1..65500"},
		{"scale 0x9 inside", "'0x9' is not a size"},
		{"scale 9x0 inside", "'9x0' is not a size"},
		{"scale 65501x9 inside", "is not a size"},
		{"scale 99999999999999999999x9 inside", "is not a size"},
		{"scale 8x8x8 inside", "is not a size"},
		{"scale -8x8 inside", "is not a size"},
		{"scale 8x8", "expected 'inside', 'cover' or 'exact'"},
		{"scale 8x8 outside", "followed by 'outside'; expected 'inside', 'cover' or 'exact'"},
		{"scale 8x8 inside blur 8", "expected a comma"},
		{"scale 8x8 inside,", "missing after the last comma"},
		{",", "'' is not an operation"},
		{"blur", "'' is not a sigma for blur; expected a number of pixels, 0.3..200"},
		{"blur 0.2", "'0.2' is not a sigma"},
		{"blur 201", "is not a sigma"},
		{"blur nan", "is not a sigma"},
		{"blur 1e2", "is not a sigma"},
		{"blur 1.2.3", "is not a sigma"},
		{"blur .", "is not a sigma"},
		{"blur 00000000000000000000000000000000000000008", "is not a sigma"},
		{"blur 8,, blur 8", "'' is not an operation"},
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		setup(state);
		add("good", "");
		add("v", wrong[i].operations);
		at_fault = 99;
		assert_int_equal(build(), -EINVAL);
		assert_int_equal(at_fault, 1);
		if (!strstr(error, wrong[i].says))
			fail_msg("%s: %s", wrong[i].operations, error);
	}
}

static void too_many_steps(void **state)
{
	char operations[CONF_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < CONF_VARIANT_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "v%u", i);
		snprintf(operations, sizeof(operations), "scale %ux9 inside, blur 1, blur 2, blur 3", 10 + i);
		add(name, operations);
	}
	assert_int_equal(build(), -EINVAL);
	assert_non_null(strstr(error, "more than 64 different steps"));
}

static void too_many_operations(void **state)
{
	char operations[CONF_TEXT_MAX] = "blur 1";

	(void)state;
	for (unsigned i = 0; i < 33; i++)
		strcat(operations, ",blur 1");
	add("v", operations);
	assert_int_equal(build(), -EINVAL);
	assert_non_null(strstr(error, "more than 32 operations"));
}

/* A hostile or sleepy operator: whatever the text, an answer and no overrun (for the sanitizers). */
static void any_text(void **state)
{
	static const char alphabet[] = "scale blur inside 0123456789xx.,, \t";
	unsigned seed = 1;

	for (unsigned n = 0; n < 20000; n++) {
		char text[40];
		unsigned length = n % (sizeof(text) - 1);

		for (unsigned i = 0; i < length; i++) {
			seed = seed * 1103515245U + 12345U;
			text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
		}
		text[length] = '\0';
		setup(state);
		add("v", text);
		if (build())
			assert_true(error[0] != '\0');
	}
}

static void sizes_are_those_from_the_whole_image(void **state)
{
	struct geometry g;

	(void)state;
	add("medium", "scale 800x800 inside");
	add("thumb", "scale 160x160 inside");
	add("up", "scale 100x100 inside, scale 400x400 inside");
	assert_int_equal(build(), 0);
	for (int w = 1; w < 5000; w += 37)
		for (int h = 1; h < 5000; h += 41) {
			int width, height;

			size_fit(w, h, 160, 160, &width, &height);
			geometry_of_step(&g, &plan, 1, w, h);
			assert_int_equal(g.width, width);
			assert_int_equal(g.height, height);
		}
	/* a later scale never enlarges what an earlier one has made small */
	geometry_of_step(&g, &plan, (unsigned)file_of(2), 1000, 500);
	assert_int_equal(g.width, 100);
	assert_int_equal(g.height, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reference_variants, setup),
		cmocka_unit_test_setup(parents_stand_before_children, setup),
		cmocka_unit_test_setup(no_derivation_unless_larger_both_ways, setup),
		cmocka_unit_test_setup(every_chain_begins_with_a_scale, setup),
		cmocka_unit_test_setup(blanks_are_free, setup),
		cmocka_unit_test_setup(errors_say_what_was_expected, setup),
		cmocka_unit_test_setup(too_many_steps, setup),
		cmocka_unit_test_setup(too_many_operations, setup),
		cmocka_unit_test_setup(any_text, setup),
		cmocka_unit_test_setup(sizes_are_those_from_the_whole_image, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

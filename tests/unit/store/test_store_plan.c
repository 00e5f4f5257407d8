/* test_store_plan.c - what darkroomd store plan prints. */
#include "support/text_streams.h"

#include "base/check.h"
#include "store/remake_plan.h"
#include "store/store_query.h"

static struct remake_plan made; /* by the fakes */
static int open_status, sum_status;

static int fake_open(struct remake_plan *p, struct store_query *q)
{
	(void)q;
	*p = made;
	return open_status;
}

static int fake_sum(struct remake_plan *p, struct store_query *q)
{
	(void)q;
	assert_int_equal(open_status, 0);
	p->images = made.images;
	return sum_status;
}

#define remake_plan_open fake_open
#define remake_plan_sum fake_sum
#include "store/store_plan.c"

static struct store_query query;

static int setup(void **state)
{
	(void)state;
	open_streams();
	open_status = sum_status = 0;
	query.is_json = false;
	made = (struct remake_plan){
		.ns_per_kilopixel = 10000,
		.wanted = 13, /* no fourth one is configured */
		.missing = { 1, 2, 3 },
		.differs = { 4, 5, 6 },
		.lost = { 7, 8, 9 },
		.images = 100,
		.remade = 20,
		.bytes = 2999999,
		.pixels = 700999999,
	};
	made.conf.variant_count = 3;
	strcpy(made.conf.variant[0].name, "small");
	strcpy(made.conf.variant[1].name, "big");
	strcpy(made.conf.variant[2].name, "grey");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

#define HEAD "VARIANT                      MISSING  OTHER SETTINGS  WITHOUT ORIGINAL\n"
#define SMALL "small                              1               4                 7\n"
#define GREY "grey                               3               6                 9\n"
#define TOTAL                                                                                    \
	"20 of 100 images are to be remade: 2 MB and 700 megapixels of originals, about 7 s of " \
	"CPU time (an estimate)\n"

static void wanted_variants_have_a_line(void **state)
{
	(void)state;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	check_written(HEAD SMALL GREY TOTAL, "");
	made.without_original = 1;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	check_written(HEAD SMALL GREY TOTAL "1 images cannot be remade: they have no original\n",
	              "");
	made.wanted = 0;
	made.without_original = 0;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	check_written(HEAD TOTAL, "");
}

static void whole_millions_are_rounded_down(void **state)
{
	(void)state;
	made.wanted = 0;
	made.bytes = 2000000;
	made.pixels = 700000000;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	check_written(HEAD TOTAL, "");
}

static void json_has_the_same_figures(void **state)
{
	(void)state;
	query.is_json = true;
	made.without_original = 3;
	made.wanted = 1;
	made.pixels = 1000000;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	check_written("{\"variant\":\"small\",\"missing\":1,\"other_settings\":4,"
	              "\"without_original\":7}\n"
	              "{\"total\":\"all\",\"images\":100,\"remade\":20,\"without_original\":3,"
	              "\"original_bytes\":2999999,\"pixels\":1000000,\"estimated_cpu_s\":0.01}\n",
	              "");
}

static void the_longest_figures_have_room(void **state)
{
	(void)state;
	query.is_json = true;
	made.wanted = 1;
	memset(made.conf.variant[0].name, 'n', CONF_NAME_MAX - 1);
	made.missing[0] = made.differs[0] = made.lost[0] = UINT64_MAX;
	made.images = made.remade = made.without_original = made.bytes = made.pixels = UINT64_MAX;
	assert_int_equal(store_plan(&query), EXIT_SUCCESS);
	fflush(out_stream);
	assert_int_equal(out_text[out_size - 2], '}');
	assert_non_null(strstr(out_text, "18446744073709551615}\n"));
}

static void a_failure_ends_the_plan(void **state)
{
	(void)state;
	open_status = 7;
	assert_int_equal(store_plan(&query), 7);
	open_status = 0;
	sum_status = 8;
	assert_int_equal(store_plan(&query), 8);
	check_written("", "");
	sum_status = 0;
	made.damaged = 1; /* what was counted is printed */
	assert_int_equal(store_plan(&query), EXIT_FAILURE);
	check_written(HEAD SMALL GREY TOTAL, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wanted_variants_have_a_line), TEST(whole_millions_are_rounded_down),
		TEST(json_has_the_same_figures),   TEST(the_longest_figures_have_room),
		TEST(a_failure_ends_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

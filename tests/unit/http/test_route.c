/* test_route.c - targets, methods and audiences of resources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "http/route.h"
#include "support/slice_fixture.h"

#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"

static void check_route(const struct conf *conf, const char *target, enum route_kind kind,
                        unsigned variant)
{
	struct slice all = slice_new(target);
	struct route route;

	route_find(&route, conf, all);
	if (route.kind != kind)
		fail_msg("'%s' gave %d", target, (int)route.kind);
	if (kind == ROUTE_IMAGE || kind == ROUTE_VARIANT)
		assert_string_equal(route.id, ID);
	assert_string_equal(route.variant,
	                    kind == ROUTE_VARIANT ? conf->variant[variant].name : "");
	slice_free(all);
}

static void a_target_names_one_resource(void **state)
{
	static struct conf conf = { .variant_count = 2,
		                    .variant = { { .name = "medium" }, { .name = "a" } } };

	(void)state;
	check_route(&conf, "/images", ROUTE_IMAGES, 0);
	check_route(&conf, "/images?x=/y", ROUTE_IMAGES, 0);
	check_route(&conf, "http://example.com:80/images", ROUTE_IMAGES, 0);
	check_route(&conf, "HTTPS://example.com/healthz?", ROUTE_HEALTHZ, 0);
	check_route(&conf, "/images/" ID, ROUTE_IMAGE, 0);
	check_route(&conf, "/images/" ID "?a", ROUTE_IMAGE, 0);
	check_route(&conf, "/images/" ID "/medium.jpg", ROUTE_VARIANT, 0);
	check_route(&conf, "/images/" ID "/a.jpg", ROUTE_VARIANT, 1);
	check_route(&conf, "/readyz", ROUTE_READYZ, 0);
	check_route(&conf, "/stats", ROUTE_STATS, 0);
	check_route(&conf, "*", ROUTE_SERVER, 0);
	check_route(&conf, "", ROUTE_NONE, 0);
	check_route(&conf, "/", ROUTE_NONE, 0);
	check_route(&conf, "http://example.com", ROUTE_NONE, 0);
	check_route(&conf, "http://example.com?/images", ROUTE_NONE, 0);
	check_route(&conf, "http://example.com/images?http://x/stats", ROUTE_IMAGES, 0);
	check_route(&conf, "ftp://example.com/images", ROUTE_NONE, 0);
	check_route(&conf, "images", ROUTE_NONE, 0);
	check_route(&conf, "/images/", ROUTE_NONE, 0);
	check_route(&conf, "/imagesX", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "x", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/b.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/medium.png", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/medium.jpg/", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/image.json", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/../medium.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/../../../../etc/passwd1234", ROUTE_NONE, 0);
	check_route(&conf, "/images/01ARZ3NDEKTSV4RRFFQ69G5FA", ROUTE_NONE, 0);
}

static void a_resource_has_its_methods(void **state)
{
	(void)state;
	assert_true(route_allows(ROUTE_IMAGES, ROUTE_POST));
	assert_false(route_allows(ROUTE_IMAGES, ROUTE_GET));
	assert_true(route_allows(ROUTE_IMAGE, ROUTE_DELETE));
	assert_false(route_allows(ROUTE_VARIANT, ROUTE_DELETE));
	assert_false(route_allows(ROUTE_STATS, ROUTE_OTHER));
}

static void a_resource_is_served_to_its_audience_only(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < ROUTE_COUNT; kind++) {
		bool is_public = route_is_for((enum route_kind)kind, ROUTE_PUBLIC);
		bool is_admin = route_is_for((enum route_kind)kind, ROUTE_ADMIN);

		assert_int_equal(is_public || is_admin, kind != ROUTE_NONE);
		assert_int_equal(route_is_for((enum route_kind)kind, ROUTE_PUBLIC | ROUTE_ADMIN),
		                 is_public || is_admin);
	}
	assert_false(route_is_for(ROUTE_STATS, ROUTE_PUBLIC));
	assert_false(route_is_for(ROUTE_METRICS, ROUTE_PUBLIC));
	assert_false(route_is_for(ROUTE_IMAGES, ROUTE_ADMIN));
	assert_false(route_is_for(ROUTE_IMAGE, ROUTE_ADMIN));
	assert_true(route_is_for(ROUTE_READYZ, ROUTE_PUBLIC) &&
	            route_is_for(ROUTE_READYZ, ROUTE_ADMIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_names_one_resource),
		cmocka_unit_test(a_resource_has_its_methods),
		cmocka_unit_test(a_resource_is_served_to_its_audience_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_route.c - targets, methods and audiences of resources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/route.h"
#include "support/slice_fixture.h"

#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"

/* variant: expected if the target is one. */
static void check_route(const char *target, enum route_kind kind, const char *variant)
{
	struct slice all = slice_new(target);
	struct route route;

	route_find(&route, METHOD_POST, all);
	if (route.kind != kind)
		fail_msg("'%s' gave %d", target, (int)route.kind);
	if (kind == ROUTE_IMAGE || kind == ROUTE_VARIANT)
		assert_string_equal(route.id, ID);
	assert_string_equal(route.variant, variant);
	slice_free(all);
}

static void a_target_names_one_resource(void **state)
{
	(void)state;
	check_route("/images", ROUTE_IMAGES, "");
	check_route("/images?x=/y", ROUTE_IMAGES, "");
	check_route("http://example.com:80/images", ROUTE_IMAGES, "");
	check_route("HTTPS://example.com/healthz?", ROUTE_HEALTHZ, "");
	check_route("/images/" ID, ROUTE_IMAGE, "");
	check_route("/images/" ID "?a", ROUTE_IMAGE, "");
	check_route("/images/" ID "/medium.jpg", ROUTE_VARIANT, "medium");
	check_route("/images/" ID "/a.jpg", ROUTE_VARIANT, "a");
	check_route("/readyz", ROUTE_READYZ, "");
	check_route("/stats", ROUTE_STATS, "");
	check_route("*", ROUTE_SERVER, "");
	check_route("", ROUTE_NONE, "");
	check_route("/", ROUTE_PAGE, "");
	check_route("/page.js?1", ROUTE_PAGE, "");
	check_route("/operator", ROUTE_OPERATOR, "");
	check_route("/openapi.json", ROUTE_OPENAPI, "");
	check_route("/stats/stream", ROUTE_STREAM, "");
	check_route("/graph.svg", ROUTE_GRAPH_SVG, "");
	check_route("/control?scheduler.policy=mg1", ROUTE_CONTROL, "");
	check_route("/page.html", ROUTE_NONE, "");
	check_route("http://example.com", ROUTE_NONE, "");
	check_route("http://example.com?/images", ROUTE_NONE, "");
	check_route("http://example.com/images?http://x/stats", ROUTE_IMAGES, "");
	check_route("ftp://example.com/images", ROUTE_NONE, "");
	check_route("images", ROUTE_NONE, "");
	check_route("/images/", ROUTE_NONE, "");
	check_route("/imagesX", ROUTE_NONE, "");
	check_route("/images/" ID "/", ROUTE_NONE, "");
	check_route("/images/" ID "x", ROUTE_NONE, "");
	check_route("/images/" ID "/.jpg", ROUTE_NONE, "");
	check_route("/images/" ID "/original.jpg", ROUTE_ORIGINAL, "");
	check_route("/images/" ID "/A.jpg", ROUTE_NONE, "");
	check_route("/images/" ID "/a.b.jpg", ROUTE_NONE, "");
	check_route("/images/" ID "/..jpg", ROUTE_NONE, "");
	check_route("/images/" ID "/-_abcdefghijklmnopqrstuvwxyz012.jpg", ROUTE_VARIANT,
	            "-_abcdefghijklmnopqrstuvwxyz012");
	check_route("/images/" ID "/-_abcdefghijklmnopqrstuvwxyz0123.jpg", ROUTE_NONE, "");
	check_route("/images/" ID "/medium.png", ROUTE_NONE, "");
	check_route("/images/" ID "/medium.jpg/", ROUTE_NONE, "");
	check_route("/images/" ID "/image.json", ROUTE_NONE, "");
	check_route("/images/" ID "/../medium.jpg", ROUTE_NONE, "");
	check_route("/images/../../../../etc/passwd1234", ROUTE_NONE, "");
	check_route("/images/01ARZ3NDEKTSV4RRFFQ69G5FA", ROUTE_NONE, "");
}

static void encoded_unreserved_characters_mean_the_same(void **state)
{
	(void)state;
	check_route("/%69mages", ROUTE_IMAGES, "");
	check_route("/images/%30"
	            "1ARZ3NDEKTSV4RRFFQ69G5FAV/mediu%6D%2ejpg?%",
	            ROUTE_VARIANT, "medium");
	check_route("/st%61t%73", ROUTE_STATS, "");
	check_route("/images%2F" ID, ROUTE_NONE, "");
	check_route("/images%", ROUTE_NONE, "");
	check_route("/image%7", ROUTE_NONE, "");
	check_route("/%00images", ROUTE_NONE, "");
	check_route("/images/" ID "/%61.jpg", ROUTE_VARIANT, "a");
}

static void a_resource_has_its_methods(void **state)
{
	struct route route;

	(void)state;
	route_find(&route, METHOD_GET, (struct slice){ "/images?limit=1", 15 });
	assert_int_equal(route.kind, ROUTE_LIST);
	route_find(&route, METHOD_DELETE, (struct slice){ "/images", 7 });
	assert_int_equal(route.kind, ROUTE_IMAGES);
	assert_true(routes[ROUTE_IMAGES].methods & METHOD_POST);
	assert_false(routes[ROUTE_IMAGES].methods & METHOD_GET);
	assert_true(routes[ROUTE_IMAGE].methods & METHOD_DELETE);
	assert_false(routes[ROUTE_VARIANT].methods & METHOD_DELETE);
	assert_false(routes[ROUTE_STATS].methods & METHOD_OTHER);
}

static void a_resource_is_served_to_its_audience_only(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < ROUTE_COUNT; kind++) {
		bool is_public = routes[kind].audience & ROUTE_PUBLIC;
		bool is_admin = routes[kind].audience & ROUTE_ADMIN;

		assert_int_equal(is_public || is_admin, kind != ROUTE_NONE);
	}
	assert_false((routes[ROUTE_STATS].audience & ROUTE_PUBLIC));
	assert_false((routes[ROUTE_METRICS].audience & ROUTE_PUBLIC));
	assert_false((routes[ROUTE_IMAGES].audience & ROUTE_ADMIN));
	assert_false((routes[ROUTE_IMAGE].audience & ROUTE_ADMIN));
	assert_true((routes[ROUTE_READYZ].audience & ROUTE_PUBLIC) &&
	            (routes[ROUTE_READYZ].audience & ROUTE_ADMIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_names_one_resource),
		cmocka_unit_test(encoded_unreserved_characters_mean_the_same),
		cmocka_unit_test(a_resource_has_its_methods),
		cmocka_unit_test(a_resource_is_served_to_its_audience_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_remade.c - which steps of overload.degrade an image keeps when it is remade. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image/conf_epoch.h"
#include "image/remade.c"

static struct conf_epoch epoch = { .conf = { .variant_count = 2,
	                                     .variant = { { .name = "a" }, { .name = "b" } } } };
static struct upload upload = { .epoch = &epoch, .plan = &epoch.plan };
static struct remade remade;
static struct image image = { .upload = &upload, .remade = &remade, .file = { { .size = 1 } } };

/* The image gets its variant a. */
static void check(const char *steps, const char *expected)
{
	struct text t = TEXT_LOCAL(256);
	struct writer w = { .json = { .text = &t }, .image = &image };

	json_object(&w.json, NULL);
	degraded(&w, json_reader_check(steps, strlen(steps)));
	json_object_end(&w.json);
	assert_string_equal(t.data, expected);
}

static void steps_that_still_apply_are_kept(void **state)
{
	(void)state;
	check("[\"skip a\",\"quality 30\",\"skip b\"]",
	      "{\"degraded\":[\"quality 30\",\"skip b\"]}");
	check("[\"quality 30\"]", "{\"degraded\":[\"quality 30\"]}");
	check("[\"skip a\"]", "{}");
	check("[]", "{}");
	remade.is_complete = true;
	check("[\"skip b\"]", "{}");
	remade.is_complete = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_that_still_apply_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_sweep.c - removals by age beside a clock that is set, and when figures begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <time.h>

static int fake_gettime(clockid_t id, struct timespec *t);

#include "log/log.h"

static char said[512];

#undef log_error
#define log_error(...) snprintf(said, sizeof said, __VA_ARGS__)
#define clock_gettime fake_gettime
#include "background/sweep.c"
#undef clock_gettime

#include <cmocka.h>

static time_t fake_wall_s, fake_boot_s;

static int fake_gettime(clockid_t id, struct timespec *t)
{
	*t = (struct timespec){ .tv_sec = id == CLOCK_REALTIME ? fake_wall_s : fake_boot_s };
	return 0;
}

static void let_pass(time_t s)
{
	fake_wall_s += s;
	fake_boot_s += s;
}

static void nothing_is_removed_by_age_after_the_clock_was_set_far_ahead(void **state)
{
	static struct sweep r;

	(void)state;
	fake_wall_s = 1800000000;
	fake_boot_s = 1000;
	r.wall_ahead_s = wall_ahead_s();
	assert_true(may_remove_by_age(&r));
	let_pass(400 * 86400);
	assert_true(may_remove_by_age(&r));
	fake_wall_s += JUMP_MAX_S;
	assert_true(may_remove_by_age(&r));
	fake_wall_s += 1;
	assert_false(may_remove_by_age(&r));
	assert_string_equal(said,
	                    "expire: the clock went forward by 86401 s; no image is removed by "
	                    "its age until the clock is set back, or has been so for a day");
	let_pass(TRUST_S - 1);
	assert_false(may_remove_by_age(&r));
	fake_wall_s -= 2;
	assert_true(may_remove_by_age(&r));
	fake_wall_s += JUMP_MAX_S;
	assert_false(may_remove_by_age(&r));
	let_pass(TRUST_S);
	assert_true(may_remove_by_age(&r));
	fake_wall_s -= 365 * 86400; /* too early removes nothing that is not due */
	assert_true(may_remove_by_age(&r));
}

/* The sweep's thread may be later than the first upload. */
static void figures_are_kept_from_the_beginning(void **state)
{
	static const struct plan plan;
	static struct image_service images;
	static struct sweep r;
	static const _Atomic bool has_quotas = true;
	static struct conf conf;
	char root[] = "/tmp/darkroom-sweep-XXXXXX", command[64];
	unsigned cleared;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(conf_epochs_init(&images.epochs, &conf, &plan), 0);
	assert_int_equal(store_open(&images.store, root, false, &cleared), 0);
	images.storage = (struct storage){ .class = &store_of_files, .files = &images.store };
	assert_int_equal(sweep_init(&r, &images, &has_quotas), 0);
	assert_true(usage_total(&images.store.usage).is_on);
	feeder_fini(&r.feeder);
	store_close(&images.store);
	conf_epochs_fini(&images.epochs);
	snprintf(command, sizeof command, "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_removed_by_age_after_the_clock_was_set_far_ahead),
		cmocka_unit_test(figures_are_kept_from_the_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

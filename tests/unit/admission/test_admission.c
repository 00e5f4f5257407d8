/* test_admission.c - places, cores, and the image whose time is that of its upload. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "admission/admission.c"
#include "support/overload_sim.h"

static void the_first_good_image_of_an_upload_is_measured(void **state)
{
	static struct admitted upload;
	static const struct admission_end bad = { .has_failed = true }, good;

	(void)state;
	assert_false(is_measured(&upload, &bad));
	assert_true(is_measured(&upload, &good));
	assert_false(is_measured(&upload, &good));
	assert_false(is_measured(&upload, &bad));
}

/* Writes a file into the directory, and its path to `path`. */
static void put(char *path, size_t size, const char *directory, const char *name, const char *data)
{
	FILE *f;

	snprintf(path, size, "%s/%s", directory, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(data, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void cores_that_the_quota_does_not_grant_do_not_count(void **state)
{
	static struct conf conf = { .scheduler.threads = 64 };
	struct overload_params p;
	char directory[] = "/tmp/darkroom-test-admission-XXXXXX", membership[64], quota[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	put(membership, sizeof membership, directory, "membership", "0::/\n");
	put(quota, sizeof quota, directory, "cpu.max", "200000 100000\n");
	cores_read(64, membership, directory);
	p = params_of(&conf, &(struct conf_classes){ .count = 0 },
	              &(struct conf_degrade){ .count = 0 });
	assert_int_equal(p.cores, 2);
	conf.scheduler.threads = 1;
	p = params_of(&conf, &(struct conf_classes){ .count = 0 },
	              &(struct conf_degrade){ .count = 0 });
	assert_int_equal(p.cores, 1);
	assert_int_equal(unlink(membership), 0);
	assert_int_equal(unlink(quota), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void the_simulation_has_the_defaults_of_the_keys(void **state)
{
	static struct conf conf;
	const struct overload_params expected = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct text errors;

	(void)state;
	text_init_growable(&errors, 4096);
	assert_int_equal(conf_load(&conf, NULL, NULL, NULL, 0, &errors), 0);
	text_fini(&errors);
	struct overload_params p = params_of(&conf, &(struct conf_classes){ .count = 0 },
	                                     &(struct conf_degrade){ .count = 0 });

	assert_memory_equal(&p.control, &expected.control, sizeof p.control);
	assert_int_equal(p.samples, expected.samples);
	assert_int_equal(p.interval_ns, expected.interval_ns);
	assert_int_equal(p.half_life_ns, expected.half_life_ns);
	assert_true(p.reserve == expected.reserve);
}

static void a_place_that_is_refused_is_not_kept(void **state)
{
	static struct admission a;

	(void)state;
	assert_true(admission_take_place(&a, 2));
	assert_true(admission_take_place(&a, 2));
	for (int i = 0; i < 3; i++)
		assert_false(admission_take_place(&a, 2));
	assert_int_equal(admission_in_flight(&a), 2);
	admission_give_place(&a);
	assert_true(admission_take_place(&a, 2));
}

/* Retry-After is for the client that waited, also if it was never at the front of the line. */
static void the_line_knows_the_client_of_each_upload(void **state)
{
	static struct admission a = { .overload.params.class_count = 1 };
	static struct admission_waiter first,
		second = { .client = { .slot = 7, .is_local = true } };

	(void)state;
	a.first = &first;
	assert_false(admission_try(&a, &second, true));
	assert_ptr_equal(first.next, &second);
	assert_int_equal(second.ticket.client, 7);
	assert_true(second.ticket.has_all_room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_good_image_of_an_upload_is_measured),
		cmocka_unit_test(cores_that_the_quota_does_not_grant_do_not_count),
		cmocka_unit_test(the_simulation_has_the_defaults_of_the_keys),
		cmocka_unit_test(a_place_that_is_refused_is_not_kept),
		cmocka_unit_test(the_line_knows_the_client_of_each_upload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_affinity.c - the cores of a schedule's workers are those of the placement, for every worker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layout/cores.h"
#include "layout/placement.h"
#include "sched/core/mechanism.h"
#include "sched/core/schedule.h"

static const struct mechanism one_core_each = { .has_core_per_worker = true };

static struct topology *machine(const char *description)
{
	struct topology *t;

	assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
	assert_int_equal(topology_new(&t), 0);
	assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
	return t;
}

/* Domains of these sizes. Returns the core of worker 0. */
static unsigned place(const struct topology *t, unsigned first, unsigned second)
{
	static struct schedule s;
	struct placement expected;

	s = (struct schedule){ .is_bound = true,
		               .group = { { .mechanism = &one_core_each } },
		               .worker_count = first + second,
		               .domain_count = 2,
		               .domain_cores = { first, second } };
	for (unsigned i = 0; i < first + second; i++)
		s.domain[i] = i >= first;
	for (unsigned i = 0; i < CONF_THREADS_MAX; i++)
		s.core[i] = 99;
	assert_int_equal(placement_domains(&expected, t, s.domain_cores, 2), 0);
	assert_int_equal(domains_place(t, &s), 0);
	assert_true(s.is_bound);
	for (unsigned i = 0; i < s.worker_count; i++) {
		struct topology_range cores = domains_worker_cores(&s, i);

		assert_int_equal(s.core[i], expected.worker[i].core);
		assert_int_equal(cores.first, expected.worker[i].core);
		assert_int_equal(cores.count, 1);
	}
	assert_int_equal(s.core[s.worker_count], 99);
	return s.core[0];
}

static void each_worker_gets_the_core_of_its_placement(void **state)
{
	struct topology *t = machine("Package:2 [numa] L3:1 Core:4 PU:1");
	unsigned elsewhere = 0;

	(void)state;
	cores_read(topology_core_count(t), "", ""); /* with a quota no worker is bound */
	/* The second domain needs a whole socket. Then the first one begins at another core. */
	for (unsigned first = 1; first < 8; first++)
		for (unsigned second = 1; first + second <= 8; second++)
			elsewhere += place(t, first, second) != 0;
	assert_true(elsewhere > 0);
	topology_free(t);
}

static void with_a_quota_no_worker_is_bound(void **state)
{
	struct schedule s = { .is_bound = true, .worker_count = 2, .domain_count = 1 };
	struct topology *t = machine("Package:1 Core:2 PU:1");

	(void)state;
	cores_read(1, "", "");
	assert_int_equal(domains_place(t, &s), 0);
	assert_false(s.is_bound);
	topology_free(t);
}

static void without_binding_no_worker_has_a_core(void **state)
{
	static struct schedule s = { .worker_count = 2,
		                     .group = { { .mechanism = &one_core_each } } };
	struct topology *t = machine("Package:1 Core:2 PU:1");

	(void)state;
	assert_int_equal(domains_place(t, &s), 0);
	assert_int_equal(domains_worker_cores(&s, 0).count, 0);
	topology_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_worker_gets_the_core_of_its_placement),
		cmocka_unit_test(with_a_quota_no_worker_is_bound),
		cmocka_unit_test(without_binding_no_worker_has_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

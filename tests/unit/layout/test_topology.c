/* test_topology.c - the machine as hwloc describes it, real or synthetic. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <hwloc.h>

#include "layout/topology.h"
#include "log/log.h"

#define TWO_SOCKETS "Package:2 [numa] L3:1 L2:32 Core:1 PU:2" /* 64 cores of 2 threads */

static struct topology *machine(const char *description)
{
	struct topology *t;

	assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
	assert_int_equal(topology_new(&t), 0);
	assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
	return t;
}

static void a_described_machine_has_its_cores_and_caches(void **state)
{
	struct topology *t = machine(TWO_SOCKETS);

	(void)state;
	assert_false(topology_is_here(t));
	assert_int_equal(topology_core_count(t), 64);
	assert_int_equal(topology_node_count(t), 2);
	assert_int_equal(topology_core(t, 31)->package, 0);
	assert_int_equal(topology_core(t, 32)->package, 1);
	assert_int_equal(topology_core(t, 32)->node, 1);
	assert_int_equal(topology_core(t, 32)->l3, 1);
	assert_int_equal(topology_core(t, 32)->l2, 32);
	assert_int_equal(topology_core(t, 32)->cpu, 64);
	assert_int_equal(topology_core(t, 32)->thread_count, 2);
	/* Nothing is bound, which is not an error. */
	assert_int_equal(topology_bind(t, (struct topology_range){ 62, 2 }), 0);
	assert_int_equal(topology_bind(t, (struct topology_range){ 0, 0 }), 0);
	topology_free(t);
	t = machine("PU:3"); /* like some virtual machines */
	assert_int_equal(topology_core_count(t), 3);
	assert_int_equal(topology_node_count(t), 1);
	assert_int_equal(topology_core(t, 2)->l3, TOPOLOGY_NONE);
	topology_free(t);
}

static void a_description_that_hwloc_cannot_parse_is_an_error(void **state)
{
	struct topology *t;

	(void)state;
	assert_int_equal(setenv("HWLOC_SYNTHETIC", "Package:two", 1), 0);
	assert_true(topology_new(&t) < 0);
	assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
	assert_int_equal(setenv("HWLOC_XMLFILE", "/nonexistent", 1), 0);
	assert_true(topology_new(&t) < 0);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
}

static void the_topology_respects_taskset(void **state)
{
	struct topology *t;
	hwloc_topology_t hwloc;

	(void)state;
	assert_int_equal(hwloc_topology_init(&hwloc), 0);
	assert_int_equal(hwloc_topology_load(hwloc), 0);
	hwloc_bitmap_t before = hwloc_bitmap_alloc(), now = hwloc_bitmap_alloc();

	assert_int_equal(hwloc_get_cpubind(hwloc, before, HWLOC_CPUBIND_THREAD), 0);
	hwloc_bitmap_only(now, (unsigned)hwloc_bitmap_last(before));
	assert_int_equal(hwloc_set_cpubind(hwloc, now, HWLOC_CPUBIND_THREAD), 0);
	assert_int_equal(topology_new(&t), 0);
	assert_true(topology_is_here(t));
	assert_int_equal(topology_core_count(t), 1);
	assert_int_equal(topology_core(t, 0)->cpu, hwloc_bitmap_last(before));
	assert_int_equal(topology_bind(t, (struct topology_range){ 0, 1 }), 0);
	assert_int_equal(sched_getcpu(), hwloc_bitmap_last(before));
	assert_int_equal(topology_bind(t, (struct topology_range){ 0, 0 }),
	                 0); /* does not widen the affinity */
	assert_int_equal(hwloc_get_cpubind(hwloc, now, HWLOC_CPUBIND_THREAD), 0);
	assert_int_equal(hwloc_bitmap_weight(now), 1);
	topology_free(t);
	assert_int_equal(hwloc_set_cpubind(hwloc, before, HWLOC_CPUBIND_THREAD), 0);
	hwloc_bitmap_free(before);
	hwloc_bitmap_free(now);
	hwloc_topology_destroy(hwloc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_described_machine_has_its_cores_and_caches),
		cmocka_unit_test(a_description_that_hwloc_cannot_parse_is_an_error),
		cmocka_unit_test(the_topology_respects_taskset),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

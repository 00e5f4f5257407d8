/* test_placement.c - the machine as hwloc describes it, CPU quotas, and where workers go on
 * machines that we do not have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <hwloc.h>

#include "layout/placement.h"
#include "layout/quota.h"
#include "layout/topology.h"
#include "log/log.h"

#define TWO_SOCKETS "Package:2 [numa] L3:1 L2:32 Core:1 PU:2"   /* 64 cores of 2 threads */
#define EIGHT_NODES "Package:2 Group:4 [numa] L3:2 Core:4 PU:1" /* 64 cores, 16 L3 caches */
#define SMALL_CACHES "Package:1 [numa] L3:5 Core:3 PU:1"

static struct topology *machine(const char *description)
{
	struct topology *t;

	assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
	assert_int_equal(topology_new(&t), 0);
	assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
	return t;
}

/* "0 1 2 | 3 4" : the cores of each domain's workers. */
static void assert_cores(const struct placement *p, const char *expected)
{
	char text[1024] = "";
	size_t at = 0;

	for (unsigned i = 0; i < p->worker_count; i++)
		at += (size_t)snprintf(
			text + at, sizeof text - at, "%s%s%u", i == 0 ? "" : " ",
			i > 0 && p->worker[i].domain != p->worker[i - 1].domain ? "| " : "",
			p->worker[i].core);
	assert_string_equal(text, expected);
}

/* What holds of every place. */
static void assert_sound(const struct placement *p, const struct topology *t)
{
	unsigned used[256] = { 0 }, cores = topology_core_count(t), least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < p->worker_count; i++) {
		const struct placement_worker *w = &p->worker[i];

		assert_true(w->core < cores);
		assert_int_equal(w->node, topology_core(t, w->core)->node);
		assert_true(w->domain < p->domain_count);
		assert_true(i == 0 ? w->domain == 0 : w->domain - p->worker[i - 1].domain <= 1);
		used[w->core]++;
	}
	assert_int_equal(p->worker[p->worker_count - 1].domain, p->domain_count - 1);
	for (unsigned i = 0; i < cores; i++) {
		least = used[i] < least ? used[i] : least;
		most = used[i] > most ? used[i] : most;
	}
	assert_true(most - least <= 1); /* no core has two workers more than another */
}

static void it_sees_what_cores_share(void **state)
{
	struct topology *t = machine(TWO_SOCKETS);

	(void)state;
	assert_false(topology_is_here(t));
	assert_int_equal(topology_core_count(t), 64);
	assert_int_equal(topology_cpu_quota(t), 64); /* ours does not hold there */
	assert_int_equal(topology_node_count(t), 2);
	assert_int_equal(topology_core(t, 31)->package, 0);
	assert_int_equal(topology_core(t, 32)->package, 1);
	assert_int_equal(topology_core(t, 32)->node, 1);
	assert_int_equal(topology_core(t, 32)->l3, 1);
	assert_int_equal(topology_core(t, 32)->l2, 32);
	assert_int_equal(topology_core(t, 32)->cpu, 64);
	assert_int_equal(topology_core(t, 32)->thread_count, 2);
	/* nothing is bound, and no error */
	assert_int_equal(topology_bind(t, (struct topology_range){ 62, 2 }), 0);
	assert_int_equal(topology_bind(t, (struct topology_range){ 0, 0 }), 0);
	assert_true(topology_is_on(
		t, (struct topology_range){ 62, 2 })); /* as far as anybody can say */
	topology_free(t);
	t = machine("PU:3"); /* as some virtual machines look */
	assert_int_equal(topology_core_count(t), 3);
	assert_int_equal(topology_node_count(t), 1);
	assert_int_equal(topology_core(t, 2)->l3, TOPOLOGY_NONE);
	topology_free(t);
}

static void a_machine_that_cannot_be_understood_is_an_error(void **state)
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

static void this_machine_respects_taskset(void **state)
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
	assert_true(topology_is_on(t, (struct topology_range){ 0, 1 }));
	assert_int_equal(topology_bind(t, (struct topology_range){ 0, 0 }),
	                 0); /* does not let us loose where we may not run */
	assert_int_equal(hwloc_get_cpubind(hwloc, now, HWLOC_CPUBIND_THREAD), 0);
	assert_int_equal(hwloc_bitmap_weight(now), 1);
	topology_free(t);
	assert_int_equal(hwloc_set_cpubind(hwloc, before, HWLOC_CPUBIND_THREAD), 0);
	hwloc_bitmap_free(before);
	hwloc_bitmap_free(now);
	hwloc_topology_destroy(hwloc);
}

/* ---- places ---- */

static void replicas_get_a_socket_each(void **state)
{
	struct topology *t = machine(TWO_SOCKETS);
	struct placement p;

	(void)state;
	assert_int_equal(placement_build(&p, t, 64, 2), 0);
	assert_sound(&p, t);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(p.worker[i].core, i);
		assert_int_equal(p.worker[i].node, p.worker[i].domain);
	}
	topology_free(t);
}

static void few_workers_keep_together_in_their_replicas_socket(void **state)
{
	struct topology *t = machine(TWO_SOCKETS);
	struct placement p;

	(void)state;
	assert_int_equal(placement_build(&p, t, 8, 2), 0);
	assert_cores(&p, "0 1 2 3 | 32 33 34 35");
	assert_int_equal(placement_build(&p, t, 3, 1), 0);
	assert_cores(&p, "0 1 2");
	topology_free(t);
}

static void replicas_get_nodes_and_caches_of_their_own(void **state)
{
	struct topology *t = machine(EIGHT_NODES);
	struct placement p;

	(void)state;
	assert_int_equal(placement_build(&p, t, 64, 8), 0);
	assert_sound(&p, t);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(p.worker[i].node, p.worker[i].domain);
	assert_int_equal(placement_build(&p, t, 64, 16), 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(topology_core(t, p.worker[i].core)->l3, p.worker[i].domain);
	/* 3 replicas of 8 nodes: no way without a cut node, but none gets more than its domain */
	assert_int_equal(placement_build(&p, t, 64, 3), 0);
	assert_sound(&p, t);
	/* 16 workers as 4 replicas: none is spread over two caches */
	assert_int_equal(placement_build(&p, t, 16, 4), 0);
	for (unsigned i = 1; i < 16; i++)
		if (p.worker[i].domain == p.worker[i - 1].domain)
			assert_int_equal(topology_core(t, p.worker[i].core)->l3,
			                 topology_core(t, p.worker[i - 1].core)->l3);
	topology_free(t);
}

static void the_larger_share_goes_where_it_fits(void **state)
{
	static const unsigned parts[] = { 6, 3, 3, 3 }, other[] = { 4, 6, 5 };
	struct topology *t = machine(SMALL_CACHES);
	struct placement p;

	(void)state;
	assert_int_equal(placement_domains(&p, t, parts, 4), 0);
	assert_cores(&p, "0 1 2 3 4 5 | 6 7 8 | 9 10 11 | 12 13 14");
	/* 6 at one end: so one boundary is that of a cache, and more there cannot be */
	assert_int_equal(placement_domains(&p, t, other, 3), 0);
	assert_sound(&p, t);
	assert_true(p.worker[4].core == 0 || p.worker[4].core == 9);
	topology_free(t);
}

static void workers_beyond_the_cores_share_them_evenly(void **state)
{
	struct topology *t = machine("Package:1 Core:4 PU:2");
	struct placement p;

	(void)state;
	assert_int_equal(placement_build(&p, t, 8, 2), 0);
	assert_sound(&p, t);
	assert_cores(&p, "0 0 1 1 | 2 2 3 3");
	assert_int_equal(placement_build(&p, t, 6, 1), 0);
	assert_sound(&p, t);
	assert_int_equal(placement_build(&p, t, 64, 7), 0);
	assert_sound(&p, t);
	topology_free(t);
}

/* A machine with what is left of two packages: 3 cores of one, 5 of the other, from an XML file. */
static void an_asymmetric_machine_is_dealt_along_its_boundary(void **state)
{
	char path[] = "/tmp/darkroom-test-place-XXXXXX";
	static const unsigned parts[] = { 5, 3 };
	hwloc_topology_t hwloc;
	struct topology *t;
	struct placement p;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hwloc_topology_init(&hwloc), 0);
	assert_int_equal(hwloc_topology_set_synthetic(hwloc, "Package:2 [numa] L3:1 Core:5 PU:1"),
	                 0);
	assert_int_equal(hwloc_topology_load(hwloc), 0);
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	assert_int_equal(hwloc_bitmap_sscanf(set, "0x3e7"), 0); /* cores 0-2 and 5-9 */
	assert_int_equal(hwloc_topology_restrict(hwloc, set, 0), 0);
	assert_int_equal(hwloc_topology_export_xml(hwloc, path, 0), 0);
	hwloc_bitmap_free(set);
	hwloc_topology_destroy(hwloc);
	assert_int_equal(setenv("HWLOC_XMLFILE", path, 1), 0);
	assert_int_equal(topology_new(&t), 0);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(topology_core_count(t), 8);
	/* the part of 5 cores gets the package of 5, although it is the first */
	assert_int_equal(placement_domains(&p, t, parts, 2), 0);
	assert_cores(&p, "3 4 5 6 7 | 0 1 2");
	/* replicas of the same size: balance comes first */
	assert_int_equal(placement_build(&p, t, 8, 2), 0);
	assert_cores(&p, "0 1 2 3 | 4 5 6 7");
	/* and 4 workers, with room to spare, all stay where they domain a cache */
	assert_int_equal(placement_build(&p, t, 4, 1), 0);
	assert_cores(&p, "3 4 5 6");
	topology_free(t);
}

static void whatever_is_asked_for_is_sound_or_refused(void **state)
{
	static const char *const machines[] = { TWO_SOCKETS, EIGHT_NODES, SMALL_CACHES, "PU:1",
		                                "Core:2 PU:1" };
	static const unsigned too_many[] = { 60, 5 }, none[] = { 3, 0 }, huge[] = { UINT32_MAX, 2 };

	(void)state;
	for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++) {
		struct topology *t = machine(machines[m]);
		struct placement p;

		for (unsigned workers = 0; workers <= 66; workers++)
			for (unsigned replicas = 0; replicas <= workers + 1; replicas++) {
				bool is_possible = replicas > 0 && replicas <= workers &&
				                   workers <= PLACEMENT_WORKERS_MAX;

				assert_int_equal(placement_build(&p, t, workers, replicas),
				                 is_possible ? 0 : -EINVAL);
				if (is_possible)
					assert_sound(&p, t);
			}
		assert_int_equal(placement_domains(&p, t, too_many, 2), -EINVAL);
		assert_int_equal(placement_domains(&p, t, none, 2), -EINVAL);
		assert_int_equal(placement_domains(&p, t, huge, 2), -EINVAL);
		topology_free(t);
	}
}

/* ---- quotas ---- */

static char root[] = "/tmp/darkroom-test-quota-XXXXXX";

static void put(const char *path, const char *data)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0700);
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(data, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static unsigned cores_of(const char *membership, unsigned cores)
{
	char path[512];
	struct quota q;

	put("membership", membership);
	snprintf(path, sizeof path, "%s/membership", root);
	quota_open(&q, path, root);
	unsigned granted = quota_cores(&q, cores);

	quota_close(&q);
	return granted;
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

static void the_tightest_quota_of_all_groups_above_counts(void **state)
{
	(void)state;
	assert_int_equal(cores_of("0::/\n", 64), 64); /* the root of all has none */
	put("a/cpu.max", "200000 100000\n");
	put("a/b/cpu.max", "max 100000\n");
	put("a/b/c/cpu.max", "1600000 100000\n");
	assert_int_equal(cores_of("0::/a\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b/c\n", 1), 1); /* never more than there are */
	put("a/cpu.max", "max 100000\n");
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 16);
	put("a/b/c/cpu.max", "1600001 100000\n"); /* rounded up */
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 17);
	put("a/b/c/cpu.max", "1000 100000\n");
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 1);
	put("cpu.max", "300000 100000\n"); /* what a container sees of its own group */
	assert_int_equal(cores_of("0::/\n", 64), 3);
	assert_int_equal(cores_of("0::/not/here/at/all\n", 64), 3);
	put("cpu.max", "max 100000\n");
}

static void version_1_has_two_files(void **state)
{
	(void)state;
	put("cpu/x/cpu.cfs_quota_us", "-1\n");
	put("cpu/x/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cores_of("4:memory:/y\n3:cpu,cpuacct:/x\n", 64), 64);
	put("cpu/x/cpu.cfs_quota_us", "450000\n");
	assert_int_equal(cores_of("4:memory:/y\n3:cpu,cpuacct:/x\n", 64), 5);
	assert_int_equal(cores_of("3:cpuset,cpuacct:/x\n", 64), 64); /* another controller's */
	assert_int_equal(cores_of("3:cpuacct,cpu:/x/y\n1:name=systemd:/x\n0::/\n", 64), 5);
}

static void odd_files_are_no_quota(void **state)
{
	static const char *const odd[] = { "",
		                           "\n",
		                           "max",
		                           "100000",
		                           "100000 0",
		                           "0 100000",
		                           "-5 100000",
		                           "100000 -1",
		                           "x y",
		                           "1e5 1e5",
		                           "99999999999999999999999 99999999999999999999999",
		                           "\xff\xfe" };

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		unsigned granted;

		put("odd/cpu.max", odd[i]);
		granted = cores_of("0::/odd\n", 8);
		assert_true(granted >= 1 && granted <= 8);
		if (i < 10)
			assert_int_equal(granted, 8);
	}
	put("odd/cpu.max", "100000 100000");
	assert_int_equal(cores_of("0::/odd\n", 8), 1);
	assert_int_equal(cores_of("0::/odd/../odd\n", 8), 8); /* no path of the kernel's */
	assert_int_equal(cores_of("0::odd\n", 8), 8);
	assert_int_equal(cores_of("0:\n:::\n\n0::\n", 8), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sees_what_cores_share),
		cmocka_unit_test(a_machine_that_cannot_be_understood_is_an_error),
		cmocka_unit_test(this_machine_respects_taskset),
		cmocka_unit_test(replicas_get_a_socket_each),
		cmocka_unit_test(few_workers_keep_together_in_their_replicas_socket),
		cmocka_unit_test(replicas_get_nodes_and_caches_of_their_own),
		cmocka_unit_test(the_larger_share_goes_where_it_fits),
		cmocka_unit_test(workers_beyond_the_cores_share_them_evenly),
		cmocka_unit_test(an_asymmetric_machine_is_dealt_along_its_boundary),
		cmocka_unit_test(whatever_is_asked_for_is_sound_or_refused),
		cmocka_unit_test(the_tightest_quota_of_all_groups_above_counts),
		cmocka_unit_test(version_1_has_two_files),
		cmocka_unit_test(odd_files_are_no_quota),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, make_root, remove_root);
}

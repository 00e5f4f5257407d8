/* test_placement.c - the cores of workers, replicas and parts on synthetic machines. */
#include <errno.h>
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

#include "layout/placement.h"
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

/* Distributes workers evenly over replicas. */
static int placement_build(struct placement *p, const struct topology *t, unsigned workers,
                           unsigned replicas)
{
	unsigned domain[PLACEMENT_WORKERS_MAX + 1] = { 0 };

	for (unsigned i = 0; i < replicas && i <= PLACEMENT_WORKERS_MAX; i++)
		domain[i] = workers / replicas + (i < workers % replicas ? 1 : 0);
	return placement_domains(p, t, domain, replicas);
}

static unsigned node_of(const struct topology *t, const struct placement_worker *w)
{
	return topology_core(t, w->core)->node;
}

/* Compares the cores of each domain's workers with a string such as "0 1 2 | 3 4". */
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

/* Checks the properties that every placement has. */
static void assert_sound(const struct placement *p, const struct topology *t)
{
	unsigned used[256] = { 0 }, cores = topology_core_count(t), least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < p->worker_count; i++) {
		const struct placement_worker *w = &p->worker[i];

		assert_true(w->core < cores);
		assert_true(w->domain < p->domain_count);
		assert_true(i == 0 ? w->domain == 0 : w->domain - p->worker[i - 1].domain <= 1);
		used[w->core]++;
	}
	assert_int_equal(p->worker[p->worker_count - 1].domain, p->domain_count - 1);
	for (unsigned i = 0; i < cores; i++) {
		least = used[i] < least ? used[i] : least;
		most = used[i] > most ? used[i] : most;
	}
	assert_true(most - least <= 1); /* cores have equal numbers of workers */
}

static void replicas_get_a_socket_each(void **state)
{
	struct topology *t = machine(TWO_SOCKETS);
	struct placement p;

	(void)state;
	assert_int_equal(placement_build(&p, t, 64, 2), 0);
	assert_sound(&p, t);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(p.worker[i].core, i);
		assert_int_equal(node_of(t, &p.worker[i]), p.worker[i].domain);
	}
	topology_free(t);
}

static void few_workers_stay_together_in_their_replicas_socket(void **state)
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
		assert_int_equal(node_of(t, &p.worker[i]), p.worker[i].domain);
	assert_int_equal(placement_build(&p, t, 64, 16), 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(topology_core(t, p.worker[i].core)->l3, p.worker[i].domain);
	/* 3 replicas on 8 nodes: a node must be divided, but the sizes are even. */
	assert_int_equal(placement_build(&p, t, 64, 3), 0);
	assert_sound(&p, t);
	/* 16 workers as 4 replicas: no replica is spread over two caches. */
	assert_int_equal(placement_build(&p, t, 16, 4), 0);
	for (unsigned i = 1; i < 16; i++)
		if (p.worker[i].domain == p.worker[i - 1].domain)
			assert_int_equal(topology_core(t, p.worker[i].core)->l3,
			                 topology_core(t, p.worker[i - 1].core)->l3);
	topology_free(t);
}

static void a_larger_domain_is_placed_where_it_fits(void **state)
{
	static const unsigned parts[] = { 6, 3, 3, 3 }, other[] = { 4, 6, 5 };
	struct topology *t = machine(SMALL_CACHES);
	struct placement p;

	(void)state;
	assert_int_equal(placement_domains(&p, t, parts, 4), 0);
	assert_cores(&p, "0 1 2 3 4 5 | 6 7 8 | 9 10 11 | 12 13 14");
	/* With 6 at one end, one boundary is that of a cache; more are not possible. */
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

/* The machine has 3 cores of one package and 5 of the other, and is read from an XML file. */
static void an_asymmetric_machine_is_divided_at_its_boundary(void **state)
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
	/* The part of 5 cores gets the package of 5, although it is the first. */
	assert_int_equal(placement_domains(&p, t, parts, 2), 0);
	assert_cores(&p, "3 4 5 6 7 | 0 1 2");
	/* Replicas have the same size, even if a package is divided. */
	assert_int_equal(placement_build(&p, t, 8, 2), 0);
	assert_cores(&p, "0 1 2 3 | 4 5 6 7");
	/* 4 workers fit into one package, and share its cache. */
	assert_int_equal(placement_build(&p, t, 4, 1), 0);
	assert_cores(&p, "3 4 5 6");
	topology_free(t);
}

static void every_request_is_placed_soundly_or_refused(void **state)
{
	static const char *const machines[] = { TWO_SOCKETS, EIGHT_NODES, SMALL_CACHES, "PU:1",
		                                "Core:2 PU:1" };
	static const unsigned too_many[] = { 200, 57 }, none[] = { 3, 0 },
			      huge[] = { UINT32_MAX, 2 };

	(void)state;
	for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++) {
		struct topology *t = machine(machines[m]);
		struct placement p;

		for (unsigned workers = 0; workers <= PLACEMENT_WORKERS_MAX;
		     workers += workers < 66 ? 1 : 95)
			for (unsigned replicas = 0; replicas <= workers + 1;
			     replicas += replicas < 66 ? 1 : 37) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_get_a_socket_each),
		cmocka_unit_test(few_workers_stay_together_in_their_replicas_socket),
		cmocka_unit_test(replicas_get_nodes_and_caches_of_their_own),
		cmocka_unit_test(a_larger_domain_is_placed_where_it_fits),
		cmocka_unit_test(workers_beyond_the_cores_share_them_evenly),
		cmocka_unit_test(an_asymmetric_machine_is_divided_at_its_boundary),
		cmocka_unit_test(every_request_is_placed_soundly_or_refused),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

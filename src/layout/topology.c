/*
 * topology.c - hwloc's description of the machine, reduced to what layouts need.
 *
 * hwloc is used here and nowhere else.
 */
#include "topology.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "log/log.h"

#define CPUS_MAX (8 * CPU_SETSIZE) /* upper bound of the kernel's configuration */

struct topology {
	hwloc_topology_t hwloc;
	hwloc_obj_type_t core_type; /* some virtual machines show no cores, only processing units */
	struct topology_core *core;
	unsigned core_count;
};

/* Fails if hwloc could not parse the description of another machine: it silently describes this
 * machine instead. */
static int check_source(hwloc_topology_t hwloc)
{
	static const char *const name[] = { "HWLOC_SYNTHETIC", "HWLOC_XMLFILE" };

	for (size_t i = 0; i < COUNT_OF(name); i++) {
		const char *value = getenv(name[i]);

		if (!value || !*value || !hwloc_topology_is_thissystem(hwloc) ||
		    getenv("HWLOC_THISSYSTEM"))
			continue;
		log_error("topology: hwloc cannot parse %s=%s", name[i], value);
		return -EINVAL;
	}
	return 0;
}

/* Restricts the topology to the thread's CPU affinity. hwloc respects the cpuset of the control
 * group, but not taskset(1). */
static int restrict_to_binding(hwloc_topology_t hwloc)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	int err = 0;

	if (!set)
		return -ENOMEM;
	if (hwloc_topology_is_thissystem(hwloc) &&
	    hwloc_get_cpubind(hwloc, set, HWLOC_CPUBIND_THREAD) == 0 &&
	    hwloc_bitmap_intersects(set, hwloc_topology_get_topology_cpuset(hwloc)) &&
	    hwloc_topology_restrict(hwloc, set, 0))
		err = errno ? -errno : -EIO;
	hwloc_bitmap_free(set);
	return err;
}

static int load(hwloc_topology_t *out)
{
	if (hwloc_topology_init(out))
		return -ENOMEM;
	int err = hwloc_topology_load(*out) ? errno ? -errno : -EIO : restrict_to_binding(*out);

	if (err)
		log_error("topology: cannot read the machine: %s", strerror(-err));
	else
		err = check_source(*out);
	if (err)
		hwloc_topology_destroy(*out);
	return err;
}

static unsigned number_of(hwloc_topology_t hwloc, hwloc_obj_t from, hwloc_obj_type_t type)
{
	hwloc_obj_t ancestor = hwloc_get_ancestor_obj_by_type(hwloc, type, from);

	return ancestor ? ancestor->logical_index : TOPOLOGY_NONE;
}

static void describe_core(hwloc_topology_t hwloc, hwloc_obj_t object, struct topology_core *core)
{
	int cpu = hwloc_bitmap_first(object->cpuset), threads = hwloc_bitmap_weight(object->cpuset);
	int node = hwloc_bitmap_first(object->nodeset);

	*core = (struct topology_core){
		.cpu = cpu > 0 ? (unsigned)cpu : 0,
		.thread_count = threads > 0 ? (unsigned)threads : 1,
		.package = number_of(hwloc, object, HWLOC_OBJ_PACKAGE),
		.node = node > 0 ? (unsigned)node : 0,
		.l3 = number_of(hwloc, object, HWLOC_OBJ_L3CACHE),
		.l2 = number_of(hwloc, object, HWLOC_OBJ_L2CACHE),
	};
}

/* hwloc numbers cores depth first, so that neighbours in its order are neighbours on the
 * machine. */
static int describe_cores(struct topology *t)
{
	int count = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_CORE);

	t->core_type = count > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	if (count <= 0)
		count = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_PU);
	assert(count > 0); /* hwloc refuses a machine without processing units */
	t->core_count = (unsigned)count;
	t->core = calloc(t->core_count, sizeof *t->core);
	if (!t->core)
		return -ENOMEM;
	for (unsigned i = 0; i < t->core_count; i++) {
		hwloc_obj_t object = hwloc_get_obj_by_type(t->hwloc, t->core_type, i);

		if (!object)
			return -ENOENT;
		describe_core(t->hwloc, object, &t->core[i]);
	}
	return 0;
}

int topology_new(struct topology **out)
{
	struct topology *t = calloc(1, sizeof *t);

	if (!t)
		return -ENOMEM;
	int err = load(&t->hwloc);

	if (err) {
		free(t);
		return err;
	}
	err = describe_cores(t);
	if (err) {
		topology_free(t);
		return err;
	}
	if (!topology_is_here(t))
		log_notice("topology: hwloc describes another machine; "
		           "workers are not bound to cores");
	*out = t;
	return 0;
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	hwloc_topology_destroy(t->hwloc);
	free(t->core);
	free(t);
}

unsigned topology_core_count(const struct topology *t)
{
	return t->core_count;
}

const struct topology_core *topology_core(const struct topology *t, unsigned core)
{
	assert(core < t->core_count);
	return &t->core[core];
}

unsigned topology_node_count(const struct topology *t)
{
	unsigned count = 1;

	/* Cores of a node are neighbours in the row. */
	for (unsigned i = 1; i < t->core_count; i++)
		count += t->core[i].node != t->core[i - 1].node;
	return count;
}

bool topology_is_here(const struct topology *t)
{
	return hwloc_topology_is_thissystem(t->hwloc);
}

static void add_cpus(cpu_set_t *cpus, size_t size, hwloc_const_cpuset_t set)
{
	int cpu;

	hwloc_bitmap_foreach_begin(cpu, set)
	{
		if (cpu < CPUS_MAX)
			CPU_SET_S((size_t)cpu, size, cpus);
	}
	hwloc_bitmap_foreach_end();
}

/* Does not use hwloc_set_cpubind(), which allocates memory and does not check the result. */
int topology_bind(const struct topology *t, struct topology_range cores)
{
	cpu_set_t cpus[CPUS_MAX / CPU_SETSIZE] = { 0 };

	assert(cores.first + cores.count <= t->core_count);
	if (!topology_is_here(t))
		return 0;
	if (cores.count == 0)
		add_cpus(cpus, sizeof cpus, hwloc_topology_get_allowed_cpuset(t->hwloc));
	for (unsigned i = 0; i < cores.count; i++) {
		hwloc_obj_t core = hwloc_get_obj_by_type(t->hwloc, t->core_type, cores.first + i);

		assert(core);
		add_cpus(cpus, sizeof cpus, core->cpuset);
	}
	return sched_setaffinity(0, sizeof cpus, cpus) ? -errno : 0;
}

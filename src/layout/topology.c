/* topology.c - hwloc's view of the machine, reduced to what the graph needs. */
#include "topology.h"

#include <errno.h>
#include <sched.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../log.h"

#define CPUS_MAX (8 * CPU_SETSIZE) /* that the kernel can be configured for */

struct topology {
	hwloc_topology_t hwloc;
	unsigned core_count;
	int quota_fd; /* our cgroup's cpu.max; -1: there is none */
};

/* Path of our cgroup's cpu.max (cgroup v2): the line "0::PATH" of /proc/self/cgroup. */
static bool quota_path(char *path, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof line, f)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		const char *group = strcmp(line + 3, "/") == 0 ? "" : line + 3;
		int n = snprintf(path, size, "/sys/fs/cgroup%s/cpu.max", group);
		found = n > 0 && (size_t)n < size;
	}
	fclose(f);
	return found;
}

/* Kept open: the quota may change, and later the sandbox would not let us open it. -1: there is none. */
static int open_quota(void)
{
	char path[4200];

	return quota_path(path, sizeof path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

int topology_new(struct topology **out)
{
	struct topology *t = calloc(1, sizeof *t);

	if (!t)
		return -ENOMEM;
	if (hwloc_topology_init(&t->hwloc)) {
		free(t);
		return -ENOMEM;
	}
	/* Caches, packages and devices are not asked for yet; leaving them out makes start-up fast on large machines. */
	hwloc_topology_set_all_types_filter(t->hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t->hwloc, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(t->hwloc)) {
		int err = errno ? -errno : -EIO;

		log_error("cannot read the machine's topology: %s", strerror(-err));
		hwloc_topology_destroy(t->hwloc);
		free(t);
		return err;
	}
	int cores = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_CORE);

	/* Some virtual machines show no cores, only processing units. */
	if (cores <= 0)
		cores = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_PU);
	t->core_count = cores > 0 ? (unsigned)cores : 1;
	t->quota_fd = open_quota();
	*out = t;
	return 0;
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	hwloc_topology_destroy(t->hwloc);
	if (t->quota_fd >= 0)
		close(t->quota_fd);
	free(t);
}

unsigned topology_core_count(const struct topology *t)
{
	return t->core_count;
}

unsigned topology_cpu_quota(const struct topology *t)
{
	char text[64];
	unsigned long long quota_us, period_us;
	ssize_t length = t->quota_fd < 0 ? -1 : pread(t->quota_fd, text, sizeof text - 1, 0);

	/* An absent or unreadable file is no quota. */
	if (length <= 0)
		return t->core_count;
	text[length] = '\0';
	/* "max 100000": no number, no quota */
	if (sscanf(text, "%llu %llu", &quota_us, &period_us) != 2 || period_us == 0)
		return t->core_count;
	unsigned long long cores = (quota_us + period_us - 1) / period_us;

	if (cores == 0)
		return 1;
	return cores < t->core_count ? (unsigned)cores : t->core_count;
}

/* Without memory of its own, which hwloc_set_cpubind() takes, and does without looking whether there was any. */
static int bind_thread(hwloc_const_cpuset_t set)
{
	cpu_set_t cpus[CPUS_MAX / CPU_SETSIZE] = { 0 };
	int cpu;

	hwloc_bitmap_foreach_begin(cpu, set) {
		if (cpu < CPUS_MAX)
			CPU_SET_S((size_t)cpu, sizeof cpus, cpus);
	}
	hwloc_bitmap_foreach_end();
	return sched_setaffinity(0, sizeof cpus, cpus) ? -errno : 0;
}

int topology_bind(const struct topology *t, unsigned core)
{
	hwloc_obj_t object = hwloc_get_obj_by_type(t->hwloc, HWLOC_OBJ_CORE, core % t->core_count);

	if (!object)
		object = hwloc_get_obj_by_type(t->hwloc, HWLOC_OBJ_PU, core % t->core_count);
	if (!object)
		return -ENOENT;
	return bind_thread(object->cpuset);
}

int topology_unbind(const struct topology *t)
{
	return bind_thread(hwloc_topology_get_allowed_cpuset(t->hwloc));
}

/*
 * cores.c - counts cores, and reads the CPU quotas of control groups.
 *
 * Every group above the process's own limits it as well. The files stay open.
 */
#include "cores.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology.h"

#define LINE_MAX_BYTES 4096
#define LEVELS_MAX 16 /* nested groups that are read, from the innermost outwards */

struct level {
	int quota_fd;  /* v2: both numbers in one file */
	int period_fd; /* v1; otherwise -1 */
};

static struct level levels[LEVELS_MAX];
static unsigned level_count;
static unsigned core_count; /* that the cpuset and the affinity allow; 0: not counted yet */

static int open_in(const char *mount, const char *group, bool is_v1, const char *file)
{
	char path[LINE_MAX_BYTES + 256];
	int n = snprintf(path, sizeof path, "%s%s%s/%s", mount,
	                 is_v1 ? "/cpu" : "", /* a link if controllers share a mount */
	                 group, file);

	return n > 0 && (size_t)n < sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* Opens one level if it exists. In a container the path may be one of the host, of which only
 * the upper levels are visible. */
static void open_level(const char *mount, const char *group, bool is_v1)
{
	struct level level = { .quota_fd = open_in(mount, group, is_v1,
		                                   is_v1 ? "cpu.cfs_quota_us" : "cpu.max"),
		               .period_fd = -1 };

	if (level.quota_fd < 0)
		return;
	if (is_v1) {
		level.period_fd = open_in(mount, group, true, "cpu.cfs_period_us");
		if (level.period_fd < 0) {
			close(level.quota_fd);
			return;
		}
	}
	levels[level_count++] = level;
}

/* Opens the group and all groups above it, up to the mount. Truncates group. */
static void open_levels(const char *mount, char *group, bool is_v1)
{
	size_t length = strlen(group);

	while (level_count < LEVELS_MAX) {
		while (length > 0 && group[length - 1] == '/')
			group[--length] = '\0';
		open_level(mount, group, is_v1);
		if (length == 0)
			return;
		while (length > 0 && group[length - 1] != '/')
			group[--length] = '\0';
	}
}

/* Opens the groups of one line: HIERARCHY:CONTROLLERS:PATH, without controllers in version 2. */
static void open_line(const char *mount, char *line)
{
	char *controllers = strchr(line, ':'),
	     *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return;
	*group++ = '\0';
	controllers++;
	if (group[0] != '/' || strstr(group, "/.."))
		return;
	if (controllers[0] == '\0')
		open_levels(mount, group, false);
	for (char *name; (name = strtok_r(controllers, ",", &controllers));)
		if (strcmp(name, "cpu") == 0)
			open_levels(mount, group, true);
}

void cores_read(unsigned count, const char *membership, const char *mount)
{
	char line[LINE_MAX_BYTES];
	FILE *f = fopen(membership, "re");

	while (level_count > 0) {
		const struct level *level = &levels[--level_count];

		close(level->quota_fd);
		if (level->period_fd >= 0)
			close(level->period_fd);
	}
	core_count = count;
	if (!f)
		return;
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		open_line(mount, line);
	}
	fclose(f);
}

/* Reads at most 2 numbers from the start of the file and returns their count. "max 100000" has
 * none, and numbers below 1 end the list (v1: -1 means no quota). */
static unsigned read_numbers(int fd, uint64_t *number)
{
	char text[64], *at = text, *end;
	ssize_t length = pread(fd, text, sizeof text - 1, 0);
	unsigned n = 0;

	if (length <= 0)
		return 0;
	text[length] = '\0';
	for (; n < 2; n++, at = end) {
		long long value = strtoll(at, &end, 10);

		if (end == at || value < 1)
			break;
		number[n] = (uint64_t)value;
	}
	return n;
}

static unsigned level_cores(const struct level *level, unsigned cores)
{
	uint64_t number[2], period[2];
	unsigned n = read_numbers(level->quota_fd, number);

	if (level->period_fd >= 0) {
		if (n < 1 || read_numbers(level->period_fd, period) < 1)
			return cores;
		number[1] = period[0];
	} else if (n < 2) {
		return cores;
	}
	uint64_t granted = number[0] / number[1] + (number[0] % number[1] ? 1 : 0);

	return granted < cores ? (unsigned)granted : cores;
}

/* Counts the cores of this machine, or of the one that hwloc is told to describe. */
static void read_machine(void)
{
	struct topology *t;

	if (topology_new(&t)) {
		core_count = 1; /* the daemon does not start without a topology */
		return;
	}
	cores_read(topology_core_count(t), topology_is_here(t) ? "/proc/self/cgroup" : "",
	           "/sys/fs/cgroup");
	topology_free(t);
}

unsigned cores_usable(void)
{
	if (core_count == 0)
		read_machine();
	unsigned cores = core_count;

	for (unsigned i = 0; i < level_count; i++)
		cores = level_cores(&levels[i], cores);
	return cores;
}

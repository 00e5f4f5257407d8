/*
 * cores.h - how many cores this process may use: the one answer for threads, admission and
 * background work.
 */
#ifndef DARKROOM_LAYOUT_CORES_H
#define DARKROOM_LAYOUT_CORES_H

/*
 * Returns the CPU time that the process may use, in cores, >= 1: the cores of its cpuset and
 * affinity, or fewer if control groups grant less (cpu.max of the process's group and of all groups
 * above it; cpu.cfs_quota_us in version 1), rounded up.
 *
 * The first call counts the cores and opens the quotas: main thread, before the sandbox, which
 * forbids to open files. Later calls read the quotas again, because quotas may change. Any thread.
 */
unsigned cores_usable(void);

/* For tests: what the first call of cores_usable() does, for a machine with this number of cores
 * and these files instead of /proc/self/cgroup and /sys/fs/cgroup. A file that cannot be opened
 * stands for no quota. Main thread. */
void cores_read(unsigned count, const char *membership, const char *mount);

#endif

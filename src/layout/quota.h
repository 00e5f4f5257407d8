/*
 * quota.h - the CPU time that control groups grant.
 *
 * It is read from cpu.max of the process's group and of all groups above it (cgroup v2), or from
 * cpu.cfs_quota_us (v1). The files stay open, because quotas may change and the sandbox forbids to
 * open them later.
 */
#ifndef DARKROOM_LAYOUT_QUOTA_H
#define DARKROOM_LAYOUT_QUOTA_H

#define QUOTA_LEVELS_MAX 16 /* nested groups that are read, from the innermost outwards */

struct quota {
	unsigned count;
	struct quota_level {
		int quota_fd;  /* v2: both numbers in one file */
		int period_fd; /* v1; otherwise -1 */
	} level[QUOTA_LEVELS_MAX];
};

/* Opens the quota files. membership: /proc/self/cgroup; mount: /sys/fs/cgroup. A file that
 * cannot be opened stands for no quota. Main thread. */
void quota_open(struct quota *q, const char *membership, const char *mount);
void quota_close(struct quota *q);

/* Returns the tightest quota in cores, rounded up, 1 .. cores; cores without a quota. Any
 * thread. */
unsigned quota_cores(const struct quota *q, unsigned cores);

#endif

/*
 * quota.h - the CPU time that control groups grant: cpu.max of ours and of all above it (cgroup
 * v2), or cpu.cfs_quota_us (v1).
 *
 * The files stay open: quotas may change, and later the sandbox would not let us open them.
 */
#ifndef DARKROOM_LAYOUT_QUOTA_H
#define DARKROOM_LAYOUT_QUOTA_H

#define QUOTA_LEVELS_MAX 16 /* of nested groups that are looked at, from ours upwards */

struct quota {
	unsigned count;
	struct quota_level {
		int quota_fd;  /* v2: both numbers in one file */
		int period_fd; /* v1, else -1 */
	} level[QUOTA_LEVELS_MAX];
};

/* membership: /proc/self/cgroup; mount: /sys/fs/cgroup. What cannot be opened is no quota. Main
 * thread. */
void quota_open(struct quota *q, const char *membership, const char *mount);
void quota_close(struct quota *q);

/* Cores' worth of the tightest quota, rounded up, 1 .. cores; cores if there is none. Any thread.
 */
unsigned quota_cores(const struct quota *q, unsigned cores);

#endif

/* time_slice.c - the system calls for a thread's time slice, which glibc does not have. */
#include "time_slice.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel has it: sched_setattr(2). */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* of the usual policy: the slice */
	uint64_t deadline_ns, period_ns;
};

int time_slice_set(uint64_t slice_ns)
{
	struct attributes a = { .size = sizeof a };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0))
		return -errno;
	if (a.policy != SCHED_OTHER)
		return 0;
	a.runtime_ns = slice_ns;
	return syscall(SYS_sched_setattr, 0, &a, 0) ? -errno : 0;
}

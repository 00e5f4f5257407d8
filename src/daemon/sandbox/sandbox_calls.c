/*
 * sandbox_calls.c - the allowed system calls: those of the daemon, and those that libc, libevent,
 * hwloc's binding and libjpeg make for it.
 *
 * Any other call fails with EPERM and does not kill, because a library that tries something new
 * usually has a fallback.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cached.h"
#include "base/check.h"

#define CALL(name) SCMP_SYS(name)

static const int allowed[] = {
	/* files */
	CALL(close),
	CALL(read),
	CALL(readv),
	CALL(pread64),
	CALL(preadv2),
	CACHED_READ_CALL,
	CALL(write),
	CALL(writev),
	CALL(pwrite64),
	CALL(pwritev),
	CALL(sendfile),
	CALL(lseek),
	CALL(fstat),
	CALL(newfstatat),
	CALL(lstat),
	CALL(stat),
	CALL(statx),
	CALL(fstatfs),
	CALL(statfs),
	CALL(faccessat),
	CALL(faccessat2),
	CALL(fallocate),
	CALL(fgetxattr),
	CALL(ftruncate),
	CALL(fadvise64),
	CALL(fsync),
	CALL(fdatasync),
	CALL(syncfs),
	CALL(sync_file_range),
	CALL(flock),
	CALL(dup),
	CALL(dup3),
	CALL(getdents64),
	CALL(mkdirat),
	CALL(unlink),
	CALL(unlinkat),
	CALL(renameat),
	CALL(renameat2),
	CALL(readlink),
	CALL(readlinkat),
	CALL(getcwd),
	/* connections of open sockets */
	CALL(accept4),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(shutdown),
	CALL(getsockopt),
	CALL(getsockname),
	CALL(getpeername),
	/* waiting */
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_wait),
	CALL(epoll_pwait),
	CALL(epoll_pwait2),
	CALL(poll),
	CALL(ppoll),
	CALL(eventfd2),
	CALL(timerfd_create),
	CALL(timerfd_settime),
	CALL(signalfd4),
	CALL(pipe2),
	CALL(nanosleep),
	CALL(clock_nanosleep),
	CALL(restart_syscall),
	/* memory that is not executable */
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(brk),
	CALL(mbind),
	CALL(set_mempolicy),
	CALL(get_mempolicy),
	/* threads, but not processes */
	CALL(futex),
	CALL(set_robust_list),
	CALL(rseq),
	CALL(membarrier),
	CALL(sched_yield),
	CALL(sched_setaffinity),
	CALL(sched_getaffinity),
	CALL(sched_getattr),
	CALL(getcpu),
	CALL(gettid),
	CALL(getpid),
	CALL(exit),
	CALL(exit_group),
	/* signals */
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(rt_sigpending),
	CALL(sigaltstack),
	/* queries */
	CALL(clock_gettime),
	CALL(clock_getres),
	CALL(gettimeofday),
	CALL(time),
	CALL(getrandom),
	CALL(getrusage),
	CALL(uname),
	CALL(sysinfo),
	CALL(getuid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getegid),
	CALL(getrlimit),
};

/* A call that is allowed if these arguments, masked, have these values. A mask of 0: no condition.
 */
struct call_if {
	int call;
	struct condition {
		unsigned argument;
		uint64_t mask, value;
	} condition[2];
};

#define INT UINT32_MAX /* the kernel reads an int from the lower half */

static const struct call_if allowed_if[] = {
	{ CALL(mmap), { { 2, PROT_EXEC, 0 } } },
	{ CALL(mprotect), { { 2, PROT_EXEC, 0 } } },
	{ CALL(clone), { { 0, CLONE_THREAD, CLONE_THREAD } } },
	/* The mode of a new file: none that runs with its owner's rights. */
	{ CALL(openat), { { 3, S_ISUID | S_ISGID | S_ISVTX, 0 } } },
	/* A remade image links to its other files, by their names: darkroomd(8) names this. */
	{ CALL(linkat), { { 4, INT, 0 } } },
	/* A checksum of 32 bytes, with a time 43. Access control lists have 4 + 8n bytes,
	 * capabilities 12 to 24. */
	{ CALL(fsetxattr), { { 3, UINT64_MAX, 32 } } },
	{ CALL(fsetxattr), { { 3, UINT64_MAX, 43 } } },
	{ CALL(ioctl), { { 1, INT, FIONBIO } } },
	{ CALL(ioctl), { { 1, INT, FIONREAD } } },
	{ CALL(ioctl), { { 1, INT, SIOCOUTQ } } },
	{ CALL(fcntl), { { 1, INT, F_GETFD } } },
	{ CALL(fcntl), { { 1, INT, F_SETFD } } },
	{ CALL(fcntl), { { 1, INT, F_GETFL } } },
	{ CALL(fcntl), { { 1, INT, F_SETFL } } },
	{ CALL(fcntl), { { 1, INT, F_DUPFD_CLOEXEC } } },
	/* Without an address: only to the peer that the socket already has. sendmsg() is missing
	 * because a filter cannot see the address in its structure. */
	{ CALL(sendto), { { 4, UINT64_MAX, 0 } } },
	{ CALL(prctl), { { 0, INT, PR_SET_NAME } } },
	{ CALL(sched_setattr), { { 0, INT, 0 } } },    /* of the calling thread */
	{ CALL(prlimit64), { { 2, UINT64_MAX, 0 } } }, /* only queries */
};

/* The same for performance counters, only if they are on: they reach deep into the kernel. */
static const struct call_if allowed_if_counting[] = {
	{ CALL(perf_event_open), { { 1, INT, 0 } } }, /* for the calling thread */
	{ CALL(ioctl), { { 1, INT, PERF_EVENT_IOC_ENABLE } } },
};

/* The same for a client of an S3 store. A filter cannot see the address; Landlock allows one port.
 */
static const struct call_if allowed_if_client[] = {
	{ CALL(socket), { { 0, INT, AF_INET }, { 1, 0xf, SOCK_STREAM } } },
	{ CALL(socket), { { 0, INT, AF_INET6 }, { 1, 0xf, SOCK_STREAM } } },
	{ CALL(memfd_create), { { 1, INT, MFD_CLOEXEC } } }, /* s3_client.c; so in darkroomd(8) */
	{ CALL(connect), { { 2, INT, sizeof(struct sockaddr_in) } } },
	{ CALL(connect), { { 2, INT, sizeof(struct sockaddr_in6) } } },
};

static int add_rules_if(scmp_filter_ctx filter, const struct call_if *rules, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct scmp_arg_cmp compare[2];
		unsigned n = 0;

		for (const struct condition *c = rules[i].condition; n < 2 && c->mask; c++)
			compare[n++] = SCMP_CMP(c->argument, SCMP_CMP_MASKED_EQ, c->mask, c->value);
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, n, compare);
	}
	return err;
}

/* The structure with the flags and the mode is behind a pointer. Only the one in read-only memory
 * is allowed. */
static int add_cached_open(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp how[] = {
		SCMP_CMP(2, SCMP_CMP_MASKED_EQ, UINT64_MAX, (uintptr_t)&cached_how),
		SCMP_CMP(3, SCMP_CMP_MASKED_EQ, UINT64_MAX, sizeof cached_how),
	};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, CALL(openat2), COUNT_OF(how), how);
}

static int add_rules(scmp_filter_ctx filter, bool with_counters, bool with_client)
{
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(allowed) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!err)
		err = add_rules_if(filter, allowed_if, COUNT_OF(allowed_if));
	if (!err) /* signals to threads of this process: abort() raises one */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(tgkill), 1,
		                       SCMP_A0(SCMP_CMP_MASKED_EQ, INT, (scmp_datum_t)getpid()));
	if (!err)
		err = add_cached_open(filter);
	if (!err && with_counters)
		err = add_rules_if(filter, allowed_if_counting, COUNT_OF(allowed_if_counting));
	if (!err && with_client)
		err = add_rules_if(filter, allowed_if_client, COUNT_OF(allowed_if_client));
	/* A filter cannot see the flags of clone3. With ENOSYS libc uses clone instead. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), CALL(clone3), 0);
	/* Only an exploit tries these. A kernel that cannot kill for them refuses them like others.
	 */
	if (!err) {
		seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, CALL(execve), 0);
		seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, CALL(execveat), 0);
	}
	return err;
}

int sandbox_calls_enter(bool with_counters, bool with_client)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (!filter)
		return -ENOMEM;
	err = add_rules(filter, with_counters, with_client);
	/* The daemon runs no foreign code. The mitigation that older kernels enable with a filter
	 * would only cost time. A failure to disable it does not matter. */
	if (!err)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (!err) /* a binary tree: a few comparisons per call instead of a hundred */
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

bool sandbox_calls_are_supported(void)
{
	/* A filter at NULL: EFAULT if the kernel has filters, EINVAL if not. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1 && errno == EFAULT;
}

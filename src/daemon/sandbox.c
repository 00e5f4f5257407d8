/*
 * sandbox.c - user, no_new_privs, Landlock and seccomp, in this order. Main thread.
 *
 * libc has no wrappers for the system calls of Landlock, and its header may be older than the
 * kernel: both are here. The allowed system calls are those of the daemon and those that libc,
 * libevent, hwloc's binding and libjpeg make for it. Any other call fails with EPERM and does not
 * kill, because a library that tries something new usually has a fallback.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "log/log.h"
#include "sandbox_root.h"

/* The runtime of a sanitizer opens files and starts processes: for symbols, and to find leaks. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED true
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* ---- the user ---- */

static int change_user(const struct passwd *user)
{
	if (initgroups(user->pw_name, user->pw_gid) ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return -errno;
	if (user->pw_uid != 0 && setuid(0) == 0)
		return -EPERM; /* root could be regained */
	/* Gives /proc/self to the new user, and lets a crash leave a core. */
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) ? -errno : 0;
}

int sandbox_become_user(const struct conf *conf)
{
	const char *name = conf->server.user;

	if (!*name) {
		if (geteuid() != 0)
			return 0;
		log_error("running as root: expected server.user with the user to become, or "
		          "server.user = root");
		return -EPERM;
	}
	errno = 0;
	const struct passwd *user = getpwnam(name);

	if (!user) {
		int err = errno ? -errno : -ENOENT;

		log_error("server.user = %s: %s", name,
		          err == -ENOENT ? "unknown user" : strerror(-err));
		return err;
	}
	if (user->pw_uid == geteuid() && user->pw_uid == getuid())
		return 0;
	int err = change_user(user);

	if (err)
		log_error("server.user = %s: cannot become this user: %s", name, strerror(-err));
	return err;
}

/* ---- files ---- */

/* Access rights, by the version of the interface that introduced them. */
#define FS_1 ((UINT64_C(1) << 13) - 1) /* all of Linux 5.13 */
#define FS_REFER (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)
#define NET_ALL UINT64_C(3) /* binding and connecting of TCP sockets */

/* The first version that can allow a rename between directories, which publishes every image. */
#define LANDLOCK_MIN 2

/* Rights that the store needs: not devices, sockets, fifos, symbolic links or execution. */
#define FS_STORE                                                                    \
	((uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |    \
	            LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |  \
	            LANDLOCK_ACCESS_FS_MAKE_REG) |                                  \
	 FS_REFER | FS_TRUNCATE)

struct ruleset_attributes {
	uint64_t fs, net;
};

/* 0: the kernel has no Landlock, or it is disabled. */
static int landlock_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? 0 : (int)version;
}

static uint64_t fs_of_version(int version)
{
	return FS_1 | FS_REFER | (version >= 3 ? FS_TRUNCATE : 0) |
	       (version >= 5 ? FS_IOCTL_DEV : 0);
}

static int allow_path(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access };
	int err = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return -errno;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		err = -errno;
	close(rule.parent_fd);
	return err;
}

/* Allows the whole directory, because editors and logrotate replace the file. */
static int allow_directory_of(int ruleset, const char *file, uint64_t access)
{
	char *path = strdup(file);
	char *slash = path ? strrchr(path, '/') : NULL;
	int err;

	if (!path)
		return -ENOMEM;
	if (slash)
		slash[slash == path] = '\0';
	err = allow_path(ruleset, slash ? path : ".", access);
	free(path);
	return err;
}

static bool has_access_file(const struct conf *conf)
{
	return conf->log.access_file[0] == '/';
}

static int enter_landlock(int version, const struct conf *conf, const char *config_path)
{
	struct ruleset_attributes attributes = { .fs = fs_of_version(version), .net = NET_ALL };
	size_t size = version >= 4 ? sizeof attributes : sizeof attributes.fs;
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	int err = ruleset < 0 ? -errno : 0;

	if (!err)
		err = allow_path(ruleset, sandbox_root(conf->server.root),
		                 FS_STORE & attributes.fs);
	if (!err && config_path)
		err = allow_directory_of(ruleset, config_path, LANDLOCK_ACCESS_FS_READ_FILE);
	if (!err && *conf->access.tokens_file)
		err = allow_directory_of(ruleset, conf->access.tokens_file,
		                         LANDLOCK_ACCESS_FS_READ_FILE);
	if (!err && has_access_file(conf))
		err = allow_directory_of(ruleset, conf->log.access_file,
		                         LANDLOCK_ACCESS_FS_WRITE_FILE |
		                                 LANDLOCK_ACCESS_FS_MAKE_REG);
	if (!err && syscall(SYS_landlock_restrict_self, ruleset, 0))
		err = -errno;
	if (ruleset >= 0)
		close(ruleset);
	return err;
}

/* ---- system calls ---- */

#define CALL(name) SCMP_SYS(name)

static const int allowed[] = {
	/* files */
	CALL(openat),
	CALL(close),
	CALL(read),
	CALL(readv),
	CALL(pread64),
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
	CALL(ftruncate),
	CALL(fadvise64),
	CALL(fsync),
	CALL(fdatasync),
	CALL(syncfs),
	CALL(sync_file_range),
	CALL(flock),
	CALL(fcntl),
	CALL(dup),
	CALL(dup3),
	CALL(getdents64),
	CALL(mkdirat),
	CALL(unlink),
	CALL(unlinkat),
	CALL(renameat),
	CALL(renameat2),
	CALL(linkat),
	CALL(readlink),
	CALL(readlinkat),
	CALL(memfd_create),
	CALL(fchmod),
	CALL(umask),
	CALL(getcwd),
	/* connections of open sockets */
	CALL(accept4),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(sendto),
	CALL(sendmsg),
	CALL(shutdown),
	CALL(setsockopt),
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
	CALL(getcpu),
	CALL(gettid),
	CALL(getpid),
	CALL(exit),
	CALL(exit_group),
	/* signals; tgkill is what abort() raises */
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(rt_sigpending),
	CALL(sigaltstack),
	CALL(tgkill),
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

/* Calls that are allowed if one argument, masked, has this value. */
struct call_if {
	int call;
	unsigned argument;
	uint64_t mask, value;
};

static const struct call_if allowed_if[] = {
	{ CALL(mmap), 2, PROT_EXEC, 0 },
	{ CALL(mprotect), 2, PROT_EXEC, 0 },
	{ CALL(clone), 0, CLONE_THREAD, CLONE_THREAD },
	{ CALL(ioctl), 1, UINT32_MAX, FIONBIO },
	{ CALL(ioctl), 1, UINT32_MAX, FIONREAD },
	{ CALL(prctl), 0, UINT32_MAX, PR_SET_NAME },
	{ CALL(prlimit64), 2, UINT64_MAX, 0 }, /* only queries */
};

/* The same for performance counters, only if they are on: they reach deep into the kernel. */
static const struct call_if allowed_if_counting[] = {
	{ CALL(perf_event_open), 1, UINT32_MAX, 0 }, /* for the calling thread */
	{ CALL(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_ENABLE },
};

static int add_rules_if(scmp_filter_ctx filter, const struct call_if *rules, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, rules[i].call, 1,
		                       SCMP_CMP(rules[i].argument, SCMP_CMP_MASKED_EQ,
		                                rules[i].mask, rules[i].value));
	return err;
}

static int add_rules(scmp_filter_ctx filter, const struct conf *conf)
{
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(allowed) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!err)
		err = add_rules_if(filter, allowed_if, COUNT_OF(allowed_if));
	if (!err && conf->scheduler.counters == CONF_YES)
		err = add_rules_if(filter, allowed_if_counting, COUNT_OF(allowed_if_counting));
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

static int enter_seccomp(const struct conf *conf)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (!filter)
		return -ENOMEM;
	err = add_rules(filter, conf);
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

static bool has_seccomp(void)
{
	/* A filter at NULL: EFAULT if the kernel has filters, EINVAL if not. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1 && errno == EFAULT;
}

/* ---- public ---- */

static bool is_wanted(const struct conf *conf)
{
	return conf->server.sandbox != CONF_SANDBOX_OFF && !IS_SANITIZED;
}

static void describe_landlock(const struct conf *conf, int version, struct text *to)
{
	if (version >= LANDLOCK_MIN)
		text_printf(to, "Landlock, version %d: only the store%s%s", version,
		            has_access_file(conf) ? " and the access log" : "",
		            version >= 4 ? ", no other TCP sockets" : "");
	else
		text_printf(to, "no Landlock (%s)",
		            version ? "this kernel's version cannot allow renaming"
		                    : "this kernel does not have it");
}

void sandbox_describe(const struct conf *conf, struct text *to)
{
	if (!is_wanted(conf)) {
		text_printf(to, "sandbox: off (%s)",
		            IS_SANITIZED ? "this build has a sanitizer" : "server.sandbox = off");
		return;
	}
	text_puts(to, "sandbox: no new privileges; ");
	describe_landlock(conf, landlock_version(), to);
	text_puts(to, has_seccomp() ? "; seccomp: only the system calls that it needs"
	                            : "; no seccomp (this kernel does not have it)");
	if (*conf->server.user)
		text_printf(to, "; user %s", conf->server.user);
	else if (geteuid() == 0)
		text_puts(to, "; root cannot start the daemon, because server.user is empty");
}

int sandbox_enter(const struct conf *conf, const char *config_path)
{
	int version = landlock_version(), err = 0;
	struct text line;
	char data[512];

	text_init(&line, data, sizeof data);
	sandbox_describe(conf, &line);
	log_notice("%s", data);
	if (!is_wanted(conf))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && version >= LANDLOCK_MIN)
		err = enter_landlock(version, conf, config_path);
	if (!err && has_seccomp())
		err = enter_seccomp(conf);
	if (err)
		log_error("sandbox: cannot enter it: %s; server.sandbox = off runs without it",
		          strerror(-err));
	return err;
}

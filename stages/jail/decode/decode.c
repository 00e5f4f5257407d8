/*
 * decode.c - darkroom-decode: decodes uploaded pictures of other formats than JPEG for darkroomd.
 *
 * The daemon executes it before it enters its sandbox. The first process only starts the zygote
 * again when that has ended; a spare copy takes its place when it has ended itself. The zygote
 * loads the libraries, keeps one child ready for each slot, and ends those that the daemon names.
 * It never reads a byte of an upload, and it has no file, configuration or secret. A child decodes
 * one picture and ends. While it does, it can read its socket, write it and exit, by its filter of
 * system calls. Its memory is taken before that: a call for more fails.
 *
 * usage: darkroom-decode SLOTS FORMATS [zygote], with the descriptors of jail_protocol.h
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd_message.h"
#include "codec.h"

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#define ARCHITECTURE 0 /* no filter is possible: nothing is decoded */
#endif

#define NAME "darkroom-decode"
#define SPARE "darkroom-spare"
#define STACK_MAX (1U << 20)
#define RESTART_MS 1000 /* before another zygote */
#define LARGE_PAGE ((size_t)2 << 20)
#define CALLS_MAX 32

/* ---- filters of system calls ---- */

/* Kills the process at any call but these. The last ones find no more memory: brk, which returns an
 * address, and mmap. Returns whether that is possible. */
static bool allow_only(const long *calls, unsigned count, unsigned failing)
{
	struct sock_filter code[2 * CALLS_MAX + 5];
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                         offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                         offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count && i < CALLS_MAX; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		                                         (uint32_t)calls[i], 0, 1);
		uint32_t error = SECCOMP_RET_ERRNO | (calls[i] == SYS_brk ? 0 : ENOMEM);

		code[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, i + failing < count ? SECCOMP_RET_ALLOW : error);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	const struct sock_fprog program = { .len = n, .filter = code };

	return ARCHITECTURE != 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* What the zygote needs, and its children before they read a file. */
static bool lock_zygote(void)
{
	static const long calls[] = {
		SYS_clone,          SYS_wait4,       SYS_socketpair,
		SYS_sendmsg,        SYS_kill,        SYS_fallocate,
		SYS_close,          SYS_close_range, SYS_dup3,
		SYS_mmap,           SYS_munmap,      SYS_mprotect,
		SYS_madvise,        SYS_prctl,       SYS_prlimit64,
		SYS_setitimer,      SYS_getppid,     SYS_set_robust_list,
		SYS_rt_sigprocmask, SYS_read,        SYS_write,
		SYS_exit,           SYS_exit_group,  SYS_brk,
	};

	return allow_only(calls, COUNT_OF(calls), 0);
}

static bool lock_child(void)
{
	static const long calls[] = {
		SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_brk, SYS_mmap,
	};

#ifdef PR_SET_TSC /* no clock: what a decoder measures may tell about other processes */
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
#endif
	return allow_only(calls, COUNT_OF(calls), 2);
}

/* ---- memory ---- */

/* malloc() has one range of addresses, and gives none back to the kernel. */
static bool keep_memory(void)
{
	return mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, -1) && mallopt(M_TOP_PAD, 0);
}

/* Makes malloc() take this much from the kernel, which gives no more behind the filter. In large
 * pages, if the kernel has some: each small one costs a fault, on some virtual machines 20 us. */
static bool take_memory(uint64_t bytes)
{
	uint8_t *volatile all = malloc(bytes);
	/* Only its address is used: cppcheck is wrong. */
	/* cppcheck-suppress uninitdata */
	size_t skipped = -(uintptr_t)all % LARGE_PAGE;
	bool is_there = all;

	if (is_there && skipped + LARGE_PAGE <= bytes)
		madvise(all + skipped, (bytes - skipped) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
	free(all);
	return is_there;
}

/* ---- a child ---- */

static void reply(const struct jail_reply *r)
{
	if (write(0, r, sizeof *r) != sizeof *r)
		_exit(EXIT_FAILURE);
}

static void ask_for_turn(void)
{
	const struct jail_reply more = { .status = JAIL_MORE };
	char byte;

	reply(&more);
	if (read(0, &byte, 1) != 1)
		_exit(EXIT_FAILURE);
}

/* Maps a part of the slot, all at once: a fault for each page takes longer. */
static uint8_t *map(int slot, uint64_t at, uint64_t bytes, int protection)
{
	uint8_t *p = mmap(NULL, bytes, protection, MAP_SHARED | MAP_POPULATE, slot, (off_t)at);

	return p == MAP_FAILED ? NULL : p;
}

/* Maps the file and the planes, takes the memory that the daemon has reserved, and gives up the
 * rest. Returns whether all is done. */
static bool prepare(const struct jail_request *q, int slot, struct codec_job *job)
{
	const struct itimerval cpu = { .it_value = { q->cpu_ms / 1000,
		                                     (suseconds_t)(q->cpu_ms % 1000) * 1000 } };
	uint64_t at = jail_planes_at(q);

	job->request = q;
	job->turn = ask_for_turn;
	job->source = map(slot, 0, q->source_bytes, PROT_READ);
	job->planes = map(slot, at, jail_used_bytes(q) - at, PROT_READ | PROT_WRITE);
	close(slot);
	/* The signal of the timer ends the process. Nothing can change that behind the filter. */
	return job->source && job->planes && take_memory(q->memory_bytes) &&
	       setitimer(ITIMER_PROF, &cpu, NULL) == 0 && lock_child();
}

static void set_limit(__rlimit_resource_t resource, rlim_t value)
{
	const struct rlimit limit = { value, value };

	setrlimit(resource, &limit);
}

/* Has descriptor 0, its socket, and 1, its slot. */
_Noreturn static void decode_one(void)
{
	struct jail_request q;
	struct codec_job job = { 0 };

	if (read(0, &q, sizeof q) != sizeof q)
		_exit(EXIT_FAILURE);
	bool is_prepared = prepare(&q, 1, &job);

	errno = 0;
	enum jail_status status = is_prepared ? codec_run(&job) : JAIL_BUSY;

	if (status == JAIL_DAMAGED && errno == ENOMEM)
		status = JAIL_NO_MEMORY;
	const struct jail_reply r = { .status = status,
		                      .width = job.size_read[0],
		                      .height = job.size_read[1],
		                      .plane_count = job.plane_count,
		                      .extra_bytes = job.extra_bytes };

	reply(&r);
	_exit(EXIT_SUCCESS);
}

_Noreturn static void run_child(int socket, int slot, pid_t zygote)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a new zygote gives the slot to another child */
	if (getppid() != zygote || dup3(socket, 0, 0) < 0 || dup3(slot, 1, 0) < 0)
		_exit(EXIT_FAILURE);
	closefrom(2);
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_FSIZE, 0);
	set_limit(RLIMIT_NPROC, 0);
	set_limit(RLIMIT_STACK, STACK_MAX);
	decode_one();
}

/* ---- the zygote ---- */

/* Starts a child for the slot, and tells the daemon. Returns its process id, or -1. */
static pid_t start_child(struct jail_notice *notice, pid_t self)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -1;
	pid_t pid = notice->pid = fork();

	if (pid == 0)
		run_child(pair[1], JAIL_CONTROL_FD + 1 + notice->slot, self);
	close(pair[1]);
	bool is_there =
		pid > 0 && fd_message_send(JAIL_CONTROL_FD, notice, sizeof *notice, pair[0]);

	close(pair[0]);
	return is_there ? pid : -1;
}

/* Ends a child, and removes what it has read and written. */
static bool end_child(struct jail_notice *notice, pid_t pid)
{
	kill(pid, SIGKILL); /* its number is its own until the next line */
	if (waitpid(pid, &notice->status, 0) != pid)
		return false;
	notice->ended_pid = pid;
	return jail_wipe(JAIL_CONTROL_FD + 1 + notice->slot);
}

/* Follows the daemon's orders until it has ended, or memory or processes are short. */
static int run_zygote(int slots, uint32_t formats)
{
	struct jail_notice begin = { .slot = -1, .formats = codec_load(formats) };
	pid_t pid[JAIL_SLOTS_MAX], self = getpid();
	struct jail_order order;

	if (!lock_zygote())
		begin.formats = 0;
	if (!fd_message_send(JAIL_CONTROL_FD, &begin, sizeof begin, -1) || !begin.formats)
		return EXIT_FAILURE;
	for (int k = 0; k < slots; k++)
		if ((pid[k] = start_child(&(struct jail_notice){ .slot = k }, self)) < 0)
			return EXIT_FAILURE;
	while (read(JAIL_CONTROL_FD, &order, sizeof order) == sizeof order) {
		struct jail_notice notice = { .slot = order.slot };

		if (order.slot < 0 || order.slot >= slots)
			break;
		/* Another one: of the zygote before. */
		if (order.pid == pid[order.slot] &&
		    (!end_child(&notice, order.pid) ||
		     (pid[order.slot] = start_child(&notice, self)) < 0))
			break;
	}
	return EXIT_FAILURE;
}

/* ---- the first process ---- */

/* Forks a process that gets a signal when this one ends. Returns as fork() does. */
static pid_t fork_bound(int signal)
{
	pid_t self = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, signal);
		if (getppid() != self)
			raise(signal);
	}
	return pid;
}

/* Starts the process that takes the place of this one. Returns 0 in that, when this one has ended.
 * The spare has another name, so a kill of all processes with the program's name leaves the spare.
 */
static pid_t start_spare(void)
{
	pid_t self = getpid(), pid = fork_bound(SIGTERM);
	sigset_t set;
	int number;

	if (pid != 0)
		return pid;
	prctl(PR_SET_NAME, SPARE);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (getppid() == self)
		sigwait(&set, &number);
	prctl(PR_SET_NAME, NAME);
	return 0;
}

static pid_t start_zygote(const char *slots, const char *formats)
{
	pid_t pid = fork_bound(SIGKILL);

	if (pid == 0) {
		/* A new program has other addresses. */
		execl("/proc/self/exe", NAME, slots, formats, "zygote", (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	return pid;
}

/* Until the daemon has ended. That ends the zygote as well. */
static int keep_zygote(const char *slots, const char *formats)
{
	struct pollfd daemon = { .fd = JAIL_CONTROL_FD };
	pid_t spare = 0, zygote = 0, ended;

	for (int wait_ms = 0; poll(&daemon, 1, wait_ms) <= 0; wait_ms = RESTART_MS) {
		prctl(PR_SET_CHILD_SUBREAPER, 1); /* also the children of a killed zygote */
		if (spare <= 0 && (spare = start_spare()) == 0) {
			zygote = 0; /* it ends with the former process */
			continue;
		}
		if (zygote <= 0)
			zygote = start_zygote(slots, formats);
		do
			ended = waitpid(-1, NULL, 0);
		while (ended > 0 && ended != spare && ended != zygote);
		spare = ended == spare ? 0 : spare;
		zygote = ended == zygote ? 0 : zygote;
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int slots = argc > 1 ? atoi(argv[1]) : 0;
	sigset_t set;

	if (argc < 3 || slots < 1 || slots > JAIL_SLOTS_MAX)
		return 2;
	/* The daemon decides when it ends: a terminal signals the whole group. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGPROF, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, NAME); /* that of the zygote would be "exe" */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !keep_memory())
		return EXIT_FAILURE;
	return argc > 3 ? run_zygote(slots, (uint32_t)strtoul(argv[2], NULL, 10))
	                : keep_zygote(argv[1], argv[2]);
}

/*
 * sandbox_escapes.c - enters the daemon's sandbox as an attacker finds it, and tries one way out.
 *
 * usage: sandbox_escapes --list
 *        sandbox_escapes none|files|all ATTEMPT DIRECTORY
 *
 * Prepares an empty DIRECTORY: a store, a configuration, a secret outside of the store, sockets,
 * and a victim, another process of the same user. "none" enters no sandbox and shows that the
 * attempt works; "files" enters Landlock alone. Prints "escaped", or "refused: ERRNO". Exit status:
 * 0 refused, 1 escaped, 3 the preparation failed.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_source.h"
#include "daemon/sandbox/sandbox.h"

/* What the daemon has open, and what is around it. */
static struct {
	int store, file, tcp, unix_stream, datagram, pipe, namespace;
	struct sockaddr_in listener;
	struct sockaddr_un path, abstract;
	socklen_t abstract_length;
	pid_t victim;
	void *page;
} w;

#define PATH_OF(address) ((const struct sockaddr *)&w.address)
#define CALL(name, ...) syscall(SYS_##name, __VA_ARGS__)

/* ---- addresses ---- */

static long send_message(struct sockaddr_un *to, socklen_t length)
{
	char letter = 'x';
	struct iovec iov = { &letter, 1 };
	const struct msghdr message = {
		.msg_name = to, .msg_namelen = length, .msg_iov = &iov, .msg_iovlen = 1
	};

	return sendmsg(w.datagram, &message, 0);
}

static long do_bind_tcp(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };

	return bind(w.tcp, (const struct sockaddr *)&any, sizeof any);
}

static long do_socket_pair(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

static long do_attach_filter(void)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { 1, &code };

	return setsockopt(w.tcp, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* ---- other processes ---- */

static long do_signal_queue(void)
{
	siginfo_t info = { .si_code = SI_QUEUE };

	return CALL(rt_sigqueueinfo, w.victim, SIGURG, &info);
}

static long do_own_pipe_by_ioctl(void)
{
	pid_t owner = w.victim;

	return ioctl(w.tcp, FIOSETOWN, &owner);
}

static long read_or_write(long call)
{
	int here = 0;
	const struct iovec local = { &here, sizeof here }, remote = { &w.victim, sizeof w.victim };

	return syscall(call, w.victim, &local, 1, &remote, 1, 0);
}

static long do_limit_process(void)
{
	const struct rlimit none = { 0, 0 };

	return prlimit(w.victim, RLIMIT_CORE, &none, NULL);
}

/* ---- programs and processes ---- */

#ifndef SYS_fork
#define SYS_fork SYS_clone
#endif

static char *const no_words[] = { NULL };

/* Ends the child. Returns what the parent got. */
static long parent_of(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static long do_vfork_process(void)
{
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): refused */

	if (pid == 0)
		_exit(0);
	return pid;
}

static long do_clone_with_structure(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return parent_of(CALL(clone3, &args, sizeof args));
}

/* ---- files ---- */

/* Like the call that is allowed, but with a structure of its own. */
static long do_create_with_structure(void)
{
	struct open_how how = { .flags = O_WRONLY | O_CREAT, .mode = 04755 };

	return CALL(openat2, w.store, "program2", &how, sizeof how);
}

static long do_make_socket(void)
{
	const struct sockaddr_un in_store = { AF_UNIX, "store/socket" };

	return bind(w.unix_stream, (const struct sockaddr *)&in_store, sizeof in_store);
}

/* ---- memory and the kernel ---- */

#define EXECUTABLE (PROT_READ | PROT_WRITE | PROT_EXEC)

static long do_set_up_ring(void)
{
	struct io_uring_params params = { 0 };

	return CALL(io_uring_setup, 1, &params);
}

static long do_make_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return CALL(bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static long do_count_events(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		                        .size = sizeof attr,
		                        .config = PERF_COUNT_SW_PAGE_FAULTS,
		                        .exclude_kernel = 1,
		                        .exclude_hv = 1 };

	return CALL(perf_event_open, &attr, 0, -1, -1, 0);
}

static long do_raise_limit(void)
{
	struct rlimit limit = { 64, 64 };

	return prlimit(0, RLIMIT_NOFILE, &limit, NULL);
}

static long do_set_timer_signal(void)
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG };

	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

/* ---- all: a name, and what is not negative if it worked ---- */

#define ADDRESSES(X)                                                                            \
	X(send_to_path, sendto(w.datagram, "x", 1, 0, PATH_OF(path), sizeof w.path))            \
	X(send_to_abstract_name,                                                                \
	  sendto(w.datagram, "x", 1, 0, PATH_OF(abstract), w.abstract_length))                  \
	X(send_message_to_path, send_message(&w.path, sizeof w.path))                           \
	X(send_message_to_abstract_name, send_message(&w.abstract, w.abstract_length))          \
	X(connect_to_path, connect(w.datagram, PATH_OF(path), sizeof w.path))                   \
	X(connect_tcp, connect(w.tcp, PATH_OF(listener), sizeof w.listener))                    \
	X(open_fast, sendto(w.tcp, "x", 1, MSG_FASTOPEN, PATH_OF(listener), sizeof w.listener)) \
	X(bind_tcp, do_bind_tcp())                                                              \
	X(socket_tcp, socket(AF_INET, SOCK_STREAM, 0))                                          \
	X(socket_udp, socket(AF_INET, SOCK_DGRAM, 0))                                           \
	X(socket_unix, socket(AF_UNIX, SOCK_STREAM, 0))                                         \
	X(socket_netlink, socket(AF_NETLINK, SOCK_RAW, 0))                                      \
	X(socket_pair, do_socket_pair())                                                        \
	X(attach_filter, do_attach_filter())

#define PROCESSES(X)                                                               \
	X(signal_thread, CALL(tgkill, w.victim, w.victim, SIGURG))                 \
	X(signal_process, kill(w.victim, SIGURG))                                  \
	X(signal_group, kill(-getpgrp(), SIGURG))                                  \
	X(signal_queue, do_signal_queue())                                         \
	X(own_pipe, fcntl(w.pipe, F_SETOWN, w.victim))                             \
	X(own_pipe_by_ioctl, do_own_pipe_by_ioctl())                               \
	X(choose_signal, fcntl(w.pipe, F_SETSIG, SIGTERM))                         \
	X(lease_file, fcntl(w.file, F_SETLEASE, F_RDLCK))                          \
	X(open_process, CALL(pidfd_open, w.victim, 0))                             \
	X(trace, ptrace(PTRACE_SEIZE, w.victim, NULL, NULL))                       \
	X(read_process, read_or_write(SYS_process_vm_readv))                       \
	X(write_process, read_or_write(SYS_process_vm_writev))                     \
	X(limit_process, do_limit_process())                                       \
	X(slow_process, setpriority(PRIO_PROCESS, (id_t)w.victim, 19))             \
	X(run_program, execve("/bin/false", no_words, no_words))                   \
	X(run_program_at, execveat(AT_FDCWD, "/bin/false", no_words, no_words, 0)) \
	X(fork_process, parent_of(CALL(fork, 0)))                                  \
	X(vfork_process, do_vfork_process())                                       \
	X(clone_process, parent_of(CALL(clone, SIGCHLD, 0, 0, 0, 0)))              \
	X(clone_with_structure, do_clone_with_structure())

#define FILES(X)                                                                   \
	X(read_neighbour, open("conf/neighbour", O_RDONLY))                        \
	X(read_configuration, open("conf/site.ini", O_RDONLY))                     \
	X(read_passwd, open("/etc/passwd", O_RDONLY))                              \
	X(read_memory, open("/proc/self/mem", O_RDWR))                             \
	X(read_secret_from_store, openat(w.store, "../outside/secret", O_RDONLY))  \
	X(list_root, open("/", O_RDONLY | O_DIRECTORY))                            \
	X(write_outside, open("outside/secret", O_WRONLY))                         \
	X(truncate_outside, truncate("outside/secret", 0))                         \
	X(create_outside, open("outside/new", O_WRONLY | O_CREAT, 0600))           \
	X(make_directory_outside, mkdir("outside/directory", 0700))                \
	X(remove_outside, unlinkat(AT_FDCWD, "outside/secret", 0))                 \
	X(rename_outside, rename("store/file", "outside/file"))                    \
	X(rename_inside, rename("outside/secret", "store/secret"))                 \
	X(link_outside, linkat(w.store, "file", AT_FDCWD, "outside/link", 0))      \
	X(link_inside, linkat(AT_FDCWD, "outside/secret", w.store, "link", 0))     \
	X(link_descriptor, linkat(w.file, "", w.store, "link", AT_EMPTY_PATH))     \
	X(make_symlink, symlinkat("/etc/passwd", w.store, "symlink"))              \
	X(make_fifo, mkfifoat(w.store, "fifo", 0600))                              \
	X(make_device, mknodat(w.store, "null", S_IFCHR | 0600, 0x103))            \
	X(make_socket, do_make_socket())                                           \
	X(set_mode, fchmod(w.file, 04755))                                         \
	X(set_mode_of_path, chmod("store/file", 04755))                            \
	X(create_with_mode, openat(w.store, "program", O_WRONLY | O_CREAT, 04755)) \
	X(create_with_structure, do_create_with_structure())                       \
	X(set_owner, fchown(w.file, geteuid(), getegid()))                         \
	X(set_times, utimensat(AT_FDCWD, "outside/secret", NULL, 0))               \
	X(set_attribute, fsetxattr(w.file, "user.x", "x", 1, 0))                   \
	X(watch_file, inotify_init1(IN_CLOEXEC))

#define KERNEL(X)                                                                                 \
	X(map_executable,                                                                         \
	  (long)mmap(NULL, 4096, EXECUTABLE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1 ? 0 : -1)  \
	X(map_file_executable,                                                                    \
	  mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, w.file, 0) == MAP_FAILED ? -1 : 0) \
	X(make_executable, mprotect(w.page, 4096, EXECUTABLE))                                    \
	X(make_executable_by_key, CALL(pkey_mprotect, w.page, 4096, EXECUTABLE, -1))              \
	X(make_memory_file, memfd_create("x", MFD_CLOEXEC))                                       \
	X(imply_executable, personality(READ_IMPLIES_EXEC))                                       \
	X(set_up_ring, do_set_up_ring())                                                          \
	X(make_map, do_make_map())                                                                \
	X(handle_faults, CALL(userfaultfd, O_CLOEXEC))                                            \
	X(use_keys, CALL(keyctl, KEYCTL_GET_KEYRING_ID, -3, 1))                                   \
	X(leave_namespace, unshare(CLONE_NEWUSER))                                                \
	X(enter_namespace, setns(w.namespace, 0))                                                 \
	X(change_root, chroot("."))                                                               \
	X(count_events, do_count_events())                                                        \
	X(raise_limit, do_raise_limit())                                                          \
	X(allow_dumps, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))                                        \
	X(change_user, setresuid(geteuid(), geteuid(), geteuid()))                                \
	X(set_timer_signal, do_set_timer_signal())

#define FUNCTION(name, call)         \
	static long try_##name(void) \
	{                            \
		return (call);       \
	}
#define ROW(name, call) { #name, try_##name },

ADDRESSES(FUNCTION)
PROCESSES(FUNCTION)
FILES(FUNCTION)
KERNEL(FUNCTION)

static const struct attempt {
	const char *name;
	long (*run)(void);
} attempts[] = { ADDRESSES(ROW) PROCESSES(ROW) FILES(ROW) KERNEL(ROW) };

/* ---- preparation ---- */

/* Ends the program unless the call worked. */
static int need(int result, const char *what)
{
	if (result < 0)
		err(3, "%s", what);
	return result;
}

static int make_file(const char *path)
{
	int fd = need(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), path);

	need((int)write(fd, "1234", 4), path);
	return fd;
}

/* Binds a socket that an attempt could reach. */
static void receive_at(const struct sockaddr_un *address, socklen_t length)
{
	int fd = need(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

	need(bind(fd, (const struct sockaddr *)address, length), "bind");
}

static void prepare_sockets(void)
{
	int fd = need(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	socklen_t length = sizeof w.listener;

	need(listen(fd, 4), "listen");
	need(getsockname(fd, (struct sockaddr *)&w.listener, &length), "getsockname");
	w.listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w.tcp = need(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	w.unix_stream = need(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
	w.datagram = need(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
	w.path = (struct sockaddr_un){ AF_UNIX, "outside/receiver" };
	receive_at(&w.path, sizeof w.path);
	w.abstract = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int name = snprintf(w.abstract.sun_path + 1, 32, "darkroom-escape-%d", (int)getpid());

	w.abstract_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)name);
	receive_at(&w.abstract, w.abstract_length);
}

static void prepare(void)
{
	int pipe[2];

	for (unsigned i = 0; i < 3; i++)
		need(mkdir(((const char *[]){ "store", "outside", "conf" })[i], 0700), "mkdir");
	make_file("outside/secret");
	make_file("conf/site.ini");
	make_file("conf/neighbour");
	close(make_file("store/file"));
	w.store = need(open("store", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "store");
	w.file = need(open("store/file", O_RDONLY | O_CLOEXEC), "store/file");
	w.namespace = need(open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC), "ns/uts");
	need(pipe2(pipe, O_CLOEXEC), "pipe");
	w.pipe = pipe[0];
	w.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	prepare_sockets();
	signal(SIGURG, SIG_IGN);
	w.victim = need(fork(), "fork");
	if (w.victim == 0) { /* lives until the write end is closed */
		close(pipe[1]);
		_exit((int)read(pipe[0], &pipe[1], 1));
	}
}

/* Enters the sandbox as daemon.c does. */
static void enter(const char *mode)
{
	static struct conf conf;
	struct conf_source source;
	struct text errors;

	text_init_growable(&errors, 1 << 16);
	if (conf_load(&conf, &source, NULL, NULL, 0, &errors))
		errx(3, "%s", errors.data);
	snprintf(conf.server.root, sizeof conf.server.root, "store");
	if (strcmp(mode, "files") == 0) {
		need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
		errno = -sandbox_files_enter(&(struct sandbox_allowed){ .root = conf.server.root });
		need(errno ? -1 : 0, "sandbox_files_enter");
	} else if (strcmp(mode, "all") == 0 &&
	           (sandbox_limit_cores(&conf) || sandbox_start_opener(&conf, "conf/site.ini") ||
	            sandbox_enter(&conf))) {
		exit(3);
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < COUNT_OF(attempts); i++) {
		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			puts(attempts[i].name);
		if (argc != 4 || strcmp(argv[2], attempts[i].name) != 0)
			continue;
		need(chdir(argv[3]), argv[3]);
		prepare();
		enter(argv[1]);
		long result = attempts[i].run();

		if (result < 0)
			printf("refused: %s\n", strerrorname_np(errno));
		else
			puts("escaped");
		fflush(stdout);
		_exit(result < 0 ? 0 : 1);
	}
	return argc == 2 ? 0 : 3;
}

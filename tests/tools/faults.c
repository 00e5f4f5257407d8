/*
 * faults.c - makes chosen system calls and allocations of a program fail.
 *
 * For LD_PRELOAD. The program and tests/http/faults.py both map the file DARKROOM_FAULTS: the test
 * arms a fault while the program runs, and reads the calls so far. A call site is a function with
 * the CALLERS return addresses above it, which separates the callers of a helper. Addresses are
 * relative to their module, and so equal in all processes. A failing call has no effect, except
 * close(2). Counts live allocations to find leaks.
 */
#undef _FORTIFY_SOURCE /* its headers define wrapped functions inline */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define CALLERS 3
#define SITE_MAX 4096
#define MODULE_MAX 64
#define SHORT (-1) /* instead of an errno: at most one byte is read or written */

/* tests/http/faults.py has the same layout. */
struct site {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t calls, is_named;
	char name[112];
};

struct control {
	_Atomic uint64_t key;        /* site that fails; 0: none */
	_Atomic int32_t skip;        /* calls that succeed before the first failure */
	_Atomic int32_t left;        /* remaining failures; negative: no limit */
	_Atomic int32_t error;       /* errno or SHORT */
	_Atomic uint32_t fired;      /* failures so far */
	_Atomic int64_t allocations; /* live */
	_Atomic uint32_t lost;       /* sites beyond SITE_MAX */
	_Atomic uint64_t until_ns;   /* end of the fault by CLOCK_MONOTONIC */
	struct site site[SITE_MAX];
};

struct module {
	uintptr_t begin, end, base;
	char name[24];
};

static struct control *control;
static struct module modules[MODULE_MAX];
static unsigned module_count;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *m = &modules[module_count];

	(void)size;
	(void)arg;
	if (module_count == MODULE_MAX)
		return 1;
	*m = (struct module){ .begin = UINTPTR_MAX, .base = info->dlpi_addr };
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		m->begin = info->dlpi_addr + p->p_vaddr;
		m->end = m->begin + p->p_memsz;
	}
	const char *slash = strrchr(info->dlpi_name, '/'),
		   *name = slash ? slash + 1
	                         : "darkroomd"; /* the loader has no name for the program */

	snprintf(m->name, sizeof m->name, "%.*s", (int)strcspn(name, "."), name);
	module_count++;
	return 0;
}

__attribute__((constructor)) static void map_control(void)
{
	const char *path = getenv("DARKROOM_FAULTS");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	void *map = fd < 0 ? MAP_FAILED
	                   : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	syscall(SYS_close, fd);
	dl_iterate_phdr(add_module, NULL);
	control = map;
}

/* ---- sites ---- */

struct trace {
	uintptr_t at[CALLERS];
	unsigned depth, count; /* frames seen, return addresses kept */
};

/* Skips the first two frames, which are fault() and the wrapper. */
static _Unwind_Reason_Code trace_frame(struct _Unwind_Context *context, void *arg)
{
	struct trace *t = arg;

	if (t->depth++ < 2)
		return _URC_NO_REASON;
	t->at[t->count++] = _Unwind_GetIP(context);
	return t->count == CALLERS ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static const struct module *module_at(uintptr_t address)
{
	for (unsigned i = 0; i < module_count; i++)
		if (address >= modules[i].begin && address < modules[i].end)
			return &modules[i];
	return NULL;
}

static void add_to_key(uint64_t *key, uint64_t value)
{
	*key = (*key ^ value) * UINT64_C(0x9E3779B97F4A7C15);
	*key ^= *key >> 29;
}

static uint64_t key_of(const char *function, const struct trace *t)
{
	uint64_t key = 1;

	for (const char *c = function; *c; c++)
		add_to_key(&key, (unsigned char)*c);
	for (unsigned i = 0; i < t->count; i++) {
		const struct module *m = module_at(t->at[i]);

		add_to_key(&key, m ? t->at[i] - m->base : 0);
		add_to_key(&key, m ? (unsigned char)m->name[0] : 0);
	}
	return key ? key : 1;
}

static void name_site(struct site *site, const char *function, const struct trace *t)
{
	size_t n = (size_t)snprintf(site->name, sizeof site->name, "%s", function);

	for (unsigned i = 0; i < t->count && n < sizeof site->name; i++) {
		const struct module *m = module_at(t->at[i]);

		n += (size_t)snprintf(
			site->name + n, sizeof site->name - n, " %s+0x%lx", m ? m->name : "?",
			(unsigned long)(m ? t->at[i] - m->base - 1 : 0)); /* within the call */
	}
	atomic_store(&site->is_named, 1);
}

static void count_call(uint64_t key, const char *function, const struct trace *t)
{
	for (unsigned i = 0; i < SITE_MAX; i++) {
		struct site *site = &control->site[(key + i) % SITE_MAX];
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&site->key, &found, key))
			name_site(site, function, t);
		else if (found != key)
			continue;
		atomic_fetch_add(&site->calls, 1);
		return;
	}
	atomic_fetch_add(&control->lost, 1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns 0 if the call must be made, and otherwise its error: an errno or SHORT. */
__attribute__((noinline)) static int fault(const char *function)
{
	int saved = errno, error = 0;
	struct trace t = { .count = 0 };

	if (!control || is_inside)
		return 0;
	is_inside = true;
	_Unwind_Backtrace(trace_frame, &t);
	uint64_t key = key_of(function, &t);

	count_call(key, function, &t);
	if (atomic_load(&control->key) == key && now_ns() < atomic_load(&control->until_ns) &&
	    atomic_fetch_sub(&control->skip, 1) <= 0) {
		int32_t left = atomic_load(&control->left);

		if (left < 0 ||
		    (left > 0 && atomic_compare_exchange_strong(&control->left, &left, left - 1)))
			error = atomic_load(&control->error);
		atomic_fetch_add(&control->fired, error != 0);
	}
	is_inside = false;
	errno = saved;
	return error;
}

static void count_allocation(int64_t n)
{
	if (control)
		atomic_fetch_add_explicit(&control->allocations, n, memory_order_relaxed);
}

static void *counted(void *p)
{
	count_allocation(p != NULL);
	return p;
}

/* ---- the C library's interface ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return counted(fault("malloc") ? no_memory() : __libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return counted(fault("calloc") ? no_memory() : __libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
	if (fault("realloc"))
		return no_memory();
	return old ? __libc_realloc(old, size) : counted(__libc_malloc(size));
}

void *reallocarray(void *old, size_t n, size_t size)
{
	size_t all;

	if (fault("reallocarray") || __builtin_mul_overflow(n, size, &all))
		return no_memory();
	return old ? __libc_realloc(old, all) : counted(__libc_malloc(all));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return counted(fault("aligned_alloc") ? no_memory() : __libc_memalign(alignment, size));
}

void free(void *p)
{
	count_allocation(p ? -1 : 0);
	__libc_free(p);
}

#define REAL(type, name, params)   \
	static type(*real) params; \
	if (!real)                 \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

/* Returns whether a descriptor can have errors of a disk, as files and standard error do. */
static bool is_file(int fd)
{
	struct stat st;

	return fd == STDERR_FILENO ||
	       (fd >= 0 && syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0 &&
	        S_ISREG(st.st_mode));
}

/* Wraps a function that fails with errno and the value of the expression `failed`. */
#define WRAP(type, name, params, args, failed) \
	type name params                       \
	{                                      \
		REAL(type, name, params);      \
		int error = fault(#name);      \
                                               \
		if (error) {                   \
			errno = error;         \
			return failed;         \
		}                              \
		return real args;              \
	}

/* Wraps a function that transfers up to `size` bytes, or fewer. */
#define WRAP_TRANSFER(name, shown, params, args) \
	ssize_t name params                      \
	{                                        \
		REAL(ssize_t, name, params);     \
		int error = fault(shown);        \
                                                 \
		if (error > 0) {                 \
			errno = error;           \
			return -1;               \
		}                                \
		if (error == SHORT && size > 1)  \
			size = 1;                \
		return real args;                \
	}

#define WRAP_OPEN(name, params, args, args_mode)     \
	int name params                              \
	{                                            \
		REAL(int, name, params);             \
		int error = fault(#name);            \
		mode_t mode = 0;                     \
		va_list list;                        \
                                                     \
		va_start(list, flags);               \
		if (flags & (O_CREAT | O_TMPFILE))   \
			mode = va_arg(list, mode_t); \
		va_end(list);                        \
		if (error) {                         \
			errno = error;               \
			return -1;                   \
		}                                    \
		return real args_mode;               \
	}

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags), (path, flags, mode))
WRAP_OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags),
          (at, path, flags, mode))
int __openat_2(int at, const char *path, int flags);
WRAP(int, __openat_2, (int at, const char *path, int flags), (at, path, flags), -1)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP_TRANSFER(read, is_file(fd) ? "read" : "read-other", (int fd, void *data, size_t size),
              (fd, data, size))
/* What _FORTIFY_SOURCE makes of it where the compiler knows the room. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
WRAP_TRANSFER(__read_chk, is_file(fd) ? "read" : "read-other",
              (int fd, void *data, size_t size, size_t room), (fd, data, size, room))
WRAP_TRANSFER(pread, "pread", (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
WRAP_TRANSFER(recv, "recv", (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
WRAP_TRANSFER(write, is_file(fd) ? "write" : "write-other", (int fd, const void *data, size_t size),
              (fd, data, size))
WRAP_TRANSFER(pwrite, "pwrite", (int fd, const void *data, size_t size, off_t at),
              (fd, data, size, at))
WRAP_TRANSFER(send, "send", (int fd, const void *data, size_t size, int flags),
              (fd, data, size, flags))
WRAP_TRANSFER(sendfile, "sendfile", (int to, int from, off_t *at, size_t size),
              (to, from, at, size))
WRAP(ssize_t, sendto,
     (int fd, const void *data, size_t size, int flags, __CONST_SOCKADDR_ARG address,
      socklen_t length),
     (fd, data, size, flags, address, length), -1)
WRAP(ssize_t, getrandom, (void *data, size_t size, unsigned flags), (data, size, flags), -1)
WRAP(int, accept4, (int fd, __SOCKADDR_ARG address, socklen_t *length, int flags),
     (fd, address, length, flags), -1)
WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol), -1)
WRAP(int, bind, (int fd, __CONST_SOCKADDR_ARG address, socklen_t length), (fd, address, length), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(int, getsockname, (int fd, __SOCKADDR_ARG address, socklen_t *length), (fd, address, length),
     -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *length),
     (fd, level, name, value, length), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
WRAP(int, epoll_ctl, (int fd, int what, int other, struct epoll_event *event),
     (fd, what, other, event), -1)
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int max, int ms), (fd, e, max, ms), -1)
WRAP(int, poll, (struct pollfd * p, nfds_t n, int timeout), (p, n, timeout), -1)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), -1)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), -1)
WRAP(int, fdatasync, (int fd), (fd), -1)
WRAP(int, syncfs, (int fd), (fd), -1)
WRAP(int, renameat, (int a, const char *x, int b, const char *y), (a, x, b, y), -1)
WRAP(int, renameat2, (int a, const char *x, int b, const char *y, unsigned f), (a, x, b, y, f), -1)
WRAP(int, linkat, (int a, const char *x, int b, const char *y, int f), (a, x, b, y, f), -1)
WRAP(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), -1)
WRAP(int, unlink, (const char *path), (path), -1)
WRAP(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), -1)
WRAP(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags), -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1)
WRAP(int, lstat, (const char *path, struct stat *st), (path, st), -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
WRAP(int, flock, (int fd, int operation), (fd, operation), -1)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL)
WRAP(struct dirent *, readdir, (DIR * dir), (dir), NULL)
WRAP(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), (what, limit), -1)
WRAP(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), -1)

/* pthread_create(3) returns its error. */
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
     (thread, attr, run, arg), error)
/* A failing close(2) closes the descriptor. */
WRAP(int, close, (int fd), (fd), (real(fd), errno = error, -1))

/* Sets the error of the stream, as a failing read(2) does. */
static char *fail_stream(FILE *stream)
{
	stream->_flags |= 0x20; /* _IO_ERR_SEEN */
	return NULL;
}
WRAP(char *, fgets, (char *line, int size, FILE *stream), (line, size, stream), fail_stream(stream))

/* SHORT writes only the first byte. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
	REAL(ssize_t, writev, (int, const struct iovec *, int));
	int error = fault("writev");

	if (error > 0) {
		errno = error;
		return -1;
	}
	if (error == SHORT && count > 0) {
		const struct iovec first = { parts->iov_base, parts->iov_len > 0 };

		return real(fd, &first, 1);
	}
	return real(fd, parts, count);
}

/*
 * wasi.h - what wasi-libc lacks of Linux, as far as the scheduler and its world need it. The
 * compiler includes it first. The headers that are missing are empty files (Makefile).
 *
 * The world replaces what is called of this. The rest has no effect, or ends the program.
 */
#ifndef DARKROOM_TESTS_WORLD_LAB_WASI_H
#define DARKROOM_TESTS_WORLD_LAB_WASI_H

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define CLOCK_REALTIME_COARSE CLOCK_REALTIME

/* ---- threads and mutexes: there is one thread, and virtual ones ---- */

#define PTHREAD_MUTEX_INITIALIZER \
	{                         \
		{                 \
			{         \
				0 \
			}         \
		}                 \
	}
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
int pthread_setname_np(pthread_t, const char *);
int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
#define pthread_self() NULL
#define pthread_mutex_destroy(m) ((void)(m), 0)
#define pthread_cond_init(c, a) ((void)(c))
#define pthread_cond_destroy(c) ((void)(c))
#define pthread_cond_broadcast(c) ((void)(c))
#define pthread_attr_init(a) ((void)(a), 0)
#define pthread_attr_destroy(a) ((void)(a), 0)
#define pthread_attr_setstacksize(a, size) ((void)(a), 0)

/* user-threads lets a thread of the kernel end elsewhere. The lab does not offer that policy. */
typedef int jmp_buf[1];
#define setjmp(buffer) ((void)(buffer), 0)
#define longjmp(buffer, value) __builtin_trap()

/* ---- the kernel ---- */

enum { SYS_prctl, SYS_sched_setscheduler, SYS_sched_getattr, SYS_sched_setattr };
enum { PR_SET_TIMERSLACK, SCHED_OTHER = 0, SCHED_FIFO, EFD_CLOEXEC = 1, EFD_NONBLOCK = 2 };
struct sched_param {
	int sched_priority;
};
typedef int __rusage_who_t;
int eventfd(unsigned value, int flags);
int sched_getcpu(void);
long syscall(long number, ...);

/* ---- thread-local memory, as the dynamic linker describes it ---- */

#define _Thread_local __attribute__((section("locals")))
#define ElfW(type) struct elf_##type
#define PT_TLS 7
ElfW(Phdr)
{
	unsigned p_type;
	size_t p_vaddr, p_memsz, p_filesz;
};
struct dl_phdr_info {
	size_t dlpi_addr;
	const ElfW(Phdr) * dlpi_phdr;
	unsigned dlpi_phnum;
	void *dlpi_tls_data;
};
int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *);

#endif

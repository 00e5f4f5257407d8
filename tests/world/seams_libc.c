/*
 * seams_libc.c - the calls of libc that wait, take time or start threads, in virtual time.
 *
 * Outside of virtual time, before main() and at exit, mutexes do nothing and the rest is real.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/coroutine.h"
#include "descriptors.h"
#include "events.h"
#include "machine.h"
#include "seam.h"

/* ---- the program ---- */

static void report(void)
{
	fprintf(stderr,
	        "world: threads %llu, charges %llu, switches %llu, preemptions %llu, wakes %llu\n",
	        (unsigned long long)machine_stats.threads,
	        (unsigned long long)machine_stats.charges,
	        (unsigned long long)machine_stats.switches,
	        (unsigned long long)machine_stats.preemptions,
	        (unsigned long long)machine_stats.wakes);
#define X(name, ns, meaning)                                                            \
	fprintf(stderr, "cost %s %.1f %.6f\n", #name, (double)machine_costs.name / 1e3, \
	        (double)machine_stats.spent.name / 1e12);
	MACHINE_COSTS(X)
#undef X
	for (const struct seam *s = seams; s; s = s->next)
		fprintf(stderr, "seam %s %llu\n", s->name, (unsigned long long)s->calls);
}

SEAM(int, main, int argc, char **argv)
{
	char cores[32];

	CALLED(main);
	machine_start();
	/* The program sees the cores of the virtual machine, and binds no thread to real ones. */
	snprintf(cores, sizeof cores, "core:%u pu:1", (unsigned)machine.cpus);
	setenv("HWLOC_SYNTHETIC", cores, 1);
	int result = __real_main(argc, argv);

	if (machine.report)
		report();
	machine_stop();
	return result;
}

/* ---- time ---- */

SEAM(int, clock_gettime, clockid_t id, struct timespec *out)
{
	CALLED(clock_gettime);
	if (!machine_is_on())
		return __real_clock_gettime(id, out);
	if (id == CLOCK_THREAD_CPUTIME_ID)
		machine_pay(thread_clock, 1);
	else
		machine_pay(clock, 1);
	uint64_t ns = id == CLOCK_THREAD_CPUTIME_ID ? machine_cpu_ns(false) : machine_now();

	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		ns += machine.date * NS_PER_S;

	*out = (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
	return 0;
}

SEAM(int, getrusage, __rusage_who_t who, struct rusage *out)
{
	CALLED(getrusage);
	uint64_t ns = machine_cpu_ns(true);

	(void)who;
	memset(out, 0, sizeof *out);
	out->ru_utime.tv_sec = (time_t)(ns / NS_PER_S);
	out->ru_utime.tv_usec = (suseconds_t)(ns % NS_PER_S / 1000);
	return 0;
}

static void nap(uint64_t ns)
{
	uint64_t until_ns = machine_now() + ns, half_ps = machine_costs.nap / 2;

	machine_pay_to(&machine_stats.spent.nap, half_ps);
	machine_block(until_ns);
	machine_pay_to(&machine_stats.spent.nap, half_ps);
}

SEAM(int, nanosleep, const struct timespec *t, struct timespec *left)
{
	CALLED(nanosleep);
	(void)left;
	nap((uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec);
	return 0;
}

SEAM(int, usleep, useconds_t us)
{
	CALLED(usleep);
	nap((uint64_t)us * 1000);
	return 0;
}

SEAM(int, sched_yield, void)
{
	CALLED(sched_yield);
	machine_pay(syscall, 1);
	machine_charge(machine.jitter ? machine_random() % 20000 : 0);
	return 0;
}

SEAM(int, sched_getcpu, void)
{
	CALLED(sched_getcpu);
	return (int)machine_cpu();
}

/* The kernel's scheduling policies do not exist here. */
SEAM(long, syscall, long number, ...)
{
	CALLED(syscall);
	(void)number;
	errno = ENOSYS;
	return -1;
}

/* ---- eventfds ---- */

static struct event_fd {
	bool is_open, blocks;
	uint64_t value;
	struct thread **reader; /* in read(), poll() or a reactor; NULL: none */
} fds[512];

static struct event_fd *event_of(int fd)
{
	return &fds[fd - DESCRIPTORS_OF_EVENTS];
}

bool event_is_set(int fd)
{
	return event_of(fd)->value != 0;
}

void event_tell(int fd, struct thread **reader)
{
	event_of(fd)->reader = reader;
}

unsigned event_open_count(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		count += fds[i].is_open;
	return count;
}

static bool wait_for_value(struct event_fd *f, uint64_t until_ns)
{
	bool in_time = true;

	while (!f->value && in_time) {
		struct thread *self = machine_self();

		f->reader = &self;
		in_time = machine_block(until_ns);
		f->reader = NULL;
	}
	return f->value != 0;
}

SEAM(int, eventfd, unsigned value, int flags)
{
	CALLED(eventfd);
	for (int i = 0; i < (int)COUNT_OF(fds); i++)
		if (!fds[i].is_open) {
			fds[i] = (struct event_fd){ .is_open = true,
				                    .blocks = !(flags & EFD_NONBLOCK),
				                    .value = value };
			return DESCRIPTORS_OF_EVENTS + i;
		}
	errno = EMFILE;
	return -1;
}

static int close_event(int fd)
{
	event_of(fd)->is_open = false;
	return 0;
}

static ssize_t read_event(int fd, void *out, size_t size)
{
	struct event_fd *f = event_of(fd);

	(void)size;
	machine_pay(syscall, 1);
	if (!f->value && !f->blocks) {
		errno = EAGAIN;
		return -1;
	}
	wait_for_value(f, MACHINE_FOREVER);
	memcpy(out, &f->value, sizeof f->value);
	f->value = 0;
	return sizeof f->value;
}

static ssize_t write_event(int fd, const void *data, size_t size)
{
	struct event_fd *f = event_of(fd);
	uint64_t value;

	(void)size;
	memcpy(&value, data, sizeof value);
	machine_pay(syscall, 1);
	f->value += value;
	if (f->reader && *f->reader) {
		struct thread *reader = *f->reader;

		*f->reader = NULL;
		f->reader = NULL;
		if (machine_wake(reader))
			machine_pay(doze_send, 1);
		else
			machine_pay(wake_send, 1);
	}
	return sizeof value;
}

static int poll_event(struct pollfd *p, int ms)
{
	struct event_fd *f = event_of(p->fd);

	machine_pay(syscall, 1);
	if (ms)
		wait_for_value(f,
		               ms < 0 ? MACHINE_FOREVER : machine_now() + (uint64_t)ms * NS_PER_MS);
	p->revents = f->value ? POLLIN : 0;
	return f->value > 0;
}

DESCRIPTORS(events, .first = DESCRIPTORS_OF_EVENTS, .close = close_event, .read = read_event,
            .write = write_event, .poll = poll_event)

SEAM(ssize_t, read, int fd, void *out, size_t size)
{
	const struct descriptors *d = descriptors_of(fd);

	CALLED(read);
	return d ? d->read(fd, out, size) : __real_read(fd, out, size);
}

SEAM(int, poll, struct pollfd *p, nfds_t n, int ms)
{
	const struct descriptors *d = n == 1 ? descriptors_of(p->fd) : NULL;

	CALLED(poll);
	return d ? d->poll(p, ms) : __real_poll(p, n, ms);
}

/* ---- threads ---- */

SEAM(int, pthread_create, pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
     void *arg)
{
	CALLED(pthread_create);
	(void)attr;
	*out = (pthread_t)machine_thread_new(run, arg);
	return 0;
}

SEAM(int, pthread_join, pthread_t t, void **result)
{
	CALLED(pthread_join);
	void *value = machine_thread_join((struct thread *)t);

	if (result)
		*result = value;
	return 0;
}

SEAM(int, pthread_setname_np, pthread_t t, const char *name)
{
	CALLED(pthread_setname_np);
	(void)t;
	(void)name;
	return 0;
}

/* ---- mutexes, in the memory of those of libc ---- */

struct mutex {
	struct thread *owner;
	struct thread_list waiting;
};
static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "it is kept there");

static void lock(struct mutex *m)
{
	machine_line(m);
	machine_pay(mutex, 1);
	while (m->owner) {
		thread_list_add(&m->waiting, machine_self());
		machine_block(MACHINE_FOREVER);
	}
	m->owner = machine_self();
	coroutine_acquire(m);
}

static void unlock(struct mutex *m)
{
	struct thread *next = thread_list_take(&m->waiting);

	coroutine_release(m);
	m->owner = NULL;
	if (next)
		machine_wake(next);
}

SEAM(int, pthread_mutex_init, pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	CALLED(pthread_mutex_init);
	(void)attr;
	memset(m, 0, sizeof *m);
	return 0;
}

SEAM(int, pthread_mutex_lock, pthread_mutex_t *m)
{
	CALLED(pthread_mutex_lock);
	if (machine_is_on())
		lock((struct mutex *)(void *)m);
	return 0;
}

SEAM(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
	CALLED(pthread_mutex_unlock);
	if (machine_is_on())
		unlock((struct mutex *)(void *)m);
	return 0;
}

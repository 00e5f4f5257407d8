/*
 * perf_machine.h - perf.c on a machine of the test's own, which offers what the test wants of it
 * and counts what it is told; or on the real one. To be included by one test file, whose visit
 * harness comes first.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PERF_MACHINE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PERF_MACHINE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long machine_open(long number, struct perf_event_attr *attr, int pid, int cpu, int leader,
                         unsigned long flags);
static int machine_enable(int fd, unsigned long request, int flags);
static ssize_t machine_read(int fd, void *to, size_t size);
static int machine_close(int fd);

#define syscall(number, attr, pid, cpu, leader, flags) \
	machine_open(number, attr, pid, cpu, leader, flags)
#define ioctl(fd, request, flags) machine_enable(fd, request, flags)
#define read(fd, to, size) machine_read(fd, to, size)
#define close(fd) machine_close(fd)
#include "telemetry/perf.c"
#undef syscall
#undef ioctl
#undef read
#undef close

enum { FD_FIRST = 1000, FD_MAX = 64 };

static struct {
	bool is_real;                /* all calls go to the kernel */
	int refusal[COUNTERS_COUNT]; /* an errno */
	int kernel_refusal;          /* the same for whoever wants the kernel's share */
	unsigned registers;          /* hardware counters that a group may have */
	unsigned registers_free;     /* more than so many can be opened, but are never served */
	unsigned files;              /* that can be open at a time */
	bool is_unreadable;
	uint64_t value[COUNTERS_COUNT], enabled_ns,
		running_ns; /* the latter for hardware; what has happened so far */
	struct {
		enum perf_id id;
		int leader; /* 0: closed */
		bool is_enabled;
	} fd[FD_MAX];
	unsigned open;
} machine;

static unsigned group_size(int leader)
{
	unsigned n = 0;

	for (int i = 0; i < FD_MAX; i++)
		n += machine.fd[i].leader == leader;
	return n;
}

static enum perf_id id_of(const struct perf_event_attr *attr)
{
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		if (rows[i].type == attr->type && rows[i].config == attr->config)
			return (enum perf_id)i;
	fail_msg("an unknown counter");
	return COUNTERS_COUNT;
}

static int refuse(int err)
{
	errno = err;
	return -1;
}

static long machine_open(long number, struct perf_event_attr *attr, int pid, int cpu, int leader,
                         unsigned long flags)
{
	if (machine.is_real)
		return syscall(number, attr, pid, cpu, leader, flags);
	enum perf_id id = id_of(attr);
	int i = 0;

	assert_int_equal(number, SYS_perf_event_open);
	assert_true(pid == 0 && cpu == -1 && flags == PERF_FLAG_FD_CLOEXEC);
	assert_int_equal(attr->size, sizeof *attr);
	assert_true(attr->disabled == (leader < 0));
	if (machine.kernel_refusal && !(attr->exclude_kernel && attr->exclude_hv))
		return refuse(machine.kernel_refusal);
	if (machine.refusal[id])
		return refuse(machine.refusal[id]);
	if (leader >= 0 && !is_software(id) && group_size(leader) >= machine.registers)
		return refuse(EINVAL);
	if (machine.open >= machine.files)
		return refuse(EMFILE);
	while (machine.fd[i].leader)
		i++;
	machine.fd[i].id = id;
	machine.fd[i].leader = leader < 0 ? FD_FIRST + i : leader;
	machine.fd[i].is_enabled = false;
	assert_true(machine.fd[machine.fd[i].leader - FD_FIRST].leader == machine.fd[i].leader);
	machine.open++;
	return FD_FIRST + i;
}

static int machine_enable(int fd, unsigned long request, int flags)
{
	if (machine.is_real)
		return ioctl(fd, request, flags);
	assert_true(request == PERF_EVENT_IOC_ENABLE && machine.fd[fd - FD_FIRST].leader == fd);
	machine.fd[fd - FD_FIRST].is_enabled = true;
	machine.enabled_ns += 10;
	machine.running_ns += 10;
	return 0;
}

static ssize_t machine_read(int fd, void *to, size_t size)
{
	struct perf_reading r = { .count = group_size(fd), .enabled_ns = machine.enabled_ns };
	unsigned n = 0;

	if (machine.is_real)
		return read(fd, to, size);
	if (machine.is_unreadable)
		return refuse(EIO);
	assert_true(machine.fd[fd - FD_FIRST].is_enabled);
	r.running_ns = is_software(machine.fd[fd - FD_FIRST].id) ? r.enabled_ns
	               : r.count > machine.registers_free        ? 0
	                                                         : machine.running_ns;
	/* The tests open no second counter before a first: members stand in their order. */
	for (int i = 0; i < FD_MAX; i++)
		if (machine.fd[i].leader == fd)
			r.value[n++] = machine.value[machine.fd[i].id];
	if (size < offsetof(struct perf_reading, value) + n * sizeof r.value[0])
		return refuse(ENOSPC);
	memcpy(to, &r, offsetof(struct perf_reading, value) + n * sizeof r.value[0]);
	return (ssize_t)(offsetof(struct perf_reading, value) + n * sizeof r.value[0]);
}

static int machine_close(int fd)
{
	if (machine.is_real)
		return close(fd);
	assert_true(fd >= FD_FIRST && fd < FD_FIRST + FD_MAX && machine.fd[fd - FD_FIRST].leader);
	machine.fd[fd - FD_FIRST].leader = 0;
	machine.open--;
	return 0;
}

/* It offers everything. */
static int begin(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof machine);
	machine.registers = machine.registers_free = COUNTERS_COUNT;
	machine.files = FD_MAX;
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

/* Something happens: the processor counts it for a share of the time only, if that is less than the
 * time. */
static void happen(uint64_t events, uint64_t enabled_ns, uint64_t running_ns)
{
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		machine.value[i] +=
			is_software((enum perf_id)i) ? events : events * running_ns / enabled_ns;
	machine.enabled_ns += enabled_ns;
	machine.running_ns += running_ns;
}

#endif

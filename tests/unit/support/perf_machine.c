/*
 * perf_machine.c - compiles perf.c with system calls of its own. Takes the place of perf.o.
 */
#include "perf_machine.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

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

enum { FD_FIRST = 1000 };

struct perf_machine machine;

static struct {
	enum perf_id id;
	int leader; /* 0: closed */
	bool is_enabled;
} files[PERF_FD_MAX];

static bool is_software(enum perf_id id)
{
	return rows[id].type == PERF_TYPE_SOFTWARE;
}

static unsigned group_size(int leader, bool is_hardware_only)
{
	unsigned n = 0;

	for (int i = 0; i < PERF_FD_MAX; i++)
		n += files[i].leader == leader && !(is_hardware_only && is_software(files[i].id));
	return n;
}

static enum perf_id id_of(const struct perf_event_attr *attr)
{
	for (unsigned i = 0; i < PERF_COUNT; i++)
		if (rows[i].type == attr->type && rows[i].config == attr->config)
			return (enum perf_id)i;
	fail_msg("an unknown counter");
	return PERF_COUNT;
}

static int refuse(int err)
{
	errno = err;
	return -1;
}

static long machine_open(long number, struct perf_event_attr *attr, int pid, int cpu, int leader,
                         unsigned long flags)
{
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
	if (leader >= 0 && !is_software(id) && group_size(leader, true) >= machine.registers)
		return refuse(EINVAL);
	if (machine.open >= machine.files)
		return refuse(EMFILE);
	while (files[i].leader)
		i++;
	files[i].id = id;
	files[i].leader = leader < 0 ? FD_FIRST + i : leader;
	files[i].is_enabled = false;
	assert_true(files[files[i].leader - FD_FIRST].leader == files[i].leader);
	machine.open++;
	return FD_FIRST + i;
}

static int machine_enable(int fd, unsigned long request, int flags)
{
	(void)flags;
	assert_true(request == PERF_EVENT_IOC_ENABLE && files[fd - FD_FIRST].leader == fd);
	files[fd - FD_FIRST].is_enabled = true;
	machine.enabled_ns += 10;
	machine.running_ns += 10;
	return 0;
}

static ssize_t machine_read(int fd, void *to, size_t size)
{
	struct perf_reading r = { .count = group_size(fd, false),
		                  .enabled_ns = machine.enabled_ns };
	size_t length = offsetof(struct perf_reading, value) + r.count * sizeof r.value[0];

	if (machine.is_unreadable)
		return refuse(EIO);
	assert_true(files[fd - FD_FIRST].is_enabled);
	if (group_size(fd, true) <= machine.registers_free)
		r.running_ns = machine.running_ns;
	for (unsigned i = 0; i < r.count; i++)
		r.value[i] = machine.value;
	if (size < length)
		return refuse(ENOSPC);
	memcpy(to, &r, length);
	return (ssize_t)length;
}

static int machine_close(int fd)
{
	assert_true(fd >= FD_FIRST && fd < FD_FIRST + PERF_FD_MAX && files[fd - FD_FIRST].leader);
	files[fd - FD_FIRST].leader = 0;
	machine.open--;
	return 0;
}

int perf_machine_begin(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof machine);
	memset(files, 0, sizeof files);
	machine.registers = machine.registers_free = PERF_COUNT;
	machine.files = PERF_FD_MAX;
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

void perf_machine_count(uint64_t events, uint64_t enabled_ns, uint64_t running_ns)
{
	machine.value += events * running_ns / enabled_ns;
	machine.enabled_ns += enabled_ns;
	machine.running_ns += running_ns;
}

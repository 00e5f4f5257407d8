/*
 * perf.c - opens, reads and sums performance counters. Any thread, each with its own counters.
 */
#include "perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "counter.h"
#include "log/log.h"

#define PERF_READ_MISSES(cache) \
	((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
#define PERF_ROW(name_, type_, config_) { .name = #name_, .type = type_, .config = config_ },

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} rows[PERF_COUNT] = { PERF_COUNTERS(PERF_ROW) };

const char *perf_name(enum perf_id id)
{
	return rows[id].name;
}

/* ---- the group of a thread ---- */

static int event_open(enum perf_id id, bool is_user_only, int leader)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = rows[id].type,
		.config = rows[id].config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
		               PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = leader < 0, /* see group_open() */
		.exclude_kernel = is_user_only,
		.exclude_hv = is_user_only,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Closes the members before their leader: otherwise each would become a group of its own first. */
static void group_close(struct perf_thread *t)
{
	while (t->count > 0)
		close(t->fd[--t->count]);
}

/* Reads what the kernel returns for a group of that size. 0 or -errno. */
static int group_read(const struct perf_thread *t, struct perf_reading *r)
{
	size_t size = offsetof(struct perf_reading, value) + t->count * sizeof r->value[0];
	ssize_t n = read(t->fd[0], r, size);

	if (n < 0)
		return -errno;
	return (size_t)n == size && r->count == t->count ? 0 : -EIO;
}

static_assert(offsetof(struct perf_reading, value) == 3 * sizeof(uint64_t), "the kernel's layout");

/* Opens the group in the calling thread. 0, or -errno with nothing open. */
static int group_open(struct perf_thread *t, const struct perf_caps *o)
{
	int err = 0;

	t->count = 0;
	while (t->count < o->count && !err) {
		int fd = event_open(o->id[t->count], o->is_user_only, t->count ? t->fd[0] : -1);

		if (fd < 0) {
			err = fd;
		} else {
			t->id[t->count] = o->id[t->count];
			t->fd[t->count++] = fd;
		}
	}
	/* Enables the leader last: a counter that joins a running group starts only when the thread
	 * is scheduled again. */
	if (!err && ioctl(t->fd[0], PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	if (!err)
		err = group_read(t, &t->last);
	if (err)
		group_close(t);
	return err;
}

/* ---- what the machine offers ---- */

/* Opens the group of *o for a moment. Fails as well if the kernel accepts the group but never runs
 * it: another user, such as the kernel's watchdog, holds a register that it needs. 0 or -errno. */
static int group_try(const struct perf_caps *o)
{
	struct perf_thread t = { .count = 0 };
	int err = group_open(&t, o);

	if (err)
		return err;
	err = group_read(&t, &t.last);
	if (!err && o->count > 1 && t.last.enabled_ns && !t.last.running_ns)
		err = -EAGAIN;
	group_close(&t);
	return err;
}

/* Adds the counter to the group if the machine offers it and the group has room. */
static void place(struct perf_caps *o, enum perf_id id)
{
	struct perf_caps alone = { .is_user_only = o->is_user_only, .count = 1, .id = { id } };
	int err = -group_try(&alone);

	if (err) {
		o->missing[id] = err == EOPNOTSUPP || err == ENODEV || err == EINVAL ? ENOENT : err;
		return;
	}
	o->id[o->count++] = id;
	if (o->count > 1 && group_try(o)) {
		o->count--;
		o->missing[id] = ENOSPC;
	}
}

/* True if permission was missing for a counter. */
static bool place_all(struct perf_caps *o, bool is_user_only)
{
	bool is_refused = false;

	*o = (struct perf_caps){ .is_on = true, .is_user_only = is_user_only };
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		/* In user mode it could be opened, but would stay zero: all of these happen in the
		 * kernel. */
		if (is_user_only && i == PERF_context_switches)
			o->missing[i] = EACCES;
		else
			place(o, (enum perf_id)i);
		is_refused |= o->missing[i] == EACCES || o->missing[i] == EPERM;
	}
	return is_refused;
}

void perf_probe(struct perf_caps *o)
{
	if (place_all(o, false))
		place_all(o, true);
}

/* ---- messages ---- */

void perf_print_reason(const struct perf_caps *o, enum perf_id id, struct text *to)
{
	int err = o->missing[id];

	switch (err) {
	case EACCES:
		text_puts(to, "not permitted by kernel.perf_event_paranoid");
		break;
	case EPERM:
		text_puts(to,
		          "not permitted by kernel.perf_event_paranoid, or a sandbox forbids it");
		break;
	case ENOENT:
		text_puts(to, "not offered by this machine");
		break;
	case ENOSYS:
		text_puts(to, "not offered by this kernel");
		break;
	case ENOSPC:
		text_puts(to, "no free register next to the others");
		break;
	default:
		text_puts(to, strerror(err));
	}
}

void perf_log(const struct perf_caps *o)
{
	struct text line = TEXT_LOCAL(1024);

	for (unsigned i = 0; i < o->count; i++)
		text_printf(&line, "%s%s", i ? ", " : "", perf_name(o->id[i]));
	text_puts(&line, o->count == 0 ? "none" : o->is_user_only ? " (in user mode only)" : "");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		if (!o->missing[i])
			continue;
		text_printf(&line, "; missing: %s (", rows[i].name);
		perf_print_reason(o, (enum perf_id)i, &line);
		text_puts(&line, ")");
	}
	log_notice("performance counters: %s", line.data);
}

/* ---- a thread's counters ---- */

/* Relaxed: only this thread changes it, and it publishes nothing. */
static void set_on(struct perf_thread *t, bool is_on)
{
	atomic_store_explicit(&t->is_on, is_on, memory_order_relaxed);
}

int perf_open(struct perf_thread *t, const struct perf_caps *o)
{
	if (t->count || t->has_failed || o->count == 0)
		return 0;
	int err = group_open(t, o);

	t->has_failed = err != 0;
	set_on(t, !err);
	return err;
}

void perf_close(struct perf_thread *t)
{
	set_on(t, false);
	group_close(t);
	t->has_failed = false;
}

/* Adds the difference of two readings. If the group ran for a part of the time only, it is scaled
 * to all of it; if it never ran, nothing is known. */
static void add(struct perf_total *to, const struct perf_thread *t, const struct perf_reading *now)
{
	uint64_t enabled_ns = now->enabled_ns - t->last.enabled_ns,
		 running_ns = now->running_ns - t->last.running_ns;

	for (unsigned i = 0; i < t->count; i++) {
		uint64_t value = now->value[i] - t->last.value[i];

		if (running_ns && running_ns < enabled_ns)
			value = (uint64_t)((double)value * (double)enabled_ns / (double)running_ns);
		counter_add(&to->value[t->id[i]], value);
	}
}

void perf_read(struct perf_thread *t, struct perf_total *to)
{
	struct perf_reading now;
	int err = group_read(t, &now);

	if (err) {
		log_warning("performance counters: cannot read them: %s; a thread continues "
		            "without",
		            strerror(-err));
		perf_close(t);
		t->has_failed = true;
		return;
	}
	if (to)
		add(to, t, &now);
	t->last = now;
}

void perf_collect(struct perf_sum *sum, const struct perf_total *total)
{
	for (unsigned i = 0; i < PERF_COUNT; i++)
		sum->value[i] += counter_read(&total->value[i]);
}

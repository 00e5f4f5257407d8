/*
 * perf.c - opening, reading and summing up performance counters. Any thread, each with counters of
 * its own.
 */
#include "perf.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "counter.h"
#include "log/log.h"

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

#define COUNTERS_READ_MISSES(cache) \
	((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
#define COUNTERS_ROW(name_, type_, config_) { .name = #name_, .type = type_, .config = config_ },

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} rows[COUNTERS_COUNT] = { COUNTERS(COUNTERS_ROW) };

const char *perf_name(enum perf_id id)
{
	return rows[id].name;
}

static bool is_software(enum perf_id id)
{
	return rows[id].type == PERF_TYPE_SOFTWARE;
}

/* ---- groups ---- */

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

/* Members before their leader, which else would give each of them a life of its own for a moment.
 */
static void group_close(struct perf_group *g, unsigned count)
{
	while (count-- > 0)
		close(g->fd[count]);
}

/* What the kernel gives of a group with so many counters. 0 or -errno. */
static int group_read(const struct perf_group *g, struct perf_reading *r)
{
	size_t size = offsetof(struct perf_reading, value) + g->set.count * sizeof r->value[0];
	ssize_t n = read(g->fd[0], r, size);

	if (n < 0)
		return -errno;
	return (size_t)n == size && r->count == g->set.count ? 0 : -EIO;
}

static_assert(offsetof(struct perf_reading, value) == 3 * sizeof(uint64_t), "the kernel's layout");

/* Opens the set in the calling thread. The leader starts all at once in the end: what joins a group
 * that counts already would do so only when the thread is next switched to. 0, or -errno with none
 * of them open. */
static int group_open(struct perf_group *g, const struct perf_set *set, bool is_user_only)
{
	unsigned n = 0;
	int err = 0;

	g->set = *set;
	while (n < set->count && !err) {
		int fd = event_open(set->id[n], is_user_only, n ? g->fd[0] : -1);

		if (fd < 0)
			err = fd;
		else
			g->fd[n++] = fd;
	}
	if (!err && ioctl(g->fd[0], PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	if (!err)
		err = group_read(g, &g->last);
	if (err)
		group_close(g, n);
	return err;
}

/* ---- what the machine offers ---- */

/* Whether the set can be opened as one group, and is served at once: a register that somebody else
 * keeps (the kernel's watchdog) may be the one too few that opening does not tell of. 0 or -errno.
 */
static int group_try(const struct perf_set *set, bool is_user_only)
{
	struct perf_group g;
	int err = group_open(&g, set, is_user_only);

	if (err)
		return err;
	err = group_read(&g, &g.last);
	if (!err && set->count > 1 && g.last.enabled_ns && !g.last.running_ns)
		err = -EAGAIN;
	group_close(&g, set->count);
	return err;
}

/* The kernel knows nothing of the kind, or the processor's driver has no such thing. */
static bool is_no_offer(int err)
{
	return err == ENOENT || err == ENODEV || err == EOPNOTSUPP || err == EINVAL;
}

/* Into the last group, if it is of its kind and has room, or into the next. */
static void place(struct perf_caps *o, enum perf_id id)
{
	struct perf_set *next = &o->group[o->group_count];

	if (o->group_count && is_software(next[-1].id[0]) == is_software(id)) {
		struct perf_set *last = next - 1;

		last->id[last->count++] = id;
		if (group_try(last, o->is_user_only) == 0)
			return;
		last->count--;
	}
	*next = (struct perf_set){ .count = 1, .id = { id } };
	int err = group_try(next, o->is_user_only);

	o->missing[id] = is_no_offer(-err) ? ENOENT : -err;
	if (!err)
		o->group_count++;
}

static bool is_refusal(int err)
{
	return err == EACCES || err == EPERM;
}

/* True if something was refused for want of permission. */
static bool place_all(struct perf_caps *o, bool is_user_only)
{
	bool is_refused = false;

	*o = (struct perf_caps){ .is_on = true, .is_user_only = is_user_only };
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		enum perf_id id = (enum perf_id)i;

		/* It could be opened: but all of these happen in the kernel, and it would stay at
		 * zero. */
		if (is_user_only && id == COUNTERS_context_switches)
			o->missing[id] = EACCES;
		else
			place(o, id);
		is_refused |= is_refusal(o->missing[id]);
	}
	return is_refused;
}

static int read_paranoid(void)
{
	FILE *f = fopen(PARANOID_PATH, "re");
	int value;

	if (!f)
		return INT_MIN;
	if (fscanf(f, "%d", &value) != 1)
		value = INT_MIN;
	fclose(f);
	return value;
}

void perf_probe(struct perf_caps *o)
{
	if (place_all(o, false))
		place_all(o, true);
	o->paranoid = read_paranoid();
}

static void print_refusal(const struct perf_caps *o, int err, struct text *to)
{
	text_puts(to, "not permitted");
	if (o->paranoid != INT_MIN)
		text_printf(to, ": %s is %d", PARANOID_PATH, o->paranoid);
	if (err == EPERM)
		text_puts(to, ", or a sandbox forbids it");
}

void perf_print_reason(const struct perf_caps *o, enum perf_id id, struct text *to)
{
	int err = o->missing[id];

	switch (err) {
	case EACCES:
	case EPERM:
		print_refusal(o, err, to);
		break;
	case ENOENT:
		text_puts(to, "not offered by this machine");
		break;
	case ENOSYS:
		text_puts(to, "not offered by this kernel");
		break;
	default:
		text_puts(to, strerror(err));
	}
}

/* Appends the names of all for which missing is this errno. */
static void print_names(const struct perf_caps *o, int err, struct text *to)
{
	const char *before = "";

	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		if (o->missing[i] != err)
			continue;
		text_printf(to, "%s%s", before, rows[i].name);
		before = ", ";
	}
}

static bool is_first_with_its_reason(const struct perf_caps *o, unsigned id)
{
	for (unsigned i = 0; i < id; i++)
		if (o->missing[i] == o->missing[id])
			return false;
	return o->missing[id] != 0;
}

void perf_log(const struct perf_caps *o)
{
	char data[1024];
	struct text line;

	text_init(&line, data, sizeof data);
	print_names(o, 0, &line);
	if (o->group_count == 0)
		text_puts(&line, "none");
	else if (o->is_user_only)
		text_puts(&line, " (in user mode only)");
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		if (!is_first_with_its_reason(o, i))
			continue;
		text_puts(&line, "; missing: ");
		print_names(o, o->missing[i], &line);
		text_puts(&line, " (");
		perf_print_reason(o, (enum perf_id)i, &line);
		text_puts(&line, ")");
	}
	log_notice("performance counters: %s", line.data);
}

/* ---- a thread's counters ---- */

static void close_groups(struct perf_thread *t)
{
	while (t->group_count > 0) {
		struct perf_group *g = &t->group[--t->group_count];

		group_close(g, g->set.count);
	}
}

/* Relaxed: only this thread changes it, and it publishes nothing. */
static void set_on(struct perf_thread *t, bool is_on)
{
	atomic_store_explicit(&t->is_on, is_on, memory_order_relaxed);
}

int perf_open(struct perf_thread *t, const struct perf_caps *o)
{
	if (t->group_count || t->has_failed)
		return 0;
	while (t->group_count < o->group_count) {
		int err = group_open(&t->group[t->group_count], &o->group[t->group_count],
		                     o->is_user_only);

		if (err) {
			close_groups(t);
			t->has_failed = true;
			return err;
		}
		t->group_count++;
	}
	set_on(t, t->group_count > 0);
	return 0;
}

void perf_close(struct perf_thread *t)
{
	set_on(t, false);
	close_groups(t);
	t->has_failed = false;
}

static void add(struct perf_total *to, const struct perf_group *g, const struct perf_reading *now)
{
	uint64_t enabled_ns = now->enabled_ns - g->last.enabled_ns,
		 running_ns = now->running_ns - g->last.running_ns;

	for (unsigned i = 0; i < g->set.count; i++) {
		enum perf_id id = g->set.id[i];

		counter_add(&to->of[id].value, now->value[i] - g->last.value[i]);
		counter_add(&to->of[id].enabled_ns, enabled_ns);
		counter_add(&to->of[id].running_ns, running_ns);
	}
}

void perf_read(struct perf_thread *t, struct perf_total *to)
{
	for (unsigned i = 0; i < t->group_count; i++) {
		struct perf_group *g = &t->group[i];
		struct perf_reading now;
		int err = group_read(g, &now);

		if (err) {
			log_warning(
				"performance counters cannot be read: %s. A thread goes on without",
				strerror(-err));
			perf_close(t);
			t->has_failed = true;
			return;
		}
		if (to)
			add(to, g, &now);
		g->last = now;
	}
}

/* ---- summing up ---- */

void perf_collect(struct perf_sum *sum, const struct perf_total *total)
{
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		double value = (double)counter_read(&total->of[i].value);
		uint64_t enabled_ns = counter_read(&total->of[i].enabled_ns);
		/* The kernel's own always run: so they are exact even if we look in the middle of
		 * an addition. */
		uint64_t running_ns = is_software((enum perf_id)i)
		                              ? enabled_ns
		                              : counter_read(&total->of[i].running_ns);

		if (enabled_ns && !running_ns) {
			sum->of[i].unseen_ns += enabled_ns;
			continue;
		}
		if (enabled_ns > running_ns)
			value *= (double)enabled_ns / (double)running_ns;
		sum->of[i].value += value;
		sum->of[i].seen_ns += enabled_ns;
	}
}

bool perf_value(const struct perf_sum *sum, enum perf_id id, uint64_t *value)
{
	double seen_ns = (double)sum->of[id].seen_ns, unseen_ns = (double)sum->of[id].unseen_ns;

	if (unseen_ns > 0 && seen_ns <= 0)
		return false;
	*value = (uint64_t)(seen_ns > 0 ? sum->of[id].value * ((seen_ns + unseen_ns) / seen_ns)
	                                : sum->of[id].value);
	return true;
}

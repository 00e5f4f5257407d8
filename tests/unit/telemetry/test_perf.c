/*
 * test_perf.c - performance counters: what a machine offers, opening, reading, closing and sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "support/perf_machine.h"
#include "telemetry/counter.h"

/* ---- what a machine offers ---- */

static struct perf_caps probe(void)
{
	struct perf_caps o;

	perf_probe(&o);
	perf_log(&o);
	assert_true(o.is_on);
	assert_int_equal(machine.open, 0);
	return o;
}

/* The group as a string: "cycles instructions". */
static const char *group(const struct perf_caps *o)
{
	static char data[512];
	struct text t;

	text_init(&t, data, sizeof data);
	for (unsigned i = 0; i < o->count; i++)
		text_printf(&t, "%s%s", i ? " " : "", perf_name(o->id[i]));
	return data;
}

static const char *reason(const struct perf_caps *o, enum perf_id id)
{
	static char data[256];
	struct text t;

	text_init(&t, data, sizeof data);
	perf_print_reason(o, id, &t);
	return data;
}

#define SOFTWARE "task_clock_ns page_faults context_switches"

static void all_counters_are_in_one_group(void **state)
{
	(void)state;
	struct perf_caps o = probe();

	assert_string_equal(
		group(&o),
		"cycles instructions l1d_read_misses l1i_read_misses llc_read_misses " SOFTWARE);
	assert_false(o.is_user_only);
	for (unsigned i = 0; i < PERF_COUNT; i++)
		assert_int_equal(o.missing[i], 0);
}

static void counters_that_are_not_offered_are_left_out(void **state)
{
	static const int refusals[] = { ENOENT, EOPNOTSUPP, ENODEV, EINVAL };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(refusals); i++) {
		machine.refusal[PERF_cycles] = machine.refusal[PERF_l1i_read_misses] = refusals[i];
		struct perf_caps o = probe();

		assert_string_equal(group(&o),
		                    "instructions l1d_read_misses llc_read_misses " SOFTWARE);
		assert_string_equal(reason(&o, PERF_l1i_read_misses),
		                    "not offered by this machine");
		assert_string_equal(reason(&o, PERF_cycles), "not offered by this machine");
	}
	for (unsigned i = 0; i < PERF_COUNT; i++)
		machine.refusal[i] = ENOSYS;
	struct perf_caps o = probe();

	assert_int_equal(o.count, 0);
	assert_string_equal(reason(&o, PERF_page_faults), "not offered by this kernel");
	machine.files = 0;
	memset(machine.refusal, 0, sizeof machine.refusal);
	o = probe();
	assert_int_equal(o.count, 0);
	assert_string_equal(reason(&o, PERF_page_faults), strerror(EMFILE));
}

/* The kernel reports too few registers when a counter is opened, or never runs the group. */
static void counters_without_a_register_are_left_out(void **state)
{
	(void)state;
	machine.registers = 2;
	struct perf_caps o = probe();

	assert_string_equal(group(&o), "cycles instructions " SOFTWARE);
	assert_string_equal(reason(&o, PERF_llc_read_misses),
	                    "no free register next to the others");
	machine.registers = PERF_COUNT;
	machine.registers_free = 2;
	o = probe();
	assert_string_equal(group(&o), "cycles instructions " SOFTWARE);
}

static void without_permission_the_kernel_is_not_counted(void **state)
{
	(void)state;
	machine.kernel_refusal = EACCES;
	struct perf_caps o = probe();

	assert_true(o.is_user_only);
	assert_string_equal(group(&o),
	                    "cycles instructions l1d_read_misses l1i_read_misses llc_read_misses "
	                    "task_clock_ns page_faults");
	assert_string_equal(reason(&o, PERF_context_switches),
	                    "not permitted by kernel.perf_event_paranoid");
	for (unsigned i = 0; i < PERF_COUNT; i++)
		machine.refusal[i] = EPERM;
	o = probe();
	assert_int_equal(o.count, 0);
	assert_string_equal(reason(&o, PERF_cycles),
	                    "not permitted by kernel.perf_event_paranoid, or a sandbox forbids it");
	struct perf_thread t = { 0 };

	assert_int_equal(perf_open(&t, &o), 0);
	assert_false(atomic_load(&t.is_on));
	perf_look(&t, NULL);
	perf_close(&t);
}

/* ---- opening, reading, closing ---- */

static void close_all(struct perf_thread *t)
{
	perf_close(t);
	assert_false(atomic_load(&t->is_on));
	assert_int_equal(machine.open, 0);
}

/* A failure is reported once, and not tried again before the counters are closed. */
static void a_thread_without_free_descriptors_has_no_counters(void **state)
{
	(void)state;
	struct perf_caps o = probe();

	for (unsigned count = 0; count < PERF_COUNT; count++) {
		struct perf_thread t = { 0 };

		machine.files = count;
		assert_int_equal(perf_open(&t, &o), -EMFILE);
		assert_int_equal(machine.open, 0);
		assert_false(atomic_load(&t.is_on));
		machine.files = PERF_FD_MAX;
		assert_int_equal(perf_open(&t, &o), 0);
		assert_false(atomic_load(&t.is_on));
		perf_close(&t);
		assert_int_equal(perf_open(&t, &o), 0);
		assert_true(atomic_load(&t.is_on));
		assert_int_equal(machine.open, PERF_COUNT);
		assert_int_equal(perf_open(&t, &o), 0);
		assert_int_equal(machine.open, PERF_COUNT);
		close_all(&t);
	}
}

static void counters_that_cannot_be_read_are_closed(void **state)
{
	struct perf_caps o = probe();
	struct perf_thread t = { 0 };
	struct perf_total total = { 0 };

	(void)state;
	assert_int_equal(perf_open(&t, &o), 0);
	machine.is_unreadable = true;
	perf_look(&t, &total);
	assert_int_equal(machine.open, 0);
	assert_false(atomic_load(&t.is_on));
	perf_look(&t, &total);
	assert_int_equal(counter_read(&total.value[PERF_cycles]), 0);
	perf_close(&t);
	assert_int_equal(perf_open(&t, &o), -EIO);
	assert_int_equal(machine.open, 0);
}

/* ---- sums ---- */

static void only_events_between_two_readings_count(void **state)
{
	struct perf_thread t = { 0 };
	struct perf_total one = { 0 }, other = { 0 };
	struct perf_sum sum = { 0 };

	(void)state;
	perf_machine_count(1000, 1000, 1000);
	struct perf_caps o = probe();

	assert_int_equal(perf_open(&t, &o), 0);
	perf_machine_count(100, 100, 100);
	perf_look(&t, NULL);
	perf_machine_count(10, 100, 100);
	perf_look(&t, &one);
	perf_machine_count(1, 100, 100);
	perf_look(&t, &other);
	perf_machine_count(5, 100, 100);
	close_all(&t);
	perf_collect(&sum, &one);
	for (unsigned i = 0; i < PERF_COUNT; i++)
		assert_int_equal(sum.value[i], 10);
	perf_collect(&sum, &other);
	for (unsigned i = 0; i < PERF_COUNT; i++)
		assert_int_equal(sum.value[i], 11);
}

/* Another user of the registers may leave the group a part of the time only. */
static void values_are_scaled_to_the_whole_time(void **state)
{
	struct perf_thread t = { 0 };
	struct perf_total total = { 0 };
	struct perf_caps o = probe();

	(void)state;
	assert_int_equal(perf_open(&t, &o), 0);
	perf_look(&t, NULL);
	perf_machine_count(1000, 1000, 250);
	perf_look(&t, &total);
	assert_int_equal(counter_read(&total.value[PERF_cycles]), 1000);
	perf_machine_count(1000, 1000, 750);
	perf_look(&t, &total);
	assert_int_equal(counter_read(&total.value[PERF_cycles]), 2000);
	perf_machine_count(1000, 1000, 0);
	perf_look(&t, &total);
	assert_int_equal(counter_read(&total.value[PERF_cycles]), 2000);
	close_all(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_counters_are_in_one_group, perf_machine_begin),
		cmocka_unit_test_setup(counters_that_are_not_offered_are_left_out,
		                       perf_machine_begin),
		cmocka_unit_test_setup(counters_without_a_register_are_left_out,
		                       perf_machine_begin),
		cmocka_unit_test_setup(without_permission_the_kernel_is_not_counted,
		                       perf_machine_begin),
		cmocka_unit_test_setup(a_thread_without_free_descriptors_has_no_counters,
		                       perf_machine_begin),
		cmocka_unit_test_setup(counters_that_cannot_be_read_are_closed, perf_machine_begin),
		cmocka_unit_test_setup(only_events_between_two_readings_count, perf_machine_begin),
		cmocka_unit_test_setup(values_are_scaled_to_the_whole_time, perf_machine_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

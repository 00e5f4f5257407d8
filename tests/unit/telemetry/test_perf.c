/*
 * test_perf.c - performance counters: what a machine offers, what threads open and close, sums, and
 * visits; on a machine of the test's own, and on the real one, which may offer none but the
 * kernel's.
 */
#include "support/visit_harness.h"

#include "base/json.h"
#include "support/perf_machine.h"

#include <sys/mman.h>
#include <time.h>

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

/* The groups as a string: "cycles instructions | task_clock_ns". */
static const char *groups(const struct perf_caps *o)
{
	static char data[512];
	struct text t;

	text_init(&t, data, sizeof data);
	for (unsigned i = 0; i < o->group_count; i++)
		for (unsigned k = 0; k < o->group[i].count; k++)
			text_printf(&t, "%s%s",
			            k   ? " "
			            : i ? " | "
			                : "",
			            perf_name(o->group[i].id[k]));
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

static void one_group_is_the_processors_and_one_the_kernels(void **state)
{
	(void)state;
	struct perf_caps o = probe();

	assert_string_equal(
		groups(&o),
		"cycles instructions l1d_read_misses l1i_read_misses llc_read_misses | " SOFTWARE);
	assert_false(o.is_user_only);
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		assert_int_equal(o.missing[i], 0);
}

static void what_is_missing_is_left_out(void **state)
{
	static const int no[] = { ENOENT, EOPNOTSUPP, ENODEV, EINVAL };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(no); i++) {
		machine.refusal[COUNTERS_cycles] = machine.refusal[COUNTERS_l1i_read_misses] =
			no[i];
		struct perf_caps o = probe();

		assert_string_equal(groups(&o),
		                    "instructions l1d_read_misses llc_read_misses | " SOFTWARE);
		assert_string_equal(reason(&o, COUNTERS_l1i_read_misses),
		                    "not offered by this machine");
		assert_string_equal(reason(&o, COUNTERS_cycles), "not offered by this machine");
	}
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		machine.refusal[i] = ENOSYS;
	struct perf_caps o = probe();

	assert_int_equal(o.group_count, 0);
	assert_string_equal(reason(&o, COUNTERS_page_faults), "not offered by this kernel");
	machine.files = 0;
	memset(machine.refusal, 0, sizeof machine.refusal);
	o = probe();
	assert_int_equal(o.group_count, 0);
	assert_string_equal(reason(&o, COUNTERS_page_faults), strerror(EMFILE));
}

/* Whether the kernel tells when opening, or lets the group wait for ever. */
static void few_registers_make_more_groups(void **state)
{
	static const char by_two[] =
		"cycles instructions | l1d_read_misses l1i_read_misses | llc_read_misses | " SOFTWARE;

	(void)state;
	machine.registers = 2;
	struct perf_caps o = probe();

	assert_string_equal(groups(&o), by_two);
	machine.registers = COUNTERS_COUNT;
	machine.registers_free = 2;
	o = probe();
	assert_string_equal(groups(&o), by_two);
}

static void without_permission_the_kernel_is_left_out(void **state)
{
	char expected[128];
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int paranoid = INT_MIN;

	(void)state;
	snprintf(expected, sizeof expected, "not permitted");
	if (f && fscanf(f, "%d", &paranoid) == 1)
		snprintf(expected, sizeof expected,
		         "not permitted: /proc/sys/kernel/perf_event_paranoid is %d", paranoid);
	if (f)
		fclose(f);
	machine.kernel_refusal = EACCES;
	struct perf_caps o = probe();

	assert_true(o.is_user_only);
	assert_string_equal(groups(&o),
	                    "cycles instructions l1d_read_misses l1i_read_misses llc_read_misses | "
	                    "task_clock_ns page_faults");
	assert_string_equal(reason(&o, COUNTERS_context_switches), expected);
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		machine.refusal[i] = EPERM;
	o = probe();
	assert_int_equal(o.group_count, 0);
	strcat(expected, ", or a sandbox forbids it");
	assert_string_equal(reason(&o, COUNTERS_cycles), expected);
	struct perf_thread t = { 0 };

	assert_int_equal(perf_open(&t, &o), 0);
	assert_false(atomic_load(&t.is_on));
	perf_look(&t, NULL);
	perf_close(&t);
}

static void close_all(struct perf_thread *t)
{
	perf_close(t);
	assert_false(atomic_load(&t->is_on));
	assert_int_equal(machine.open, 0);
}

/* ---- opening, reading, closing ---- */

static void a_thread_without_files_goes_without_counters(void **state)
{
	(void)state;
	machine.registers = 2;
	struct perf_caps o = probe();

	for (unsigned files = 0; files < COUNTERS_COUNT; files++) {
		struct perf_thread t = { 0 };

		machine.files = files;
		assert_int_equal(perf_open(&t, &o), -EMFILE);
		assert_int_equal(machine.open, 0);
		assert_false(atomic_load(&t.is_on));
		machine.files = FD_MAX;
		assert_int_equal(perf_open(&t, &o), 0); /* said once, and not tried again ... */
		assert_false(atomic_load(&t.is_on));
		perf_close(&t);
		assert_int_equal(perf_open(&t, &o),
		                 0); /* ... until counters are turned off and on */
		assert_true(atomic_load(&t.is_on));
		assert_int_equal(machine.open, COUNTERS_COUNT);
		assert_int_equal(perf_open(&t, &o), 0);
		assert_int_equal(machine.open, COUNTERS_COUNT);
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
	assert_int_equal(counter_read(&total.of[COUNTERS_cycles].value), 0);
	perf_close(&t);
	assert_int_equal(perf_open(&t, &o), -EIO);
	assert_int_equal(machine.open, 0);
}

/* ---- summing up ---- */

static uint64_t value_of(const struct perf_total *totals, unsigned count, enum perf_id id)
{
	struct perf_sum sum = { 0 };
	uint64_t value;

	for (unsigned i = 0; i < count; i++)
		perf_collect(&sum, &totals[i]);
	assert_true(perf_value(&sum, id, &value));
	return value;
}

static void only_what_happens_between_two_looks_counts(void **state)
{
	struct perf_thread t = { 0 };
	struct perf_total one = { 0 }, other = { 0 };

	(void)state;
	happen(1000, 1000, 1000);
	struct perf_caps o = probe();

	assert_int_equal(perf_open(&t, &o), 0);
	happen(100, 100, 100);
	perf_look(&t, NULL);
	happen(10, 100, 100);
	perf_look(&t, &one);
	happen(1, 100, 100);
	perf_look(&t, &other);
	happen(5, 100, 100);
	close_all(&t);
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		assert_int_equal(value_of(&one, 1, (enum perf_id)i), 10);
		assert_int_equal(value_of(&other, 1, (enum perf_id)i), 1);
	}
}

/* A group of the processor's counts for a share of the time only; the sum is of the whole time,
 * each thread by its own share. */
static void groups_that_take_turns_are_scaled_up(void **state)
{
	struct perf_thread t = { 0 };
	struct perf_total totals[3] = { 0 };
	struct perf_caps o = probe();

	(void)state;
	assert_int_equal(perf_open(&t, &o), 0);
	perf_look(&t, NULL);
	happen(1000, 1000, 250);
	perf_look(&t, &totals[0]);
	happen(1000, 1000, 750);
	perf_look(&t, &totals[0]);
	assert_int_equal(counter_read(&totals[0].of[COUNTERS_cycles].value), 1000);
	assert_int_equal(value_of(totals, 1, COUNTERS_cycles), 2000);
	assert_int_equal(value_of(totals, 1, COUNTERS_page_faults), 2000);
	happen(6000, 2000, 1000);
	perf_look(&t, &totals[1]);
	assert_int_equal(value_of(totals, 2, COUNTERS_llc_read_misses), 8000);
	/* On another thread it was never its turn, for as long as on both together: all that is
	 * known is what those did. */
	happen(40, 4000, 0);
	perf_look(&t, &totals[2]);
	assert_int_equal(value_of(totals, 3, COUNTERS_cycles), 16000);
	assert_int_equal(value_of(totals, 3, COUNTERS_page_faults), 8040);
	struct perf_sum alone = { 0 };
	uint64_t value;

	perf_collect(&alone, &totals[2]);
	assert_false(perf_value(&alone, COUNTERS_cycles, &value));
	assert_true(perf_value(&alone, COUNTERS_page_faults, &value));
	assert_int_equal(value, 40);
	close_all(&t);
	/* What was never served has counted nothing, and that is known. */
	assert_int_equal(value_of(&(struct perf_total){ 0 }, 1, COUNTERS_cycles), 0);
}

/* ---- visits ---- */

static void begin_counting(uint32_t pass_through)
{
	struct conf conf;

	conf_init(&conf, "cohort");
	conf.scheduler.counters = CONF_YES;
	for (unsigned i = 0; i < STAGES; i++)
		conf.stage[i].pass_through = pass_through >> i & 1 ? CONF_YES : CONF_NO;
	begin_test(&conf);
	/* The offer is in the schedule; the test's own thread is the worker's. */
	assert_true(atomic_load(&worker(0)->schedule)->counters.is_on);
}

static void end_counting(void)
{
	close_all(&worker(0)->counting);
	end_test();
}

static uint64_t counted(unsigned stage_index, enum perf_id id)
{
	return value_of(&worker(0)->counted[stage_index], 1, id);
}

static void spend_before(struct visit *v, unsigned stage_index, unsigned number)
{
	static const uint64_t cost[STAGES] = { [A] = 1, [B] = 100, [C] = 10000 };

	(void)v;
	(void)number;
	happen(cost[stage_index], 10, 10);
}

static void spend_after(unsigned stage_index)
{
	spend_before(NULL, stage_index, 0);
}

static void visit_all(void)
{
	for (unsigned i = 0; i < STAGES; i++) {
		happen(1000000, 10, 10); /* of nobody's */
		visit_stage(worker(0), stage(i));
		happen(1000000, 10, 10);
	}
}

/* In whatever way stages are joined, and in batches: what happens before and after sending is the
 * sender's, what happens in between the receiver's, if it is called directly. */
static void each_event_is_counted_once_and_for_its_stage(void **state)
{
	static const uint32_t joined[] = { 0, 1 << C, 1 << B, 1 << B | 1 << C };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(joined); i++) {
		begin_counting(joined[i]);
		during.call = spend_before;
		during.left = EVENTS_MAX;
		during.after = spend_after;
		push_range(A, 0, 6);
		visit_all();
		assert_true(items[5].has_ended);
		for (unsigned id = 0; id < COUNTERS_COUNT; id++) {
			assert_int_equal(counted(A, (enum perf_id)id), 12);
			assert_int_equal(counted(B, (enum perf_id)id), 1200);
			assert_int_equal(counted(C, (enum perf_id)id), 120000);
		}
		end_counting();
	}
}

static void counters_come_and_go_with_the_schedule(void **state)
{
	struct schedule off, on;

	(void)state;
	begin_counting(0);
	on = *atomic_load(&worker(0)->schedule);
	off = on;
	off.counters = (struct perf_caps){ 0 };
	assert_int_equal(machine.open, COUNTERS_COUNT);
	assert_int_equal(worker_adopt(worker(0), &off), 0);
	assert_int_equal(machine.open, 0);
	during.call = spend_before;
	during.left = 2;
	push(A, 0);
	visit_stage(worker(0), stage(A));
	assert_int_equal(counted(A, COUNTERS_cycles), 0);
	assert_int_equal(worker_adopt(worker(0), &on), 0);
	assert_int_equal(machine.open, COUNTERS_COUNT);
	push(A, 1);
	visit_stage(worker(0), stage(A));
	assert_int_equal(counted(A, COUNTERS_cycles), 1);
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	assert_string_equal(served(), "a0 a1 b0 b1 c0 c1");
	end_counting();
}

static void stats_say_what_is_counted_and_what_is_missing(void **state)
{
	static char data[16384];
	struct text t;
	struct json j;

	(void)state;
	machine.refusal[COUNTERS_l1d_read_misses] = machine.refusal[COUNTERS_l1i_read_misses] =
		ENOENT;
	machine.refusal[COUNTERS_llc_read_misses] = ENOENT;
	begin_counting(0);
	during.call = spend_before;
	during.left = 1;
	push(A, 0);
	visit_all();
	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	graph_stats_json(graph, &j);
	json_object_end(&j);
	assert_false(t.overflowed);
	assert_non_null(strstr(
		data,
		"\"counters\":{\"available\":[\"cycles\",\"instructions\",\"task_clock_ns\",\"page_faults\","
		"\"context_switches\"],\"missing\":{\"l1d_read_misses\":\"not offered by this machine\","
		"\"l1i_read_misses\":\"not offered by this machine\","
		"\"llc_read_misses\":\"not offered by this machine\"},\"user_only\":false,\"threads\":1}"));
	assert_non_null(strstr(
		data,
		"\"counters\":{\"cycles\":1,\"instructions\":1,\"task_clock_ns\":1,\"page_faults\":1,"
		"\"context_switches\":1}"));
	end_counting();
}

/* ---- the real machine ---- */

enum { PAGES = 300 };

static void touch_pages(struct visit *v, unsigned stage_index, unsigned number)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
	                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct timespec moment = { .tv_nsec = 1000000 };

	(void)v;
	(void)stage_index;
	(void)number;
	assert_true(memory != MAP_FAILED);
	madvise((char *)(uintptr_t)memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
	munmap((char *)(uintptr_t)memory, PAGES * page);
	nanosleep(&moment, NULL);
}

static void the_kernel_counts_what_a_visit_does(void **state)
{
	(void)state;
	machine.is_real = true;
	begin_counting(1 << C);
	const struct perf_caps *o = &atomic_load(&worker(0)->schedule)->counters;
	bool is_offered = !o->missing[COUNTERS_page_faults],
	     has_switches = !o->missing[COUNTERS_context_switches];

	push(B, 0);
	during.call = touch_pages;
	during.left = 1; /* in b, which calls c */
	for (unsigned i = 0; i < 20; i++)
		touch_pages(NULL, 0, 0); /* of nobody's */
	visit_stage(worker(0), stage(B));
	if (is_offered) {
		/* Sanitizers have pages of their own behind ours. */
		assert_in_range(counted(B, COUNTERS_page_faults), PAGES, 10 * PAGES);
		assert_in_range(counted(C, COUNTERS_page_faults), 0, PAGES - 1);
		assert_in_range(counted(B, COUNTERS_task_clock_ns), 1000, NS_PER_S);
	}
	if (has_switches)
		assert_in_range(counted(B, COUNTERS_context_switches), 1, PAGES);
	if (!o->missing[COUNTERS_cycles])
		assert_in_range(counted(B, COUNTERS_instructions), PAGES, UINT64_C(1) << 40);
	end_counting();
	if (!is_offered)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_group_is_the_processors_and_one_the_kernels, begin),
		cmocka_unit_test_setup(what_is_missing_is_left_out, begin),
		cmocka_unit_test_setup(few_registers_make_more_groups, begin),
		cmocka_unit_test_setup(without_permission_the_kernel_is_left_out, begin),
		cmocka_unit_test_setup(a_thread_without_files_goes_without_counters, begin),
		cmocka_unit_test_setup(counters_that_cannot_be_read_are_closed, begin),
		cmocka_unit_test_setup(only_what_happens_between_two_looks_counts, begin),
		cmocka_unit_test_setup(groups_that_take_turns_are_scaled_up, begin),
		cmocka_unit_test_setup(each_event_is_counted_once_and_for_its_stage, begin),
		cmocka_unit_test_setup(counters_come_and_go_with_the_schedule, begin),
		cmocka_unit_test_setup(stats_say_what_is_counted_and_what_is_missing, begin),
		cmocka_unit_test_setup(the_kernel_counts_what_a_visit_does, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

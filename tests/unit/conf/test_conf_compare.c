/*
 * test_conf_compare.c - one key changed in a configuration, live keys copied from another, the
 * report of live keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_compare.h"
#include "conf/conf_source.h"
#include "conf/stage_table.h"

enum { SOURCE = 0, BLUR = 1 };

unsigned stage_table_count(void)
{
	return 2;
}

const char *stage_table_name(unsigned index)
{
	return index == SOURCE ? "accept_read" : "blur";
}

bool stage_table_is_source(unsigned index)
{
	return index == SOURCE;
}

static struct conf conf, next;
static struct text report;

static void clear_report(void)
{
	text_fini(&report);
	text_init_growable(&report, 1 << 16);
}

/* Both configurations have the defaults. */
static int begin(void **state)
{
	(void)state;
	clear_report();
	if (conf_load(&conf, NULL, NULL, NULL, 0, &report))
		return -1;
	next = conf;
	return 0;
}

static int end(void **state)
{
	(void)state;
	text_fini(&report);
	return 0;
}

static int set(struct conf *c, const char *setting)
{
	struct conf_source source;
	int err = conf_change(c, &source, setting, &report);

	conf_source_fini(&source);
	return err;
}

static void change(struct conf *c, const char *setting)
{
	assert_int_equal(set(c, setting), 0);
	assert_string_equal(report.data, "");
}

static void refuse(const char *setting, const char *expected)
{
	clear_report();
	assert_int_equal(set(&next, setting), -22);
	assert_string_equal(report.data, expected);
	assert_memory_equal(&next, &conf, sizeof conf);
}

static void one_key_changes(void **state)
{
	(void)state;
	change(&next, "scheduler.policy = mg1");
	assert_string_equal(next.scheduler.policy, "mg1");
	change(&next, "experiment.blur.threshold_events=7");
	assert_int_equal(next.stage[BLUR].threshold_events, 7);
	change(&next, "variant.thumb.quality=5");
	assert_int_equal(next.variant[1].quality, 5);
	assert_int_equal(next.variant_count, 3);
}

static void a_wrong_change_changes_nothing(void **state)
{
	(void)state;
	refuse("scheduler.threads=0",
	       "scheduler.threads=0: expected auto or a whole number from 1 to 256\n");
	refuse("scheduler.polici=mg1",
	       "scheduler.polici=mg1: unknown key; did you mean policy? CHANGES.md names former keys\n");
	refuse("sheduler.policy=mg1",
	       "sheduler.policy=mg1: unknown section; did you mean scheduler?\n");
	refuse("policy=mg1", "\"policy=mg1\": expected SECTION.KEY=VALUE\n");
	refuse("scheduler.policy", "\"scheduler.policy\": expected SECTION.KEY=VALUE\n");
	refuse("", "\"\": expected SECTION.KEY=VALUE\n");
	refuse("variant.Big.quality=3",
	       "variant.Big.quality=3: expected a variant's name in lower case: it becomes part of "
	       "URLs\n");
	refuse("server.control=here",
	       "server.control=here: expected auto, an absolute path of at most 107 bytes, or nothing\n");
}

static void live_keys_are_copied(void **state)
{
	(void)state;
	assert_int_equal(conf_take_live(&conf, &next, &report), 0);
	change(&next, "scheduler.policy=dbr");
	change(&next, "scheduler.service=gated");
	change(&next, "experiment.blur.discipline=lcfs");
	change(&next, "log.level=debug");
	assert_int_equal(conf_take_live(&conf, &next, &report), 4);
	assert_string_equal(report.data, "");
	assert_memory_equal(&conf, &next, sizeof conf);
}

static void other_keys_are_named(void **state)
{
	struct conf before;

	(void)state;
	change(&next, "scheduler.policy=dbr");
	before = next;
	change(&next, "server.listen=127.0.0.1:1");
	change(&next, "limits.memory_budget=2G");
	change(&next, "stage.accept_read.threads=3"); /* each has a listener */
	change(&next, "experiment.blur.kind=exclusive");
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_string_equal(
		report.data,
		"server.listen\nlimits.memory_budget\nstage.accept_read.threads\nexperiment.blur."
		"kind\n");
	assert_memory_equal(&conf, &before, sizeof conf);
}

static void variants_are_copied_together(void **state)
{
	(void)state;
	change(&next, "variant.blurred.quality=1");
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_memory_equal(&conf, &next, sizeof conf);
	change(&next, "variant.new.operations=blur 3");
	memcpy(next.variant[0].name, "other", 6);
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_memory_equal(&conf, &next, sizeof conf);
	next.variant[--next.variant_count] = (struct conf_variant){ 0 };
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_int_equal(conf.variant_count, 3);
	assert_string_equal(report.data, "");
}

static void groups_are_copied_together(void **state)
{
	(void)state;
	change(&next, "group.pixels.stages=scale blur");
	change(&next, "group.pixels.threads=2");
	assert_string_equal(next.group[0].policy, "drain");
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_memory_equal(&conf, &next, sizeof conf);
	change(&next, "group.pixels.policy=mg1");
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_int_equal(next.group_count, 1);
	conf_print_live(&conf, &report);
	assert_string_equal(report.data, "policy drain, group.pixels.stages = scale blur, "
	                                 "group.pixels.policy = mg1, group.pixels.threads = 2");
	clear_report();
	change(&next, "group.pixels.threads=3");
	change(&next, "group.more.stages=jpeg_encode");
	assert_int_equal(conf_diff(&next, &conf, "file", &report), 2);
	assert_int_equal(conf_diff(&conf, &next, "file", &report), 2);
	assert_string_equal(report.data, "  group.pixels.threads = 3 (file: 2)\n"
	                                 "  group.more (file: it is not there)\n"
	                                 "  group.pixels.threads = 2 (file: 3)\n"
	                                 "  no group.more (file: it is there)\n");
	next.group_count = 0;
	assert_int_equal(conf_take_live(&conf, &next, &report), 1);
	assert_int_equal(conf.group_count, 0);
}

static void active_keys_are_reported_in_one_line(void **state)
{
	(void)state;
	conf_print_live(&conf, &report);
	assert_string_equal(report.data, "policy drain");
	clear_report();
	change(&conf, "scheduler.policy=seda");
	change(&conf, "scheduler.service=n-gated");
	change(&conf, "experiment.cutoff=1500us");
	change(&conf, "scheduler.threads=3");
	change(&conf, "stage.blur.threads=5");
	change(&conf, "limits.memory_budget=5G"); /* not live */
	change(&conf, "limits.pixels=5M");
	conf_print_live(&conf, &report);
	assert_string_equal(
		report.data,
		"policy seda, limits.pixels = 5M, scheduler.threads = 3, scheduler.service = n-gated, "
		"stage.blur.threads = 5, experiment.cutoff = 1500us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_key_changes, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_change_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(live_keys_are_copied, begin, end),
		cmocka_unit_test_setup_teardown(other_keys_are_named, begin, end),
		cmocka_unit_test_setup_teardown(variants_are_copied_together, begin, end),
		cmocka_unit_test_setup_teardown(groups_are_copied_together, begin, end),
		cmocka_unit_test_setup_teardown(active_keys_are_reported_in_one_line, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_check_all.c - checks across keys: what contradicts, and where it is reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "daemon/check_all.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "sched/core/graph.h"
#include "support/conf_fixture.h"

/* ---- a graph with the stages of the fixture ---- */

static unsigned poll_nothing(struct visit *v, bool may_block)
{
	(void)v;
	(void)may_block;
	return 0;
}

static const struct stage_class source = { .name = "accept_read",
	                                   .kind = STAGE_PARTITIONED,
	                                   .poll = poll_nothing };
static const struct stage_class parse = { .name = "http_parse",
	                                  .kind = STAGE_SHARED,
	                                  .pass_through = true };
static const struct stage_class blur = { .name = "blur", .kind = STAGE_SHARED };
static const struct stage_class disk = { .name = "disk_write", .kind = STAGE_SHARED };

const struct graph_row graph_rows[] = {
	{ .class = &source, .group = GROUP_IO },
	{ .class = &parse, .group = GROUP_IO },
	{ .class = &blur, .group = GROUP_MAIN },
	{ .class = &disk, .group = GROUP_DISK },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

/* ---- a program that refuses operations with the word "refused" ---- */

int program_check_variants(const struct conf *conf, unsigned *variant, char *error,
                           size_t error_size)
{
	for (unsigned i = 0; i < conf->variant_count; i++) {
		if (!strstr(conf->variant[i].operations, "refused"))
			continue;
		*variant = i;
		snprintf(error, error_size, "variant.%s: operations: expected others",
		         conf->variant[i].name);
		return -22;
	}
	return 0;
}

static int check_options(struct options *o, bool check_files, struct conf *conf)
{
	conf_clear_errors();
	return check_load(o, check_files, conf, &conf_errors);
}

static int check_file(const char *ini, struct conf *conf)
{
	struct options o = { .config_path = conf_path };

	conf_write_file(ini, strlen(ini));
	return check_options(&o, false, conf);
}

static int check_override(const char *override, struct conf *conf)
{
	struct options o = { .overrides = &override, .override_count = 1 };

	return check_options(&o, false, conf);
}

static void accept_file(const char *ini)
{
	static struct conf conf;

	assert_int_equal(check_file(ini, &conf), 0);
	assert_errors("");
}

static void accept_override(const char *override)
{
	static struct conf conf;

	assert_int_equal(check_override(override, &conf), 0);
	assert_errors("");
}

static void reject_file(const char *ini, const char *expected)
{
	static struct conf conf;

	assert_int_equal(check_file(ini, &conf), -22);
	assert_errors(expected);
}

static void reject_override(const char *override, const char *expected)
{
	static struct conf conf;

	assert_int_equal(check_override(override, &conf), -22);
	assert_errors(expected);
}

/* ---- variants ---- */

static void a_configuration_needs_a_variant(void **state)
{
	(void)state;
	reject_file("", "@: no variant: expected at least one section [variant.NAME]\n");
}

static void a_variant_needs_operations(void **state)
{
	(void)state;
	reject_file("[variant.a]\nquality = 3\n",
	            "@:1: [variant.a]: has no operations: expected for example operations = scale "
	            "800x800 inside\n");
	reject_file("[variant.a]\noperations =\n",
	            "@:2: variant.a.operations = \"\": expected text of at least one and at most "
	            "255 bytes\n");
	reject_override("variant.new.quality=3",
	                "-o variant.new.quality=3: has no operations: expected for example "
	                "operations = scale 800x800 inside\n");
}

static void the_program_checks_operations(void **state)
{
	(void)state;
	reject_file(VARIANT "[variant.b]\noperations = refused\n",
	            "@:4: variant.b: operations: expected others\n");
	reject_override("variant.thumb.operations=refused",
	                "-o variant.thumb.operations=refused: variant.thumb: operations: expected "
	                "others\n");
}

static void originals_need_their_name(void **state)
{
	(void)state;
	reject_file("[variant.original]\noperations = blur 1\n",
	            "@:1: [variant.original]: original.jpg is the uploaded file: expected another "
	            "name\n");
}

/* ---- degradation ---- */

#define TWO VARIANT "[variant.other]\noperations = blur 1\n"

static void a_skipped_variant_must_exist(void **state)
{
	(void)state;
	accept_file(TWO "[overload]\ndegrade = quality 65, skip other\n");
	reject_file(TWO "[overload]\ndegrade = quality 65, skip othr\n",
	            "@:6: overload.degrade = \"quality 65, skip othr\": skip othr: expected one of "
	            "the variants a, other\n");
}

static void a_variant_must_remain(void **state)
{
	(void)state;
	reject_file(TWO "[overload]\ndegrade = skip a, skip other\n",
	            "@:6: overload.degrade = \"skip a, skip other\": all variants would be "
	            "skipped: expected at least one that remains\n");
}

static void backfill_needs_the_originals(void **state)
{
	(void)state;
	reject_file(TWO "[overload]\ndegrade = skip other\nbackfill = yes\n"
	                "[server]\nkeep_originals = no\n",
	            "@:7: overload.backfill = \"yes\": variants are made from the originals: "
	            "expected no, or server.keep_originals = yes\n");
	accept_file(TWO "[overload]\ndegrade = skip other\nbackfill = yes\n");
}

static void degradation_needs_a_controller(void **state)
{
	(void)state;
	reject_file(VARIANT "[overload]\ndegrade = no-optimize\ncontroller = off\n",
	            "@:4: overload.degrade = \"no-optimize\": the controller measures the load: "
	            "expected another overload.controller than off\n");
	accept_file(VARIANT "[overload]\ncontroller = off\n");
}

/* ---- stages and schedule ---- */

/* threads may be set under any policy, because the policy can change while the daemon runs. */
static void pools_have_at_most_256_threads_together(void **state)
{
	(void)state;
	accept_file(VARIANT "[stage.blur]\nthreads = 256\n");
	accept_file(VARIANT "[stage.blur]\nthreads = 256\n[scheduler]\npolicy = seda\n");
	reject_file(
		VARIANT
		"[stage.blur]\nthreads = 256\n"
		"[stage.http_parse]\nthreads = 1\n[experiment.http_parse]\npass_through = no\n"
		"[scheduler]\npolicy = seda\n",
		"@:10: scheduler.policy = \"seda\": the stages' pools have more than 256 threads "
		"together: expected less in stage.NAME.threads\n");
}

static void a_source_has_a_queue_and_one_thread_per_loop(void **state)
{
	(void)state;
	reject_file(
		VARIANT "[experiment.accept_read]\npass_through = yes\n",
		"@:4: experiment.accept_read.pass_through = \"yes\": expected no: events enter the "
		"graph at this stage\n");
	reject_override(
		"experiment.accept_read.kind=shared",
		"-o experiment.accept_read.kind=shared: expected exclusive or partitioned: an "
		"event loop belongs to one thread\n");
	accept_override("experiment.accept_read.kind=exclusive");
	reject_file(
		"[scheduler]\npolicy = thread-per-connection\n"
		"[experiment.accept_read]\nkind = exclusive\n" VARIANT,
		"@:2: scheduler.policy = \"thread-per-connection\": each of its threads needs "
		"an instance of the source: expected experiment.accept_read.kind = partitioned\n");
}

#define TWO_QUEUES "[experiment.http_parse]\npass_through = no\n"

static void groups_divide_the_stages(void **state)
{
	(void)state;
	accept_file(VARIANT TWO_QUEUES "[group.a]\nstages = blur\npolicy = mg1\nthreads = 1\n");
	reject_file(
		VARIANT "[group.a]\nstages = http_parse blurr\n",
		"@:4: group.a.stages = \"http_parse blurr\": blurr is not a stage; did you mean "
		"blur?\n");
	reject_file(VARIANT "[group.a]\nstages = blur\n[group.b]\nstages = http_parse blur\n",
	            "@:6: group.b.stages = \"http_parse blur\": blur is named twice: expected each "
	            "stage in one group\n");
	reject_file(VARIANT "[group.a]\npolicy = mg1\n",
	            "@:3: [group.a]: has no stages: expected for example stages = scale blur\n");
	reject_file("[layout]\nmode = replicate\n" VARIANT TWO_QUEUES "[group.a]\nstages = blur\n",
	            "@:7: [group.a]: several groups need layout.mode = shared\n");
	reject_file("[scheduler]\npolicy = thread-per-connection\n" VARIANT TWO_QUEUES
	            "[group.a]\nstages = blur\n",
	            "@:7: [group.a]: scheduler.policy = thread-per-connection calls the stages of "
	            "all groups: expected another policy\n");
	reject_override("group.a.policy=mg1",
	                "-o group.a.policy=mg1: has no stages: expected for example stages = scale "
	                "blur\n");
	reject_override("group.a.b.policy=mg1",
	                "-o group.a.b.policy=mg1: expected group.NAME with at most 31 of a-z, 0-9, "
	                "'_' and '-'\n");
}

static void thread_per_connection_needs_the_shared_layout(void **state)
{
	(void)state;
	reject_file("[scheduler]\npolicy = thread-per-connection\n"
	            "[layout]\nmode = replicate\n" VARIANT,
	            "@:4: layout.mode = \"replicate\": scheduler.policy = thread-per-connection: "
	            "expected layout.mode = shared\n");
}

static void only_a_source_has_instances(void **state)
{
	(void)state;
	reject_file(
		VARIANT "[experiment.blur]\nkind = partitioned\n",
		"@:4: experiment.blur.kind = \"partitioned\": expected shared or exclusive: only "
		"accept_read has instances\n");
}

/* An exclusive stage has a queue under every policy. */
static void an_exclusive_stage_cannot_be_called_directly(void **state)
{
	(void)state;
	accept_override("experiment.blur.kind=exclusive");
	accept_override("experiment.http_parse.kind=exclusive");
	accept_file(VARIANT "[experiment.blur]\nkind = exclusive\n"
	                    "[scheduler]\npolicy = thread-per-connection\n");
	reject_file(
		VARIANT "[experiment.blur]\nkind = exclusive\npass_through = yes\n",
		"@:4: experiment.blur.kind = \"exclusive\": pass_through = yes lets any thread call "
		"it at any time: expected shared, or pass_through = no\n");
}

static void parts_need_costs(void **state)
{
	(void)state;
	reject_file(
		VARIANT "[layout]\nmode = partition\nparts = 1\n",
		"@:4: layout.mode = \"partition\": expected layout.profile with the costs of the "
		"stages (ctl profile, scripts/partition), or layout.online = yes\n");
	accept_file(VARIANT "[layout]\nmode = partition\nparts = 1\nonline = yes\n");
}

/* ---- limits ---- */

static void a_body_fits_into_half_of_the_budget(void **state)
{
	(void)state;
	reject_override("limits.body_bytes=513M",
	                "-o limits.body_bytes=513M: bodies get at most half of "
	                "limits.memory_budget = 1G, and limits.body_bytes = 513M is more: expected "
	                "less or a larger budget\n");
	accept_override("limits.body_bytes=512M");
	reject_override("limits.memory_budget=500M",
	                "-o limits.memory_budget=500M: bodies get at most half of "
	                "limits.memory_budget = 500M, and limits.body_bytes = 256M is more: "
	                "expected less or a larger budget\n");
}

/* ---- files ---- */

static void files_are_checked_on_request(void **state)
{
	static const char *const overrides[] = { "access.tokens_file=/nonexistent/tokens" };
	static const char *const profile[] = { "layout.mode=partition", "layout.parts=1",
		                               "layout.profile=/nonexistent/profile" };
	const char *copy[COUNT_OF(profile)];
	struct options o = { .overrides = copy };
	static struct conf conf;

	(void)state;
	memcpy(copy, overrides, sizeof overrides);
	o.override_count = COUNT_OF(overrides);
	assert_int_equal(check_options(&o, false, &conf), 0);
	assert_int_equal(check_options(&o, true, &conf), -2);
	assert_errors("access.tokens_file = /nonexistent/tokens: No such file or directory\n");
	memcpy(copy, profile, sizeof profile);
	o.override_count = COUNT_OF(profile);
	assert_int_equal(check_options(&o, false, &conf), 0);
	assert_int_equal(check_options(&o, true, &conf), -2);
	assert_errors("-o layout.profile=/nonexistent/profile: /nonexistent/profile: cannot be "
	              "read: No such file or directory\n");
}

/* ---- all together ---- */

static void everything_is_reported_in_one_run(void **state)
{
	(void)state;
	reject_file(
		"[server]\nlisten = foo\nnonsense\nroot = /a#b\n[limitz]\nparts = 0\n"
		"[limits]\nparts = 0\n"
		"[experiment.blur]\nthreads_max = 3\npass_through = yes\nkind = exclusive\n"
		"[variant.x]\n",
		"@:3: \"nonsense\": expected KEY = VALUE, [SECTION] or a comment\n"
		"@:4: \"root = /a#b\": expected double quotation marks around a value with ';' "
		"or '#', or a space before a comment\n"
		"@:2: server.listen = \"foo\": expected HOST:PORT or [HOST]:PORT\n"
		"@:5: [limitz]: unknown section; did you mean limits?\n"
		"@:8: limits.parts = \"0\": expected a whole number from 1 to 10000\n"
		"@:12: experiment.blur.kind = \"exclusive\": pass_through = yes lets any thread call "
		"it at any time: expected shared, or pass_through = no\n"
		"@:13: [variant.x]: has no operations: expected for example operations = scale "
		"800x800 inside\n");
}

/* ---- changes ---- */

static void a_change_is_checked_with_the_other_keys(void **state)
{
	static struct conf conf, before;

	(void)state;
	assert_int_equal(check_override("experiment.blur.kind=exclusive", &conf), 0);
	before = conf;
	assert_int_equal(check_change("experiment.blur.pass_through=yes", &conf, &conf_errors),
	                 -22);
	assert_errors(
		"experiment.blur.pass_through=yes: pass_through = yes lets any thread call it at "
		"any time: expected shared, or pass_through = no\n");
	conf_clear_errors();
	assert_int_equal(check_change("variant.big.quality=3", &conf, &conf_errors), -22);
	assert_errors("variant.big.quality=3: has no operations: expected for example operations = "
	              "scale 800x800 inside\n");
	conf_clear_errors();
	assert_int_equal(check_change("nonsense", &conf, &conf_errors), -22);
	assert_errors("\"nonsense\": expected SECTION.KEY=VALUE\n");
	assert_memory_equal(&conf, &before, sizeof conf);
	conf_clear_errors();
	assert_int_equal(check_change("limits.parts=7", &conf, &conf_errors), 0);
	assert_int_equal(conf.limits.parts, 7);
}

/* A reload merges live keys into the running configuration: then the keys have no places. */
static void a_merged_configuration_is_checked_without_places(void **state)
{
	static struct conf conf;
	const struct check check = { .source = NULL };

	(void)state;
	assert_int_equal(check_override("limits.parts=7", &conf), 0);
	assert_int_equal(check_all(&check, &conf, &conf_errors), 0);
	conf.limits.body_bytes = conf.limits.memory_budget;
	assert_int_equal(check_all(&check, &conf, &conf_errors), -22);
	assert_errors("limits.memory_budget: bodies get at most half of limits.memory_budget = 1G, "
	              "and limits.body_bytes = 1G is more: expected less or a larger budget\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_needs_a_variant),
		cmocka_unit_test(a_variant_needs_operations),
		cmocka_unit_test(the_program_checks_operations),
		cmocka_unit_test(originals_need_their_name),
		cmocka_unit_test(a_skipped_variant_must_exist),
		cmocka_unit_test(a_variant_must_remain),
		cmocka_unit_test(degradation_needs_a_controller),
		cmocka_unit_test(backfill_needs_the_originals),
		cmocka_unit_test(pools_have_at_most_256_threads_together),
		cmocka_unit_test(a_source_has_a_queue_and_one_thread_per_loop),
		cmocka_unit_test(groups_divide_the_stages),
		cmocka_unit_test(thread_per_connection_needs_the_shared_layout),
		cmocka_unit_test(only_a_source_has_instances),
		cmocka_unit_test(an_exclusive_stage_cannot_be_called_directly),
		cmocka_unit_test(parts_need_costs),
		cmocka_unit_test(a_body_fits_into_half_of_the_budget),
		cmocka_unit_test(files_are_checked_on_request),
		cmocka_unit_test(everything_is_reported_in_one_run),
		cmocka_unit_test(a_change_is_checked_with_the_other_keys),
		cmocka_unit_test(a_merged_configuration_is_checked_without_places),
	};

	return cmocka_run_group_tests(tests, conf_fixture_begin, conf_fixture_end);
}

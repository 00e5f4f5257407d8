/*
 * test_conf_load.c - a configuration from defaults, a file and overrides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log/log.h"
#include "support/conf_fixture.h"

CONF_FIXTURE_STAGES

static struct conf defaults;

static int load_defaults(void **state)
{
	(void)state;
	conf_clear_errors();
	return conf_load(&defaults, NULL, NULL, NULL, 0, &conf_errors) || conf_errors.length;
}

static void defaults_of_the_server(void **state)
{
	(void)state;
	assert_string_equal(defaults.server.listen, "127.0.0.1:8080");
	assert_string_equal(defaults.server.root, "/var/lib/darkroom");
	assert_int_equal(defaults.server.respond_after, CONF_RESPOND_STORE);
	assert_int_equal(defaults.server.durability, CONF_DURABILITY_PROCESS);
	assert_int_equal(defaults.server.keep_originals, CONF_YES);
	assert_int_equal(defaults.server.damaged, CONF_DAMAGED_REJECT);
	assert_string_equal(defaults.server.allow_origin, "");
	assert_int_equal(defaults.server.wait_timeout_ms, 10000);
	assert_int_equal(defaults.server.drain_timeout_ms, 30000);
	assert_int_equal(defaults.log.level, LOG_LEVEL_INFO);
	assert_int_equal(defaults.log.access, LOG_ACCESS_TEXT);
	assert_string_equal(defaults.log.access_file, "stderr");
}

static void defaults_of_the_scheduler(void **state)
{
	(void)state;
	assert_string_equal(defaults.scheduler.policy, "drain");
	assert_true(defaults.scheduler.threads == CONF_AUTO);
	assert_int_equal(defaults.experiment.spin_us, 10);
	assert_int_equal(defaults.scheduler.service, 0);
	assert_int_equal(defaults.experiment.service_events, 16);
	assert_int_equal(defaults.experiment.service_time_us, 5000);
	assert_int_equal(defaults.experiment.cutoff_us, 5000);
	assert_int_equal(defaults.scheduler.discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(defaults.experiment.age_ms, 10);
	assert_int_equal(defaults.experiment.dynamic, CONF_NO);
}

static void defaults_of_overload(void **state)
{
	(void)state;
	assert_int_equal(defaults.overload.controller, CONF_CONTROLLER_BACKLOG);
	assert_int_equal(defaults.overload.target_p90_ms, 5000);
	assert_int_equal(defaults.overload.when_full, CONF_WHEN_FULL_REFUSE);
	/* Welsh 2002, figure 50 */
	assert_int_equal(defaults.experiment.overload_samples, 100);
	assert_int_equal(defaults.experiment.overload_interval_ms, 1000);
	assert_int_equal(defaults.experiment.welsh_smoothing, 700);
	assert_int_equal(defaults.experiment.welsh_increase_below, 500);
	assert_int_equal(defaults.experiment.welsh_decrease_above, 0);
	assert_int_equal(defaults.experiment.welsh_increase, 2000);
	assert_int_equal(defaults.experiment.welsh_increase_offset, 100);
	assert_int_equal(defaults.experiment.welsh_decrease, 1200);
	assert_int_equal(defaults.experiment.welsh_rate_min, 50);
	assert_int_equal(defaults.experiment.welsh_rate_max, 5000000);
	assert_int_equal(defaults.experiment.welsh_decrease_lower, 10000);
	assert_int_equal(defaults.experiment.welsh_decrease_patience, 20);
}

static void defaults_of_limits(void **state)
{
	(void)state;
	assert_int_equal(defaults.limits.header_bytes, 16384);
	assert_int_equal(defaults.limits.body_bytes, 256 << 20);
	assert_int_equal(defaults.limits.parts, 64);
	assert_int_equal(defaults.limits.pixels, 200000000);
	assert_int_equal(defaults.limits.pixels_progressive, 64000000);
	assert_int_equal(defaults.limits.scans, 30);
	assert_int_equal(defaults.limits.image_time_ms, 30000);
	assert_int_equal(defaults.limits.width, 65500);
	assert_int_equal(defaults.limits.height, 65500);
	assert_int_equal(defaults.limits.connections, 1024);
	assert_int_equal(defaults.limits.images_in_flight, 1024);
	assert_true(defaults.limits.images_per_client == CONF_AUTO);
	assert_int_equal(defaults.limits.client_rate, 0);
	assert_int_equal(defaults.limits.client_burst, 100);
	assert_int_equal(defaults.experiment.client_ipv6_prefix, 64);
	assert_int_equal(defaults.limits.header_timeout_ms, 10000);
	assert_int_equal(defaults.limits.body_timeout_ms, 30000);
	assert_int_equal(defaults.limits.body_rate, 1024);
	assert_int_equal(defaults.limits.idle_timeout_ms, 60000);
	assert_int_equal(defaults.limits.memory_budget, 1 << 30);
}

static void defaults_of_stages_and_variants(void **state)
{
	(void)state;
	assert_true(defaults.stage[STAGE_BLUR].threads == CONF_AUTO);
	assert_int_equal(defaults.stage[STAGE_BLUR].kind, 0);
	assert_int_equal(defaults.stage[STAGE_BLUR].pass_through, CONF_DEFAULT);
	assert_int_equal(defaults.stage[STAGE_BLUR].threads_max, 20);
	assert_int_equal(defaults.stage[STAGE_BLUR].service, 0);
	assert_int_equal(defaults.stage[STAGE_BLUR].discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(defaults.stage[STAGE_BLUR].threshold_events, 0);
	assert_int_equal(defaults.stage[STAGE_BLUR].threshold_interval_us, 0);
	assert_int_equal(defaults.variant_count, 3);
	assert_string_equal(defaults.variant[0].name, "medium");
	assert_string_equal(defaults.variant[2].operations, "scale 800x800 inside, blur 8");
	assert_int_equal(defaults.variant[2].quality, 75);
}

static const char every_kind[] = /* of notation */
	"\xEF\xBB\xBF; a comment\r\n"
	"[ Server ] ; with one behind it\r\n"
	"  Listen=[::1]:0\r\n"
	"root = \"/a b;c#d\" ; quoted\n"
	"allow_origin = https://example.org:8443\n"
	"wait_timeout = 1500ms\n"
	"damaged = accept # yes\n"
	"[log]\n"
	"level = DEBUG\n"
	"access = json\n"
	"access_file = /var/log/darkroom/access.log\n"
	"\n"
	"[limits]\n"
	"body_bytes = 1m\n"
	"pixels = 3M\n"
	"body_rate = 0\n"
	"[scheduler]\n"
	"service = time-gated\n"
	"discipline = SRPT\n"
	"[experiment]\n"
	"service_time = 2ms\n"
	"age = 30s\n"
	"[stage.disk_write]\n"
	"threads = 4\n"
	"[experiment.blur]\n"
	"kind = exclusive\n"
	"pass_through = no\n"
	"service = n-gated\n"
	"discipline = auto\n"
	"threshold_events = 7\n"
	"threshold_interval = 3ms\n"
	"[variant.z_1-x]\n"
	"operations = scale 1x1 inside\n"
	"quality = 100\n"
	"[variant.b]\n"
	"operations = 'scale 2x2 inside, blur 8'";

static void a_file_sets_plain_sections(void **state)
{
	static struct conf conf;

	(void)state;
	assert_int_equal(load(&conf, every_kind), 0);
	assert_errors("");
	assert_string_equal(conf.server.listen, "[::1]:0");
	assert_string_equal(conf.server.root, "/a b;c#d");
	assert_string_equal(conf.server.allow_origin, "https://example.org:8443");
	assert_int_equal(conf.server.wait_timeout_ms, 1500);
	assert_int_equal(conf.log.level, LOG_LEVEL_DEBUG);
	assert_int_equal(conf.log.access, LOG_ACCESS_JSON);
	assert_string_equal(conf.log.access_file, "/var/log/darkroom/access.log");
	assert_int_equal(conf.server.damaged, CONF_DAMAGED_ACCEPT);
	assert_int_equal(conf.limits.body_bytes, 1 << 20);
	assert_int_equal(conf.limits.pixels, 3000000);
	assert_int_equal(conf.limits.body_rate, 0);
	assert_int_equal(conf.scheduler.service, SERVICE_TIME_GATED);
	assert_int_equal(conf.experiment.service_time_us, 2000);
	assert_int_equal(conf.scheduler.discipline, CONF_DISCIPLINE_SRPT);
	assert_int_equal(conf.experiment.age_ms, 30000);
}

static void a_file_sets_stages_and_variants(void **state)
{
	static struct conf conf;

	(void)state;
	assert_int_equal(load(&conf, every_kind), 0);
	assert_int_equal(conf.stage[STAGE_DISK].threads, 4);
	assert_int_equal(conf.stage[STAGE_BLUR].service, SERVICE_N_GATED);
	assert_int_equal(conf.stage[STAGE_BLUR].discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(conf.stage[STAGE_BLUR].threshold_events, 7);
	assert_int_equal(conf.stage[STAGE_BLUR].threshold_interval_us, 3000);
	assert_int_equal(conf.stage[STAGE_BLUR].kind, STAGE_EXCLUSIVE);
	assert_int_equal(conf.stage[STAGE_BLUR].pass_through, CONF_NO);
	assert_int_equal(conf.variant_count, 2);
	assert_string_equal(conf.variant[0].name, "z_1-x");
	assert_int_equal(conf.variant[0].quality, 100);
	assert_string_equal(conf.variant[1].operations, "scale 2x2 inside, blur 8");
	assert_int_equal(conf.variant[1].quality, 82);
}

static void overrides_replace_and_add_settings(void **state)
{
	static const char *const overrides[] = {
		"variant.b.quality=5",
		"server.listen = localhost:1 ",
		"variant.new.operations=blur 3; really",
		"SERVER.root=",
		"server.root=/x",
		"variant.a.quality=7",
		"scheduler.threads=auto",
		"server.allow_origin=*",
	};
	static struct conf conf;

	(void)state;
	assert_int_equal(
		load_bytes(&conf, VARIANT "quality = 1\n[variant.b]\noperations = blur 1\n",
	                   strlen(VARIANT "quality = 1\n[variant.b]\noperations = blur 1\n"),
	                   overrides, sizeof overrides / sizeof overrides[0]),
		0);
	assert_errors("");
	assert_string_equal(conf.server.listen, "localhost:1");
	assert_string_equal(conf.server.root, "/x");
	assert_string_equal(conf.server.allow_origin, "*");
	assert_int_equal(conf.variant_count, 3);
	assert_string_equal(conf.variant[0].name, "a");
	assert_int_equal(conf.variant[0].quality, 7);
	assert_string_equal(conf.variant[1].name, "b");
	assert_int_equal(conf.variant[1].quality, 5);
	assert_string_equal(conf.variant[2].name, "new");
	assert_string_equal(conf.variant[2].operations, "blur 3; really");
	assert_int_equal(load_with(&conf, "variant.medium.quality=1"), 0);
	assert_int_equal(conf.variant_count, 3);
	assert_int_equal(conf.variant[0].quality, 1);
}

static void variants_are_bounded(void **state)
{
	static struct conf conf;
	char ini[4096];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(ini + n, sizeof ini - n,
		                      "[variant.v%d]\noperations = blur 1\n", i);
	assert_int_equal(load(&conf, ini), 0);
	assert_int_equal(conf.variant_count, 16);
	snprintf(ini + n, sizeof ini - n, "[variant.v16]\noperations = blur 1\n");
	refuse(ini, "@:33: [variant.v16]: too many variants: expected at most 16\n");
	refuse(VARIANT "[variant.a.b]\noperations = blur 1\n",
	       "@:3: [variant.a.b]: expected variant.NAME with at most 31 of a-z, 0-9, '_' and '-'\n");
	refuse(VARIANT "[variant.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\noperations = blur 1\n",
	       "@:3: [variant.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: expected variant.NAME with at "
	       "most 31 of a-z, 0-9, '_' and '-'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_of_the_server, load_defaults),
		cmocka_unit_test_setup(defaults_of_the_scheduler, load_defaults),
		cmocka_unit_test_setup(defaults_of_overload, load_defaults),
		cmocka_unit_test_setup(defaults_of_limits, load_defaults),
		cmocka_unit_test_setup(defaults_of_stages_and_variants, load_defaults),
		cmocka_unit_test(a_file_sets_plain_sections),
		cmocka_unit_test(a_file_sets_stages_and_variants),
		cmocka_unit_test(overrides_replace_and_add_settings),
		cmocka_unit_test(variants_are_bounded),
	};

	return cmocka_run_group_tests(tests, conf_fixture_begin, conf_fixture_end);
}

/* test_conf.c - the configuration: its table, its file, its overrides and its messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "conf/conf.h"
#include "log/log.h"
#include "sched/graph.h"
#include "sched/schedule.h"
#include "support/file_fixture.h"

#define VARIANT "[variant.a]\noperations = scale 10x10 inside\n"

/* A graph of its own: the names are those of the real one. */
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
const unsigned graph_row_count = 4;

enum { BLUR = 2, DISK = 3 };

static char path[] = "/tmp/darkroom-test-conf-XXXXXX";
static struct text errors;

static int make_file(void **state)
{
	(void)state;
	return file_make(path);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *data, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static int load_bytes(struct conf *conf, const char *data, size_t size,
                      const char *const *overrides, size_t count)
{
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	write_file(data, size);
	return conf_load(conf, path, overrides, count, &errors);
}

static int load(struct conf *conf, const char *ini)
{
	return load_bytes(conf, ini, strlen(ini), NULL, 0);
}

static int load_with(struct conf *conf, const char *override)
{
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	return conf_load(conf, NULL, &override, 1, &errors);
}

/* The messages must be exactly these; "@" stands for the file's path. */
static void assert_errors(const char *expected)
{
	char *full = calloc(1, 1 << 16), *to = full;

	assert_non_null(full);
	for (; *expected; expected++) {
		if (*expected == '@')
			to = stpcpy(to, path);
		else
			*to++ = *expected;
	}
	assert_string_equal(errors.data, full);
	free(full);
}

static void refuse(const char *ini, const char *expected)
{
	static struct conf conf;

	assert_int_equal(load(&conf, ini), -22);
	assert_errors(expected);
}

static void refuse_override(const char *override, const char *expected)
{
	static struct conf conf;

	assert_int_equal(load_with(&conf, override), -22);
	assert_errors(expected);
}

/* ---- values ---- */

static void defaults_are_those_documented(void **state)
{
	static struct conf conf;

	(void)state;
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&conf, NULL, NULL, 0, &errors), 0);
	assert_string_equal(errors.data, "");
	assert_string_equal(conf.server.listen, "127.0.0.1:8080");
	assert_string_equal(conf.server.root, "/var/lib/darkroom");
	assert_int_equal(conf.server.respond_after, CONF_RESPOND_STORE);
	assert_int_equal(conf.server.durability, CONF_DURABILITY_PROCESS);
	assert_int_equal(conf.server.keep_originals, CONF_NO);
	assert_int_equal(conf.server.damaged, CONF_DAMAGED_REJECT);
	assert_string_equal(conf.server.allow_origin, "");
	assert_int_equal(conf.server.wait_timeout_ms, 10000);
	assert_int_equal(conf.server.drain_timeout_ms, 30000);
	assert_int_equal(conf.log.level, LOG_LEVEL_INFO);
	assert_int_equal(conf.log.access, LOG_ACCESS_TEXT);
	assert_string_equal(conf.log.access_file, "stderr");
	assert_string_equal(conf.scheduler.policy, "drain");
	assert_true(conf.scheduler.threads == CONF_AUTO);
	assert_int_equal(conf.scheduler.spin_us, 10);
	assert_int_equal(conf.scheduler.service, 0);
	assert_int_equal(conf.scheduler.service_events, 16);
	assert_int_equal(conf.scheduler.service_time_us, 5000);
	assert_int_equal(conf.scheduler.cutoff_us, 5000);
	assert_int_equal(conf.scheduler.discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(conf.scheduler.age_ms, 1000);
	assert_int_equal(conf.scheduler.idle, CONF_IDLE_WAKE);
	assert_int_equal(conf.scheduler.dynamic, CONF_NO);
	assert_int_equal(conf.limits.header_bytes, 16384);
	assert_int_equal(conf.limits.body_bytes, 256 << 20);
	assert_int_equal(conf.limits.parts, 64);
	assert_int_equal(conf.limits.pixels, 200000000);
	assert_int_equal(conf.limits.pixels_progressive, 64000000);
	assert_int_equal(conf.limits.scans, 100);
	assert_int_equal(conf.limits.width, 65500);
	assert_int_equal(conf.limits.height, 65500);
	assert_int_equal(conf.limits.connections, 1024);
	assert_int_equal(conf.limits.images_in_flight, 1024);
	assert_int_equal(conf.limits.images_per_client, 0);
	assert_int_equal(conf.limits.header_timeout_ms, 10000);
	assert_int_equal(conf.limits.body_timeout_ms, 30000);
	assert_int_equal(conf.limits.body_rate, 1024);
	assert_int_equal(conf.limits.idle_timeout_ms, 60000);
	assert_int_equal(conf.limits.memory_budget, 1 << 30);
	assert_true(conf.stage[BLUR].threads == CONF_AUTO);
	assert_int_equal(conf.stage[BLUR].kind, 0);
	assert_int_equal(conf.stage[BLUR].pass_through, CONF_DEFAULT);
	assert_int_equal(conf.stage[BLUR].threads_max, 20);
	assert_int_equal(conf.stage[BLUR].service, 0);
	assert_int_equal(conf.stage[BLUR].discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(conf.stage[BLUR].threshold_events, 0);
	assert_int_equal(conf.stage[BLUR].threshold_interval_us, 0);
	assert_int_equal(conf.variant_count, 3);
	assert_string_equal(conf.variant[0].name, "medium");
	assert_string_equal(conf.variant[2].operations, "scale 800x800 inside, blur 8");
	assert_int_equal(conf.variant[2].quality, 75);
}

static void a_file_sets_values(void **state)
{
	static struct conf conf;

	(void)state;
	assert_int_equal(load(&conf, "\xEF\xBB\xBF; a comment\r\n"
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
	                             "service_time = 2ms\n"
	                             "discipline = SRPT\n"
	                             "age = 30s\n"
	                             "idle = backoff\n"
	                             "[stage.disk_write]\n"
	                             "threads = 4\n"
	                             "[stage.blur]\n"
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
	                             "operations = 'scale 2x2 inside, blur 8'"),
	                 0);
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
	assert_int_equal(conf.scheduler.service_time_us, 2000);
	assert_int_equal(conf.scheduler.discipline, CONF_DISCIPLINE_SRPT);
	assert_int_equal(conf.scheduler.age_ms, 30000);
	assert_int_equal(conf.scheduler.idle, CONF_IDLE_BACKOFF);
	assert_int_equal(conf.stage[DISK].threads, 4);
	assert_int_equal(conf.stage[BLUR].service, SERVICE_N_GATED);
	assert_int_equal(conf.stage[BLUR].discipline, CONF_DISCIPLINE_AUTO);
	assert_int_equal(conf.stage[BLUR].threshold_events, 7);
	assert_int_equal(conf.stage[BLUR].threshold_interval_us, 3000);
	assert_int_equal(conf.stage[BLUR].kind, STAGE_EXCLUSIVE);
	assert_int_equal(conf.stage[BLUR].pass_through, CONF_NO);
	assert_int_equal(conf.variant_count, 2);
	assert_string_equal(conf.variant[0].name, "z_1-x");
	assert_int_equal(conf.variant[0].quality, 100);
	assert_string_equal(conf.variant[1].operations, "scale 2x2 inside, blur 8");
	assert_int_equal(conf.variant[1].quality, 82);
}

static void overrides_replace_and_add(void **state)
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

static void numbers_are_strict(void **state)
{
	static const char *const bad[] = { "",
		                           "K",
		                           "1.5K",
		                           "-1K",
		                           "+1K",
		                           "0x10K",
		                           "1KB",
		                           "1 K K",
		                           "10T",
		                           "16385T",
		                           "1023",
		                           "65G",
		                           "64G1",
		                           "99999999999999999999",
		                           "17179869185G" };
	static const char *const bad_duration[] = { "10",  "1d", "10 min", "500us", "1500us",
		                                    "61m", "2h", "s",      "9ms" };
	static struct conf conf;
	char override[128];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(override, sizeof override, "limits.body_bytes=%s", bad[i]);
		assert_int_equal(load_with(&conf, override), -22);
		assert_non_null(
			strstr(errors.data,
		               ": expected bytes from 1K to 64G (K, M, G: powers of 1024)\n"));
	}
	for (size_t i = 0; i < sizeof bad_duration / sizeof bad_duration[0]; i++) {
		snprintf(override, sizeof override, "limits.header_timeout=%s", bad_duration[i]);
		assert_int_equal(load_with(&conf, override), -22);
		assert_non_null(strstr(errors.data,
		                       ": expected a duration from 10ms to 1h (ms, s, m, h)\n"));
	}
	assert_int_equal(load_with(&conf, "limits.header_timeout=60 m"), 0);
	assert_int_equal(conf.limits.header_timeout_ms, 3600000);
	assert_int_equal(load_with(&conf, "limits.header_timeout=10000us"), 0);
	assert_int_equal(conf.limits.header_timeout_ms, 10);
	assert_int_equal(load_with(&conf, "server.wait_timeout=0"), 0);
	assert_int_equal(conf.server.wait_timeout_ms, 0);
	assert_int_equal(load_with(&conf, "limits.pixels=1500K"), 0);
	assert_int_equal(conf.limits.pixels, 1500000);
	assert_int_equal(load_with(&conf, "limits.width=65500"), 0);
	refuse_override("limits.width=65501",
	                "-o limits.width=65501: expected a whole number from 1 to 65500\n");
	refuse_override("scheduler.threads=65",
	                "-o scheduler.threads=65: expected auto or a whole number from 1 to 64\n");
	refuse_override("server.damaged=maybe",
	                "-o server.damaged=maybe: expected reject or accept\n");
	refuse_override(
		"scheduler.policy=magic",
		"-o scheduler.policy=magic: expected one of drain, cohort, mg1, srpt, dbr, color, seda, "
		"thread-per-connection\n");
}

static void listen_addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1:0", "0.0.0.0:65535",  "[::]:80",
		                            "[fe80::1]:1", "localhost:8080", "a-b.example:1" };
	static const char *const bad[] = {
		"",           "foo",      ":8080",       "8080",    "127.0.0.1",
		"127.0.0.1:", "1.2.3:1",  "256.1.1.1:1", "::1:80",  "[::1]",
		"[::1:80",    "[]:1",     "[1.2.3.4]:1", "h:65536", "h:-1",
		"h:1x",       "h:999999", "h h:1",       "*:80",    "h:+1",
		"[::1]x:1",   "[:1",      "http://h:1"
	};
	static struct conf conf;
	char override[128];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(override, sizeof override, "server.listen=%s", good[i]);
		assert_int_equal(load_with(&conf, override), 0);
		assert_string_equal(conf.server.listen, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(override, sizeof override, "server.listen=%s", bad[i]);
		assert_int_equal(load_with(&conf, override), -22);
		assert_non_null(strstr(errors.data, "expected HOST:PORT or [HOST]:PORT\n"));
	}
}

static void administrative_addresses(void **state)
{
	static const char *const good[] = { "auto", "no", "127.0.0.1:0", "[::1]:9090",
		                            "/run/darkroom/admin.sock" };
	static const char *const bad[] = { "", "yes", "8081", "run/admin.sock",
		                           "unix:/run/admin.sock" };
	static struct conf conf;
	char override[256];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(override, sizeof override, "server.admin_listen=%s", good[i]);
		assert_int_equal(load_with(&conf, override), 0);
		assert_string_equal(conf.server.admin_listen, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(override, sizeof override, "server.admin_listen=%s", bad[i]);
		assert_int_equal(load_with(&conf, override), -22);
		assert_non_null(strstr(
			errors.data,
			"expected auto, no, HOST:PORT, [HOST]:PORT or an absolute path of at most 107 bytes\n"));
	}
	snprintf(override, sizeof override, "server.admin_listen=/%107s",
	         "x"); /* one more than fits */
	assert_int_equal(load_with(&conf, override), -22);
}

static void origins(void **state)
{
	static const char *const bad[] = {
		"example.org", "https://",   "https://example.org/", "://x",
		"a b://x",     "http://a,b", "http://a\r\nX: y"
	};
	static struct conf conf;
	char override[128];

	(void)state;
	assert_int_equal(load_with(&conf, "server.allow_origin=http://localhost:3000"), 0);
	assert_int_equal(load_with(&conf, "server.allow_origin=http://[::1]:3000"), 0);
	assert_int_equal(load_with(&conf, "server.allow_origin="), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(override, sizeof override, "server.allow_origin=%s", bad[i]);
		assert_int_equal(load_with(&conf, override), -22);
	}
}

/* ---- messages ---- */

static void messages_name_place_text_and_expectation(void **state)
{
	(void)state;
	refuse(VARIANT "[server]\nlisten = foo\n",
	       "@:4: server.listen = \"foo\": expected HOST:PORT or [HOST]:PORT\n");
	refuse(VARIANT "[log]\naccess_file = access.log\n",
	       "@:4: log.access_file = \"access.log\": expected stderr, or an absolute path of at most 255 bytes\n");
	refuse(VARIANT "[log]\naccess_file = /var/log/\n",
	       "@:4: log.access_file = \"/var/log/\": expected stderr, or an absolute path of at most 255 bytes\n");
	refuse(VARIANT "[log]\naccess = xml\n",
	       "@:4: log.access = \"xml\": expected no, text or json\n");
	refuse(VARIANT "[server]\nlisen = foo\n",
	       "@:4: server.lisen = \"foo\": unknown key; did you mean listen?\n");
	refuse(VARIANT "[server]\npolicy = cohort\n",
	       "@:4: server.policy = \"cohort\": unknown key; it belongs to [scheduler]\n");
	refuse(VARIANT "[server]\nquality = 1\n",
	       "@:4: server.quality = \"1\": unknown key; it belongs to [variant.NAME]\n");
	refuse(VARIANT "[server]\nzzzzzzz = 1\n", "@:4: server.zzzzzzz = \"1\": unknown key\n");
	refuse(VARIANT "[sevrer]\nlisten = foo\nx = y\n",
	       "@:3: [sevrer]: unknown section; did you mean server?\n");
	refuse(VARIANT "[stage.blurr]\n",
	       "@:3: [stage.blurr]: unknown stage; did you mean blur?\n");
	refuse(VARIANT "[variants]\n",
	       "@:3: [variants]: unknown section; did you mean [variant.NAME]?\n");
	refuse(VARIANT "[stage]\nthreads = 1\n",
	       "@:3: [stage]: unknown section; did you mean [stage.NAME]?\n");
	refuse(VARIANT "[quite.another]\n",
	       "@:3: [quite.another]: unknown section; expected server, log, scheduler, layout, limits, access, "
	       "stage.NAME or variant.NAME\n");
	refuse_override("sevrer.listen=a:1",
	                "-o sevrer.listen=a:1: unknown section; did you mean server?\n");
	refuse_override("server.lisen=a:1",
	                "-o server.lisen=a:1: unknown key; did you mean listen?\n");
	refuse_override("listen=a:1", "-o \"listen=a:1\": expected SECTION.KEY=VALUE\n");
	refuse_override("server.listen", "-o \"server.listen\": expected SECTION.KEY=VALUE\n");
	refuse_override(".listen=x", "-o \".listen=x\": expected SECTION.KEY=VALUE\n");
	refuse_override("server.=x", "-o \"server.=x\": expected SECTION.KEY=VALUE\n");
	refuse_override("", "-o \"\": expected SECTION.KEY=VALUE\n");
}

static void syntax_is_judged_line_by_line(void **state)
{
	(void)state;
	refuse("listen = a:1\n" VARIANT,
	       "@:1: \"listen = a:1\": stands before the first [SECTION]\n");
	refuse(VARIANT "nonsense\n",
	       "@:3: \"nonsense\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "x", "@:3: \"x\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "= 1\n",
	       "@:3: \"= 1\": expected a key of letters, digits, '_' and '-' before the '='\n");
	refuse(VARIANT "[server\n", "@:3: \"[server\": expected [SECTION]\n");
	refuse(VARIANT "[server] x\n", "@:3: \"[server] x\": expected [SECTION]\n");
	refuse(VARIANT "[]\n",
	       "@:3: \"[]\": expected a section's name of letters, digits, '_', '-' and '.'\n");
	refuse(VARIANT "[variant.Big]\noperations = blur 1\n",
	       "@:3: \"[variant.Big]\": expected a name in lower case: it becomes part of URLs\n");
	refuse(VARIANT "[server]\nroot = \"/a\n",
	       "@:4: \"root = \"/a\": the quotation mark is not closed\n");
	refuse(VARIANT "[server]\nroot = \"/a\" b\n",
	       "@:4: \"root = \"/a\" b\": expected nothing but a comment after the closing quotation mark\n");
	refuse(VARIANT "[server]\nroot = /a#b\n",
	       "@:4: \"root = /a#b\": a value with ';' or '#' in it must stand in double "
	       "quotation marks, and a comment after a space\n");
	refuse(VARIANT "[server]\nroot = /a\\\n/b\n",
	       "@:4: \"root = /a\\\": ends in a backslash: expected the whole value on one line\n"
	       "@:5: \"/b\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "[server]\nroot = /a\nroot = /b\n",
	       "@:5: server.root was given on line 4 already\n");
	refuse(VARIANT "[server]\n[SERVER]\n",
	       "@:4: section [server] was begun on line 3 already\n");
	refuse(VARIANT "[server]\nroot = a\tb\n",
	       "@:4: server.root = \"a?b\": expected text of at least one and at most 255 bytes\n");
}

static void hostile_bytes(void **state)
{
	static const char zero[] = VARIANT "qual\0ity = 3\n";
	static struct conf conf;
	char *big = malloc(2 << 20);

	(void)state;
	assert_non_null(big);
	assert_int_equal(load_bytes(&conf, zero, sizeof zero - 1, NULL, 0), -22);
	assert_errors("@:3: a zero byte: expected text\n");
	memset(big, 'a', 2 << 20);
	memcpy(big, VARIANT, strlen(VARIANT));
	assert_int_equal(load_bytes(&conf, big, 2000, NULL, 0), -22);
	assert_non_null(strstr(errors.data, " bytes: expected at most 1000\n"));
	assert_int_equal(load_bytes(&conf, big, 2 << 20, NULL, 0), -27);
	assert_errors("@: more than 1048576 bytes: not a configuration file\n");
	/* a line of exactly the greatest length reaches the value's own check */
	strcpy(big, VARIANT "[server]\nroot=");
	memset(big + strlen(big), 'a', 995);
	memcpy(big + strlen(VARIANT "[server]\nroot=") + 995, "\n", 2);
	assert_int_equal(load(&conf, big), -22);
	assert_non_null(
		strstr(errors.data, "expected text of at least one and at most 255 bytes\n"));
	assert_true(strlen(errors.data) < 300);
	free(big);
}

static void unreadable_files(void **state)
{
	static struct conf conf;

	(void)state;
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&conf, "/nonexistent/x.ini", NULL, 0, &errors), -2);
	assert_string_equal(errors.data,
	                    "/nonexistent/x.ini: cannot be read: No such file or directory\n");
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&conf, "/tmp", NULL, 0, &errors), -21);
	assert_string_equal(errors.data, "/tmp: cannot be read: Is a directory\n");
}

static void contradictions(void **state)
{
	static struct conf conf;

	(void)state;
	refuse("", "@: no variant: expected at least one section [variant.NAME]\n");
	refuse("[variant.a]\nquality = 3\n",
	       "@:1: [variant.a]: has no operations: expected for example operations = scale 800x800 inside\n");
	refuse("[variant.a]\noperations =\n",
	       "@:2: variant.a.operations = \"\": expected text of at least one and at most 255 bytes\n");
	refuse_override("variant.new.quality=3",
	                "-o variant.new.quality=3: has no operations: expected for example "
	                "operations = scale 800x800 inside\n");
	/* Sizes of pools are for policy seda, and may stand there under any: it can be changed
	 * while running. */
	assert_int_equal(load(&conf, VARIANT "[stage.blur]\nthreads = 64\n"), 0);
	assert_int_equal(
		load(&conf, VARIANT "[stage.blur]\nthreads = 64\n[scheduler]\npolicy = seda\n"), 0);
	refuse(VARIANT
	       "[stage.blur]\nthreads = 64\n[stage.http_parse]\nthreads = 1\npass_through = no\n[scheduler]\npolicy = seda\n",
	       "@:9: scheduler.policy = \"seda\": the stages' pools have more than 64 threads together: expected less in "
	       "stage.NAME.threads\n");
	refuse(VARIANT "[stage.accept_read]\npass_through = yes\n",
	       "@:4: stage.accept_read.pass_through = \"yes\": this stage is where events come from: expected no\n");
	assert_int_equal(load_with(&conf, "stage.accept_read.kind=shared"), -22);
	assert_int_equal(load_with(&conf, "stage.accept_read.kind=exclusive"), 0);
	refuse("[scheduler]\npolicy = thread-per-connection\n[stage.accept_read]\nkind = exclusive\n" VARIANT,
	       "@:2: scheduler.policy = \"thread-per-connection\": each of its threads needs an instance of the source: expected "
	       "stage.accept_read.kind = partitioned\n");
	refuse("[scheduler]\npolicy = thread-per-connection\n[layout]\nmode = replicate\n" VARIANT,
	       "@:4: layout.mode = \"replicate\": scheduler.policy = thread-per-connection: "
	       "expected layout.mode = shared\n");
	refuse(VARIANT "[stage.blur]\nkind = partitioned\n",
	       "@:4: stage.blur.kind = \"partitioned\": expected shared or exclusive: only accept_read has instances\n");
	assert_int_equal(load_with(&conf, "stage.blur.kind=exclusive"), 0);
	/* An exclusive stage has a queue, under every policy. */
	assert_int_equal(load_with(&conf, "stage.http_parse.kind=exclusive"), 0);
	assert_int_equal(
		load(&conf, VARIANT
	             "[stage.blur]\nkind = exclusive\n[scheduler]\npolicy = thread-per-connection\n"),
		0);
	assert_int_equal(
		load(&conf, VARIANT "[stage.blur]\nkind = exclusive\npass_through = yes\n"), -22);
	refuse_override(
		"limits.body_bytes=513M",
		"-o limits.body_bytes=513M: bodies get at most half of limits.memory_budget = 1G, and "
		"limits.body_bytes = 513M is more: expected less or a larger budget\n");
	assert_int_equal(load_with(&conf, "limits.body_bytes=512M"), 0);
	refuse_override(
		"limits.memory_budget=500M",
		"-o limits.memory_budget=500M: bodies get at most half of limits.memory_budget = 500M, and "
		"limits.body_bytes = 256M is more: expected less or a larger budget\n");
}

static void everything_is_reported_in_one_go(void **state)
{
	(void)state;
	refuse("[server]\nlisten = foo\nnonsense\nroot = /a#b\n[limitz]\nparts = 0\n[limits]\nparts = 0\n"
	       "[stage.blur]\nthreads = 3\npass_through = yes\nkind = exclusive\n[variant.x]\n",
	       "@:3: \"nonsense\": expected KEY = VALUE, [SECTION] or a comment\n"
	       "@:4: \"root = /a#b\": a value with ';' or '#' in it must stand in double quotation marks, and a comment after "
	       "a space\n"
	       "@:2: server.listen = \"foo\": expected HOST:PORT or [HOST]:PORT\n"
	       "@:5: [limitz]: unknown section; did you mean limits?\n"
	       "@:8: limits.parts = \"0\": expected a whole number from 1 to 10000\n"
	       "@:12: stage.blur.kind = \"exclusive\": pass_through = yes lets any thread call it at any time: expected shared, or "
	       "pass_through = no\n"
	       "@:13: [variant.x]: has no operations: expected for example operations = scale 800x800 inside\n");
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
	       "@:3: [variant.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: expected variant.NAME with at most 31 of a-z, 0-9, '_' "
	       "and '-'\n");
}

/* ---- places ---- */

static void where_finds_the_line(void **state)
{
	static const char *const overrides[] = { "server.root=/x",
		                                 "variant.new.operations=blur 1" };
	char out[128], expected[128];

	(void)state;
	write_file(VARIANT "[server]\n\nroot = /y\nlisten = a:1\n",
	           strlen(VARIANT "[server]\n\nroot = /y\nlisten = a:1\n"));
	conf_where(path, NULL, 0, "variant.a", "operations", out, sizeof out);
	snprintf(expected, sizeof expected, "%s:2", path);
	assert_string_equal(out, expected);
	conf_where(path, overrides, 2, "server", "listen", out, sizeof out);
	snprintf(expected, sizeof expected, "%s:6", path);
	assert_string_equal(out, expected);
	conf_where(path, overrides, 2, "server", "root", out, sizeof out);
	assert_string_equal(out, "-o server.root=/x");
	conf_where(path, overrides, 2, "variant.new", "operations", out, sizeof out);
	assert_string_equal(out, "-o variant.new.operations=blur 1");
	conf_where(path, overrides, 2, "server", "damaged", out, sizeof out);
	assert_string_equal(out, "default");
	conf_where(NULL, NULL, 0, "variant.medium", "operations", out, sizeof out);
	assert_string_equal(out, "default");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_documented),
		cmocka_unit_test(a_file_sets_values),
		cmocka_unit_test(overrides_replace_and_add),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(listen_addresses),
		cmocka_unit_test(administrative_addresses),
		cmocka_unit_test(origins),
		cmocka_unit_test(messages_name_place_text_and_expectation),
		cmocka_unit_test(syntax_is_judged_line_by_line),
		cmocka_unit_test(hostile_bytes),
		cmocka_unit_test(unreadable_files),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(everything_is_reported_in_one_go),
		cmocka_unit_test(variants_are_bounded),
		cmocka_unit_test(where_finds_the_line),
	};
	int failed;

	text_init_growable(&errors, 1 << 20);
	failed = cmocka_run_group_tests(tests, make_file, remove_file);
	text_fini(&errors);
	return failed;
}

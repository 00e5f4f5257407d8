/*
 * whole_daemon.c - a whole daemon in virtual time: connections, scheduler, stages and store, with
 * clients and faults of the disk, while its configuration changes.
 *
 * What runs is the program itself, from program_init() to program_fini(). A seed draws the machine,
 * the configuration, the orders of threads, what clients do, and when calls of the disk fail. Each
 * request of a client that keeps the rules has its answer within a minute. An image that was
 * promised is there with the right bytes until its owner removes it, and then it is gone; one key
 * is one image. After the last request nothing is left within a minute, and at the end no
 * descriptor, buffer, timer or thread is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "client_acts.h"
#include "conf/conf_source.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "daemon/reload.h"
#include "daemon/trace_output.h"
#include "disk.h"
#include "events.h"
#include "exchange.h"
#include "machine.h"
#include "net.h"
#include "sched/control/controllers.h"
#include "sched/core/graph.h"
#include "seeds.h"

#define DATE UINT64_C(1790000000)
#define QUIET_NS (60 * NS_PER_S) /* in which all work ends after the last request */
#define TICK_NS (20 * NS_PER_MS)
#define TICK_OF_CHANGE_NS NS_PER_MS
#define CALLS_PER_SEED 4000 /* about what a run makes of the disk: faults happen before */
#define FEW_CONNECTIONS "limits.connections=4"
#define SETTINGS_MAX 16
#define SETTING_SIZE 96

static struct reload reload;
static unsigned client_count, clients_left;

uint64_t draw(uint64_t below)
{
	return machine_random() % below;
}

/* ---- the configuration ---- */

static const char *const policies[] = { "drain",       "cohort", "mg1",  "srpt",
	                                "dbr",         "color",  "seda", "thread-per-connection",
	                                "user-threads" };

/* Some live keys, of which one changes now and then. */
static const char *some_setting(bool is_start)
{
	static char setting[SETTING_SIZE];
	static const char *const others[] = {
		FEW_CONNECTIONS,
		"limits.connections=1024",
		"limits.images_in_flight=3",
		"limits.images_in_flight=64",
		"server.durability=power",
		"server.durability=none",
		"server.respond_after=decode",
		"server.respond_after=store",
		"server.keep_originals=yes",
		"server.keep_originals=no",
	};

	if (draw(2)) {
		/* The first is no start: there would never be room for more. */
		const char *other = others[is_start + draw(COUNT_OF(others) - is_start)];

		clients_are_crowded |= strcmp(other, FEW_CONNECTIONS) == 0;
		return other;
	}
	snprintf(setting, sizeof setting, "scheduler.policy=%s",
	         policies[draw(COUNT_OF(policies))]);
	return setting;
}

static void load(struct conf *conf)
{
	static struct conf_source source;
	static char drawn[4][SETTING_SIZE];
	struct text errors;
	const char *settings[SETTINGS_MAX] = {
		("server.root=" DISK_ROOT),
		"server.listen=127.0.0.1:8080",
		"server.admin_listen=127.0.0.1:8081",
		"server.control=",
		"log.access=no",
		"input.formats=",
		"limits.connections_per_client=0",
	};
	size_t count = 7;

	snprintf(drawn[0], SETTING_SIZE, "scheduler.policy=%s", policies[draw(COUNT_OF(policies))]);
	settings[count++] = drawn[0];
	/* thread-per-connection serves no more connections than it has threads. */
	snprintf(drawn[3], SETTING_SIZE, "scheduler.threads=%u", client_count + (unsigned)draw(3));
	settings[count++] = drawn[3];
	for (unsigned i = 1; i < 3; i++) {
		snprintf(drawn[i], SETTING_SIZE, "%s", some_setting(true));
		settings[count++] = drawn[i];
	}
	text_init_growable(&errors, 1 << 16);
	if (conf_load(conf, &source, NULL, settings, count, &errors))
		FAIL("the configuration is wrong: %s", errors.data);
	text_fini(&errors);
	tell("%s, %s, %s, %s", drawn[0], drawn[1], drawn[2], drawn[3]);
}

static void change_something(void)
{
	const char *setting = some_setting(false);
	struct text report;

	text_init_growable(&report, 1 << 16);
	int err = reload_set(&reload, setting, &report);

	tell("%s: %s", setting, strerror(-err));
	if (err && err != -EBUSY)
		FAIL("%s: %s: %s", setting, strerror(-err), report.data);
	text_fini(&report);
}

/* ---- the main thread of the daemon ---- */

static void tick(void)
{
	program_tick();
	graph_tick(*program.graph);
	controllers_tick(*program.graph);
	reload_tick(&reload);
	machine_block(machine_now() + (reload.is_published ? TICK_OF_CHANGE_NS : TICK_NS));
}

/* Returns whether a client runs. */
static bool has_clients(void)
{
	return clients_left > 0;
}

static bool is_at_work(void)
{
	struct text work = TEXT_LOCAL(128);

	program_describe(&work);
	return strcmp(work.data, "0 images in flight, 0 connections") != 0;
}

static bool is_open(void)
{
	return !program_has_closed_admin();
}

/* Serves while that is so. Fails after some time. */
static void serve(bool (*goes_on)(void), uint64_t most_ns, const char *what)
{
	uint64_t until_ns = machine_now() + most_ns;

	while (goes_on()) {
		struct text work = TEXT_LOCAL(128);

		tick();
		if (machine_now() < until_ns)
			continue;
		program_describe(&work);
		FAIL("%s: %s", what, work.data);
	}
}

static void serve_and_change(void)
{
	uint64_t next_ns = machine_now() + draw(5 * NS_PER_S);

	while (has_clients()) {
		tick();
		if (machine_now() < next_ns)
			continue;
		change_something();
		next_ns = machine_now() + draw(10 * NS_PER_S);
	}
}

/* ---- the disk ---- */

/* Calls take some us, sometimes much longer, and rarely a second or more. Other threads may run
 * before each. */
static void take_time(void)
{
	if (draw(128) == 0)
		machine_block(machine_now() + draw(draw(8) ? 20 * NS_PER_MS : 2 * NS_PER_S));
	else
		machine_charge(draw(20000));
	disk.now_ns = machine_now() + DATE * NS_PER_S;
}

/* ---- clients ---- */

/* arg: the number of the client, as a pointer; NULL: the last one, which checks all. */
static void *run_client(void *arg)
{
	if (arg)
		client_run((unsigned)(uintptr_t)arg);
	else
		client_check_all();
	clients_left--;
	return NULL;
}

static void serve_clients(void)
{
	struct thread *client[CLIENTS_MAX];
	const unsigned count = client_count;

	clients_left = count;
	for (unsigned i = 0; i < count; i++)
		client[i] = machine_thread_new(run_client, (void *)(uintptr_t)(i + 1));
	serve_and_change();
	for (unsigned i = 0; i < count; i++)
		machine_thread_join(client[i]);
}

/* ---- seeds ---- */

/* After the last request, without faults. */
static void check_end(void)
{
	disk.fault_count = 0;
	disk.full_until = 0;
	serve(is_at_work, QUIET_NS, "work is left after the last request");
	tell("all work has ended");
	clients_left = 1;
	struct thread *last = machine_thread_new(run_client, NULL);

	serve(has_clients, 10 * QUIET_NS, "the last client does not end");
	machine_thread_join(last);
}

static void stop(void)
{
	uint64_t used, kept;

	program_announce_end();
	program_drain();
	serve(program_is_busy, QUIET_NS, "the drain does not end");
	program_close_admin();
	serve(is_open, QUIET_NS, "administrative connections do not end");
	program_stop();
	program_fini();
	pool_usage(&used, &kept);
	if (used)
		FAIL("%" PRIu64 " bytes of buffers are left at the end", used);
	pool_fini();
	if (net_open_count() || net_watch_count())
		FAIL("%u sockets and %u watches are left at the end", net_open_count(),
		     net_watch_count());
	if (disk_open_count() || event_open_count())
		FAIL("%u files and %u events are open at the end", disk_open_count(),
		     event_open_count());
}

static void run(uint64_t seed, const struct seed_fault *fault, unsigned count)
{
	static const struct options options = { .quiet = true };
	static struct trace_output trace = { .fd = -1 };

	machine.seed = seed;
	machine.date = DATE;
	machine.jitter = 3000;
	machine.skip = 1;
	machine_costs.line = 0;
	machine_start();
	disk_begin(seed);
	disk.now_ns = machine_now() + DATE * NS_PER_S;
	disk.wait = take_time;
	clients_begin();
	client_count = 1 + (unsigned)draw(draw(3) ? 5 : CLIENTS_MAX);
	load(&reload.conf);
	reload.options = &options;
	reload.trace = &trace;
	if (program_init(&reload.conf) || program_start())
		FAIL("the daemon does not start");
	memcpy(disk.fault, fault, count * sizeof *fault);
	disk.fault_count = count;
	disk.calls = 0;
	serve_clients();
	check_end();
	stop();
}

/* Only errors: tests/world/store has what ends a process. */
static unsigned draw_faults(uint64_t seed, struct seed_fault *fault)
{
	struct random random = { seed };
	unsigned count =
		random_next(&random) % 2 ? 0 : (unsigned)(random_next(&random) % SEED_FAULTS_MAX);
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		at += 1 + random_next(&random) % (2 * CALLS_PER_SEED / (count + 1));
		fault[i] = (struct seed_fault){
			.at = at,
			.kind = DISK_EIO + (unsigned)(random_next(&random) % 3),
			.seed = random_next(&random),
		};
	}
	return count;
}

static uint64_t now_ns(clockid_t id)
{
	return machine_now() + (id == CLOCK_REALTIME ? DATE * NS_PER_S : 0);
}

static struct random *chance(void)
{
	static struct random random;

	random.state = machine_random();
	return &random;
}

const struct seed_program seed_program = {
	.name = "daemon",
	.call = "call",
	.words = disk_fault_words,
	.draw = draw_faults,
	.run = run,
	.calls = disk_calls,
	.now_ns = now_ns,
	.chance = chance,
};

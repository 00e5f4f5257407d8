/* app.c - puts the program together, and takes it apart again. */
#include "app.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "background/background.h"
#include "base/clock.h"
#include "base/text.h"
#include "conf/conf_degrade.h"
#include "conf/conf_files.h"
#include "conf/conf_value.h"
#include "conn/http_server.h"
#include "daemon/program.h"
#include "image/image_service.h"
#include "image/upload_key.h"
#include "jail/jail.h"
#include "layout/cores.h"
#include "log/log.h"
#include "resource/admin_service.h"
#include "s3/s3_client.h"
#include "sched/core/graph.h"
#include "storage/storage.h"
#include "store/store.h"
#include "telemetry/process.h"

#define DECODE_PROGRAM "darkroom-decode"
#define DECODE_MAX 16 /* pictures at a time; more come together rarely, also with more cores */

static struct {
	struct http_server http;
	struct admin_service admin;
	struct image_service images;
	struct upload_keys keys;
	struct background background;
	struct server_counters counters;
	struct graph *graph;
	struct process process;
	size_t event_count_max, inbox_count_max; /* capacities of the queues */
} own;

static struct app parts = { &own.http, &own.images, &own.background, &own.counters };

static struct report_source reported = { .parts = &parts, .process = &own.process };

static struct plan plan;        /* scratch; main thread */
static unsigned step_count_max; /* of all levels of the configuration that was built last */

/* ---- for stages ---- */

const struct conf *app_conf(struct visit *v)
{
	return image_service_conf(app(v)->images);
}

/* ---- begin and end ---- */

/* Returns how many events of connections can exist at once. */
static size_t inbox_count_max(const struct conf *conf)
{
	return (size_t)conf->limits.connections * 2 + ADMIN_EVENTS_MAX;
}

/* Returns how many events can exist at once: of admitted images with their steps and store jobs,
 * and of connections with their removals. Queues of this capacity never refuse a push. */
static size_t event_count_max(const struct conf *conf, unsigned step_count)
{
	return (size_t)conf->limits.images_in_flight * (step_count + 2) + inbox_count_max(conf);
}

static int make_graph(const struct conf *conf)
{
	/* A power of two, as queues have it: the rest is for later variants and limits. */
	for (own.event_count_max = 1; own.event_count_max < event_count_max(conf, step_count_max);)
		own.event_count_max *= 2;
	own.inbox_count_max = inbox_count_max(conf);
	int err = graph_new(&own.graph, conf, &parts, own.event_count_max, own.inbox_count_max);

	if (err)
		log_error("graph: cannot make stages and threads: %s", strerror(-err));
	own.images.graph = own.images.admission.graph = own.http.graph = reported.graph = own.graph;
	own.images.budget.scarcity = own.http.scarcity = err ? NULL : graph_scarcity(own.graph);
	return err;
}

int program_check_variants(const struct conf *conf, unsigned *variant, char *error,
                           size_t error_size)
{
	struct conf_degrade degrade;
	int err = 0;

	conf_degrade_parse(conf->overload.degrade, &degrade);
	step_count_max = 0;
	/* Level 0 is the last one, and stays in the scratch. */
	for (unsigned n = degrade.count + 1; n > 0 && !err; n--) {
		err = plan_build(&plan, conf, n - 1, variant, error, error_size);
		if (plan.step_count > step_count_max)
			step_count_max = plan.step_count;
	}
	return err;
}

int program_check_addresses(const struct conf *conf)
{
	return listener_set_check(conf);
}

/* Returns what darkroom-decode is to do; 0: nothing. */
static uint32_t formats_of(const struct conf *conf)
{
	uint32_t formats = 0;

	for (unsigned f = FILE_PNG; f < FILE_FORMATS; f++) {
		const char *word = file_format_word(f);

		if (conf_fields_have(conf->input.formats, word, strlen(word)))
			formats |= UINT32_C(1) << f;
		if (conf_files_have(conf, f))
			formats |= JAIL_ENCODES(f);
	}
	return formats;
}

/* Starts darkroom-decode, which is next to this program. Without it only JPEGs are accepted and
 * made. */
static void start_jail(const struct conf *conf)
{
	uint64_t cores = cores_usable(), wanted = conf->experiment.decode_processes,
		 automatic = cores < 2            ? 2
	                     : cores < DECODE_MAX ? cores
	                                          : DECODE_MAX;
	char path[PATH_MAX + sizeof DECODE_PROGRAM] = "";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	while (n > 0 && path[n - 1] != '/')
		n--;
	snprintf(path + (n > 0 ? n : 0), sizeof DECODE_PROGRAM, "%s", DECODE_PROGRAM);
	jail_start(path, formats_of(conf), (unsigned)(wanted == CONF_AUTO ? automatic : wanted));
}

int program_init(const struct conf *conf)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = program_check_variants(conf, &variant, error, sizeof error);

	if (err) {
		log_error("%s", error);
		return err;
	}
	reported.start_ns = clock_ns();
	start_jail(conf); /* first: it is to have no descriptor of what follows */
	own.http.images = &own.images;
	own.http.remake = &own.background.remake;
	own.http.admin = &own.admin;
	own.admin.reports = (struct http_reports){ stats_report, metrics_report, &reported };
	if ((err = admin_service_init(&own.admin)))
		return err;
	if ((err = http_server_init(&own.http, conf)))
		goto fail_admin;
	process_open(&own.process);
	if ((err = image_service_init(&own.images, conf, &plan)))
		goto fail_http;
	upload_keys_init(&own.keys);
	own.images.keys = &own.keys;
	if ((err = background_init(&own.background, &own.images, &own.http.tokens.has_quotas)))
		goto fail_images;
	if ((err = make_graph(conf)))
		goto fail_background;
	if ((err = listener_set_open(&own.http.listeners, conf, graph_io_count(own.graph))) ||
	    (err = admin_open_agent(&own.admin, conf)))
		goto fail_graph;
	return 0;

fail_graph:
	graph_free(own.graph);
fail_background:
	background_fini(&own.background);
fail_images:
	image_service_fini(&own.images);
	upload_keys_fini(&own.keys);
fail_http:
	process_close(&own.process);
	http_server_fini(&own.http);
fail_admin:
	admin_service_fini(&own.admin);
	jail_stop();
	return err;
}

void program_fini(void)
{
	graph_free(own.graph);
	background_fini(&own.background);
	image_service_fini(&own.images);
	upload_keys_fini(&own.keys);
	process_close(&own.process);
	http_server_fini(&own.http);
	admin_service_fini(&own.admin);
	jail_stop();
}

void program_stop(void)
{
	graph_stop(own.graph);
	s3_client_stop(own.images.storage.objects); /* workers wait for it */
}

int program_start(void)
{
	int err = graph_start(own.graph);

	if (err)
		return err;
	err = s3_client_start(own.images.storage.objects);
	if (!err && storage_examine(&own.images.storage) == -EOPNOTSUPP)
		err = -EOPNOTSUPP;
	if (!err)
		err = background_start(&own.background);
	if (!err) {
		atomic_store(&own.http.is_ready, true);
		return 0;
	}
	while (admission_in_flight(&own.images.admission))
		usleep(1000); /* recovery has begun them */
	program_stop();
	return err;
}

void program_announce_end(void)
{
	atomic_store(&own.http.is_ending, true);
}

void program_drain(void)
{
	http_server_drain(&own.http);
	if (own.images.storage.objects) /* the sweep may wait for a list */
		atomic_store(&own.images.storage.objects->are_lists_over, true);
	background_stop(&own.background);
}

bool program_is_busy(void)
{
	return http_server_is_busy(&own.http) || admission_in_flight(&own.images.admission);
}

int program_tick(void)
{
	/* This thread changes the configuration and the schedule, so both stay valid here. */
	int http_ms = stats_stream_tick(&own.admin.stream, clock_ns(), stats_report, &reported),
	    storage_ms = storage_tick(&own.images.storage);

	return http_ms < 0 || (storage_ms >= 0 && storage_ms < http_ms) ? storage_ms : http_ms;
}

const char *program_first_setting(void)
{
	const struct setting_job *job = setting_queue_first(&own.admin.settings);

	return job ? job->setting : NULL;
}

void program_end_setting(int result, const char *report)
{
	setting_queue_end(&own.admin.settings, own.graph, result, report);
}

bool program_watch(int fd)
{
	if (!stats_stream_has_room(&own.admin.stream))
		return false;
	stats_stream_add(&own.admin.stream, fd);
	return true;
}

void program_serve_agent(void)
{
	admin_serve_agent(&own.admin, &own.http);
}

void program_close_admin(void)
{
	http_server_close_admin(&own.http);
	stats_stream_close(&own.admin.stream);
}

bool program_has_closed_admin(void)
{
	return http_server_has_closed_admin(&own.http);
}

/* ---- another configuration ---- */

int program_prepare(const struct conf *conf, struct text *errors)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = program_check_variants(conf, &variant, error, sizeof error); /* makes the plan */

	if (err) {
		text_printf(errors, "%s\n", error);
		return err;
	}
	size_t events = event_count_max(
		conf, conf_epochs_step_count_max(&own.images.epochs, step_count_max));

	if (inbox_count_max(conf) > own.inbox_count_max)
		text_puts(errors, "limits.connections can grow beyond its value at startup only "
		                  "by a restart\n");
	else if (events > own.event_count_max)
		text_printf(errors,
		            "limits.images_in_flight and the variants need room for %zu events at "
		            "once, but there is room for %zu: this needs a restart, or fewer "
		            "images in flight\n",
		            events, own.event_count_max);
	else
		return conf_epochs_prepare(&own.images.epochs, conf, &plan);
	return -EINVAL;
}

void program_commit(void)
{
	struct conf_epochs *epochs = &own.images.epochs;

	/* First, so that no image is promised what the store does not do yet. Images in flight may
	 * be flushed in vain, or lose a flush that they were promised. */
	store_survive_power(&own.images.store,
	                    epochs->prepared->conf.server.durability == CONF_DURABILITY_POWER);
	conf_epochs_commit(epochs, graph_is_settled(own.graph));
	admission_change(&own.images.admission, &conf_epochs_now(epochs)->conf);
	disk_reads_set_max(&own.images.reads,
	                   image_service_reads_max(&conf_epochs_now(epochs)->conf));
	feeder_call(&own.background.sweep.feeder);
}

void program_cancel(void)
{
	conf_epochs_cancel(&own.images.epochs);
}

/* ---- parts ---- */

bool program_must_restart(void)
{
	return store_must_restart(&own.images.store);
}

void program_describe(struct text *to)
{
	uint64_t images = admission_in_flight(&own.images.admission),
		 connections = atomic_load(&own.http.connections);

	text_printf(to, "%" PRIu64 " image%s in flight, %" PRIu64 " connection%s", images,
	            plural(images), connections, plural(connections));
}

void program_remake(struct text *to)
{
	feeder_call(&own.background.remake.feeder);
	remake_report(&own.background.remake, to);
}

void program_quotas(struct text *to)
{
	quota_report(&own.http.tokens, &own.images.store.usage, to);
}

const struct program program = {
	.graph = &own.graph,
	.tokens = &own.http.tokens,
	.url = own.http.listeners.url,
	.images_stored = &own.counters.images_stored,
	.wake_fd = &own.admin.stream.wake_fd,
	.agent_fd = &own.admin.agent_fd,
};

/* app.c - puts the program together, and takes it apart again. */
#include "app.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "conf/conf_degrade.h"
#include "http/http_server.h"
#include "image/image_service.h"
#include "image/remake_report.h"
#include "image/storage.h"
#include "log/log.h"
#include "metrics_report.h"
#include "quota_report.h"
#include "sched/graph.h"
#include "sched/graph_draw.h"
#include "server_counters.h"
#include "stats_report.h"
#include "store/store_check.h"
#include "telemetry/process.h"

struct app {
	struct http_server http;
	struct image_service images;
	struct server_counters counters;
	struct graph *graph;
	struct process process;
	uint64_t start_ns;
	size_t event_count_max, inbox_count_max; /* capacities of the queues */
};

struct app app;

static struct plan plan;        /* scratch; main thread */
static unsigned step_count_max; /* of all levels of the configuration that was built last */

/* ---- for stages ---- */

const struct conf *app_conf(struct visit *v)
{
	return image_service_conf(app_images(v));
}

struct http_server *app_http(struct visit *v)
{
	struct app *a = visit_app(v);

	return &a->http;
}

struct image_service *app_images(struct visit *v)
{
	struct app *a = visit_app(v);

	return &a->images;
}

struct budget *app_budget(struct visit *v)
{
	return &app_images(v)->budget;
}

struct store *app_store(struct visit *v)
{
	return &app_images(v)->store;
}

struct server_counters *app_counters(struct visit *v)
{
	struct app *a = visit_app(v);

	return &a->counters;
}

/* ---- reports ---- */

static struct report_source source_of(struct app *a)
{
	return (struct report_source){ .http = &a->http,
		                       .images = &a->images,
		                       .counters = &a->counters,
		                       .graph = a->graph,
		                       .process = &a->process,
		                       .start_ns = a->start_ns };
}

static void write_stats(void *arg, struct text *to)
{
	const struct report_source source = source_of(arg);

	stats_report(&source, to);
}

static void write_metrics(void *arg, struct text *to)
{
	const struct report_source source = source_of(arg);

	metrics_report(&source, to);
}

static void write_graph(void *arg, struct text *to, bool is_svg)
{
	const struct app *a = arg;

	(is_svg ? graph_draw_svg : graph_draw_dot)(a->graph, to);
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

static int make_graph(struct app *a, const struct conf *conf)
{
	/* A power of two, as queues have it: the rest is for later variants and limits. */
	for (a->event_count_max = 1; a->event_count_max < event_count_max(conf, step_count_max);)
		a->event_count_max *= 2;
	a->inbox_count_max = inbox_count_max(conf);
	int err = graph_new(&a->graph, conf, a, a->event_count_max, a->inbox_count_max);

	if (err)
		log_error("graph: cannot make stages and threads: %s", strerror(-err));
	a->images.graph = a->http.graph = a->graph;
	a->images.budget.scarcity = a->http.scarcity = err ? NULL : graph_scarcity(a->graph);
	return err;
}

int app_check_variants(const struct conf *conf, unsigned *variant, char *error, size_t error_size)
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

void app_check_addresses(const struct conf *conf)
{
	listener_set_check(conf);
}

int app_init(struct app *a, const struct conf *conf)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = app_check_variants(conf, &variant, error, sizeof error);

	if (err) {
		log_error("%s", error);
		return err;
	}
	a->start_ns = clock_ns();
	a->images.sweep.has_quotas = &a->http.tokens.has_quotas;
	a->http.images = &a->images;
	a->http.reports = (struct http_reports){ write_stats, write_metrics, write_graph, a };
	err = http_server_init(&a->http, conf);
	if (err)
		return err;
	process_open(&a->process);
	if ((err = image_service_init(&a->images, conf, &plan)))
		goto fail_http;
	if ((err = make_graph(a, conf)))
		goto fail_images;
	if ((err = http_server_listen(&a->http, conf)))
		goto fail_graph;
	return 0;

fail_graph:
	graph_free(a->graph);
fail_images:
	image_service_fini(&a->images);
fail_http:
	process_close(&a->process);
	http_server_fini(&a->http);
	return err;
}

void app_fini(struct app *a)
{
	graph_free(a->graph);
	image_service_fini(&a->images);
	process_close(&a->process);
	http_server_fini(&a->http);
}

static void stop_threads(struct app *a)
{
	missing_stop(&a->images.missing);
	remake_stop(&a->images.remake);
	recovery_stop(&a->images.recovery);
	sweep_stop(&a->images.sweep);
}

/* Starts what works with files only. */
static int start_file_threads(struct app *a)
{
	int err = remake_start(&a->images.remake);

	return err ? err : missing_start(&a->images.missing);
}

/* Starts what works beside the graph. */
static int start_threads(struct app *a)
{
	int err = storage_start(&a->images);

	if (!err && spooling_exists(&a->images))
		err = recovery_start(&a->images.recovery);
	if (!err && !a->images.s3)
		err = start_file_threads(a);
	if (!err)
		err = sweep_start(&a->images.sweep);
	if (err)
		stop_threads(a);
	return err;
}

int app_start(struct app *a)
{
	int err = graph_start(a->graph);

	if (err)
		return err;
	err = start_threads(a);
	if (!err) {
		atomic_store(&a->http.is_ready, true);
		return 0;
	}
	while (atomic_load(&a->images.in_flight))
		usleep(1000); /* recovery has begun them */
	app_stop(a);
	return err;
}

void app_announce_end(struct app *a)
{
	atomic_store(&a->http.is_ending, true);
}

void app_drain(struct app *a)
{
	http_server_drain(&a->http);
	stop_threads(a);
}

bool app_is_busy(const struct app *a)
{
	return http_server_is_busy(&a->http) || atomic_load(&a->images.in_flight);
}

int app_tick(struct app *a)
{
	int http_ms = http_server_tick(&a->http), storage_ms = storage_tick(&a->images);

	return http_ms < 0 || (storage_ms >= 0 && storage_ms < http_ms) ? storage_ms : http_ms;
}

const char *app_first_setting(struct app *a)
{
	const struct setting_job *job = setting_queue_first(&a->http.settings);

	return job ? job->setting : NULL;
}

void app_end_setting(struct app *a, int result, const char *report)
{
	setting_queue_end(&a->http.settings, a->graph, result, report);
}

int app_take_trace(struct app *a, bool is_on, unsigned *seconds)
{
	return trace_slot_take(&a->http.trace, is_on, seconds);
}

bool app_has_watch_room(const struct app *a)
{
	return stats_stream_has_room(&a->http.stream);
}

void app_watch(struct app *a, int fd)
{
	stats_stream_add(&a->http.stream, fd);
}

int app_wake_fd(const struct app *a)
{
	return a->http.stream.wake_fd;
}

int app_agent_fd(const struct app *a)
{
	return a->http.agent.fd;
}

void app_serve_agent(struct app *a)
{
	agent_serve(&a->http.agent, &a->http);
}

void app_close_admin(struct app *a)
{
	http_server_close_admin(&a->http);
}

bool app_has_closed_admin(const struct app *a)
{
	return http_server_has_closed_admin(&a->http);
}

void app_stop(struct app *a)
{
	graph_stop(a->graph);
	storage_stop(&a->images); /* workers wait for it */
}

/* ---- another configuration ---- */

/* Builds the plan of a new configuration. Returns 0, or -EINVAL with the problem as a line of
 * errors. */
static int build_plan(const struct conf *conf, struct text *errors)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = app_check_variants(conf, &variant, error, sizeof error);

	if (err)
		text_printf(errors, "%s\n", error);
	return err;
}

int app_check_room(struct app *a, const struct conf *conf, struct text *errors)
{
	int err = build_plan(conf, errors);

	if (err)
		return err;
	size_t events = event_count_max(
		conf, conf_epochs_step_count_max(&a->images.epochs, step_count_max));

	if (conf->limits.body_bytes > conf->limits.memory_budget / 2)
		text_puts(errors, "limits.body_bytes would be more than half of "
		                  "limits.memory_budget, which needs a restart\n");
	else if (inbox_count_max(conf) > a->inbox_count_max)
		text_puts(errors, "limits.connections can grow beyond its value at startup only "
		                  "by a restart\n");
	else if (events > a->event_count_max)
		text_printf(errors,
		            "limits.images_in_flight and the variants need room for %zu events at "
		            "once, but there is room for %zu: this needs a restart, or fewer "
		            "images in flight\n",
		            events, a->event_count_max);
	else
		return 0;
	return -EINVAL;
}

int app_change_prepare(struct app *a, const struct conf *conf, struct text *errors)
{
	int err = build_plan(conf, errors);

	return err ? err : conf_epochs_prepare(&a->images.epochs, conf, &plan);
}

void app_change_commit(struct app *a)
{
	struct conf_epochs *epochs = &a->images.epochs;

	/* First, so that no image is promised what the store does not do yet. Images in flight may
	 * be flushed in vain, or lose a flush that they were promised. */
	store_survive_power(&a->images.store,
	                    epochs->prepared->conf.server.durability == CONF_DURABILITY_POWER);
	conf_epochs_commit(epochs);
	admission_change(&a->images.admission, conf_epochs_conf(epochs));
}

void app_change_cancel(struct app *a)
{
	conf_epochs_cancel(&a->images.epochs);
}

/* ---- parts ---- */

struct graph *app_graph(const struct app *a)
{
	return a->graph;
}

struct tokens *app_tokens(struct app *a)
{
	return &a->http.tokens;
}

const char *app_url(const struct app *a)
{
	return a->http.listeners.url;
}

uint64_t app_images_stored(const struct app *a)
{
	return atomic_load(&a->counters.images_stored);
}

bool app_must_restart(const struct app *a)
{
	return store_must_restart(&a->images.store);
}

void app_describe(const struct app *a, struct text *to)
{
	text_printf(to, "%" PRIu64 " images in flight, %" PRIu64 " connections",
	            atomic_load(&a->images.in_flight), atomic_load(&a->http.connections));
}

void app_recover(struct app *a)
{
	recovery_call(&a->images.recovery);
}

void app_remake(struct app *a, struct text *to)
{
	remake_call(&a->images.remake);
	remake_report(&a->images.remake, to);
}

void app_quotas(struct app *a, struct text *to)
{
	quota_report(&a->http.tokens, &a->images.store.usage, to);
}

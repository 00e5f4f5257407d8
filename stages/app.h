/*
 * app.h - the program's own context: what it consists of, for its stages; its life, for main.
 */
#ifndef DARKROOM_APP_H
#define DARKROOM_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct budget;
struct conf;
struct graph;
struct http_server;
struct image_service;
struct server_counters;
struct store;
struct text;
struct tokens;
struct visit;

/* ---- for stages: in a visit, any thread ---- */

/* Returns the current configuration, which is valid until the end of the visit. */
const struct conf *app_conf(struct visit *v);

struct http_server *app_http(struct visit *v);
struct image_service *app_images(struct visit *v);
struct budget *app_budget(struct visit *v);
struct store *app_store(struct visit *v);
struct server_counters *app_counters(struct visit *v);

/* ---- for the main thread ---- */

extern struct app app; /* the one instance */

/* Checks the operations of all variants. Returns 0, or -EINVAL with the problem in error and the
 * index of the variant. */
int app_check_variants(const struct conf *conf, unsigned *variant, char *error, size_t error_size);

/* Logs each address to listen on whose host cannot be resolved. */
void app_check_addresses(const struct conf *conf);

/* Opens the store, makes the graph and opens the listeners; starts no thread. Returns 0, or -errno
 * with the reason logged. */
int app_init(struct app *a, const struct conf *conf);

/* After app_stop(), with no image in flight. */
void app_fini(struct app *a);

/* Starts all threads; /readyz then returns 200. Returns 0, or -errno with the reason logged and no
 * thread running. */
int app_start(struct app *a);

/* Makes /readyz return 503. Everything else is still served. */
void app_announce_end(struct app *a);

/* Stops accepting connections; app_is_busy() tells when the requests in progress have ended. */
void app_drain(struct app *a);
bool app_is_busy(const struct app *a);

/* What the main thread does regularly: see tick in daemon/program.h. */
int app_tick(struct app *a);
int app_wake_fd(const struct app *a);
int app_agent_fd(const struct app *a);
void app_serve_agent(struct app *a);
const char *app_first_setting(struct app *a);
void app_end_setting(struct app *a, int result, const char *report);
int app_take_trace(struct app *a, bool is_on, unsigned *seconds);

/* Ends administrative connections, for which a drain does not wait. */
void app_close_admin(struct app *a);
bool app_has_closed_admin(const struct app *a);

/* Stops and joins all threads. */
void app_stop(struct app *a);

/* Checks whether what was allocated at startup has room for the configuration. Returns 0, or
 * -EINVAL with the problem as a line of errors. */
int app_check_room(struct app *a, const struct conf *conf, struct text *errors);

/*
 * Applies another configuration in three steps: prepare; graph_switch() by the caller; commit, or
 * cancel if that failed. app_change_prepare() returns 0, or -errno with the problem as a line of
 * errors and nothing to cancel.
 */
int app_change_prepare(struct app *a, const struct conf *conf, struct text *errors);
void app_change_commit(struct app *a);
void app_change_cancel(struct app *a);

struct graph *app_graph(const struct app *a);
struct tokens *app_tokens(struct app *a);
const char *app_url(const struct app *a); /* of the first listener */
uint64_t app_images_stored(const struct app *a);

/* See must_restart in daemon/program.h. */
bool app_must_restart(const struct app *a);

/* Processes images that were added to the spool. */
void app_recover(struct app *a);

/* Clients that read the figures: see watch in daemon/program.h. */
bool app_has_watch_room(const struct app *a);
void app_watch(struct app *a, int fd);

/* Calls remake, and appends its counters as a line of JSON. */
void app_remake(struct app *a, struct text *to);

/* Appends what each token may use, and uses. */
void app_quotas(struct app *a, struct text *to);

/* Appends "3 images in flight, 5 connections". */
void app_describe(const struct app *a, struct text *to);

#endif

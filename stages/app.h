/* app.h - what the program consists of: for its stages in a visit, and for main as a whole. */
#ifndef DARKROOM_APP_H
#define DARKROOM_APP_H

#include "sched/core/visit.h"

struct background;
struct conf;
struct http_server;
struct image_service;
struct program;
struct server_counters;

/* ---- for stages: in a visit, any thread ---- */

/* Returns the current configuration, which is valid until the end of the visit. */
const struct conf *app_conf(struct visit *v);

/* The parts of the program; all borrowed, and fixed. */
struct app {
	struct http_server *http;
	struct image_service *images;
	struct background *background;
	struct server_counters *counters;
};

static inline const struct app *app(struct visit *v)
{
	return visit_app(v);
}

/* ---- for the main thread ---- */

/* The program as the daemon runs it (daemon/program.h). */
extern const struct program app_program;

#endif

/* server.h - the parts of a daemon that run here, one for each node, and what clients ask of it. */
#ifndef DARKROOM_TESTS_WORLD_SERVER_H
#define DARKROOM_TESTS_WORLD_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "background/background.h"
#include "claims.h"
#include "cluster.h"
#include "image/image_service.h"
#include "image/upload_key.h"

struct server {
	struct node *node;
	int number;
	struct image_service service;
	struct upload_keys keys;
	struct sweep sweep;
	bool is_busy;              /* its only thread that probes and sweeps */
	unsigned steps[TASKS_MAX]; /* that are left */
	struct timer restart, clock;
	int64_t set_back_ns; /* when `clock` ends */
};

static inline struct storage *storage_of(struct server *s)
{
	return &s->service.storage;
}

/* ---- acts.c: by the task that runs, which is the server's ---- */

/* Returns a new image, or NULL: there are enough. key: NULL, or of its upload. */
struct photo *new_photo(const struct key *key, unsigned part);

/* Does something that a client asks for. */
void act_of_client(struct server *s);

/* Makes the images of the originals that its disk has. */
void act_recover(struct server *s);

/* Lists all images, or reads a file of one, and compares that with what was promised. */
void act_list(struct server *s);
void act_read(struct server *s, struct photo *image, unsigned file);

#endif

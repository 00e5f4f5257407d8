/*
 * client_limits.h - what one client may upload: images in flight, and images per second.
 *
 * Both are checked when the header of an upload is there, before its body is read. A form may have
 * more images than that: its images in flight are checked once more when their number is known, and
 * its rate is charged for them. Any thread.
 */
#ifndef DARKROOM_IMAGE_CLIENT_LIMITS_H
#define DARKROOM_IMAGE_CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct client_key;
struct conf;
struct image_service;
struct problem;

/* Returns whether the client may upload now, and takes one image of its rate. Otherwise sets the
 * problem: 429. */
bool client_limits_admit(struct image_service *s, const struct client_key *client,
                         struct problem *problem);

/* Returns whether the client has more than three quarters of all images in flight. An address of
 * this machine has not: it may be a proxy. */
bool client_limits_is_heavy(struct image_service *s, const struct client_key *client);

/* Counts n images of the client, of an upload that began with this configuration. Returns true, or
 * false with the problem set. *is_counted: each of them ends with a drop from s->clients. */
bool client_limits_begin(struct image_service *s, const struct conf *conf,
                         const struct client_key *client, unsigned n, bool *is_counted,
                         struct problem *problem);

#endif

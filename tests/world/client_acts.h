/*
 * client_acts.h - clients of a daemon: what they ask for, and what they may rely on. Some do what
 * no client should.
 *
 * A client is a thread of the machine. It knows each image that was promised to it, and all read
 * the images of each other.
 */
#ifndef DARKROOM_TESTS_WORLD_CLIENT_ACTS_H
#define DARKROOM_TESTS_WORLD_CLIENT_ACTS_H

#define CLIENTS_MAX 16
#define PORT 8080
#define ADMIN_PORT 8081

/* Makes the pictures that are uploaded. */
void clients_begin(void);

/* Does some things that a client does. In a thread of its own. number: from 1 to CLIENTS_MAX. */
void client_run(unsigned number);

/* What the last client does, in a thread of its own: all images that were promised are there, and
 * nothing else is left of the work of the others. */
void client_check_all(void);

#endif

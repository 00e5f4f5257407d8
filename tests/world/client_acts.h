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

/* The thread of a client: arg is its number, as a pointer. It does some things and ends. */
void *client_run(void *arg);

/* The thread of the last client: all images that were promised are there, and nothing else is left
 * of the work of the others. arg: NULL. */
void *client_check_all(void *arg);

#endif

/*
 * s3_address.h - where the endpoint's name leads: at the start, and again while the store is away.
 *
 * The sandbox has no resolver, and a name server may be silent for seconds. So a process without
 * the sandbox, forked before, looks the name up when it is asked (opener_fork()). It can be asked
 * nothing else. One thread at a time.
 */
#ifndef DARKROOM_S3_ADDRESS_H
#define DARKROOM_S3_ADDRESS_H

#include <stdbool.h>

struct conf_endpoint;

#define S3_ADDRESS_MAX 1024

struct s3_address {
	const struct conf_endpoint *endpoint;
	int fd; /* -1: there is no process */
	bool is_asked;
	char line[S3_ADDRESS_MAX]; /* "HOST:PORT:ADDRESS,..." as libcurl reads it */
};

/* Looks the host up, and starts the process, which ends when fd is closed. Returns 0, or -errno
 * with the reason logged. Blocks; main thread, before any thread starts. Borrows the endpoint. */
int s3_address_open(struct s3_address *a, const struct conf_endpoint *endpoint);

/* Asks the process, unless it has not answered yet. Does not block, as the next one. */
void s3_address_ask(struct s3_address *a);

/* Takes the answer if it has come. Returns whether it has changed the line. */
bool s3_address_take(struct s3_address *a);

#endif

/*
 * exchange.h - a client's connection: requests, and their answers, which must be well formed.
 *
 * The thread of the client.
 */
#ifndef DARKROOM_TESTS_WORLD_EXCHANGE_H
#define DARKROOM_TESTS_WORLD_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "net.h"
#include "seeds.h"

#define ANSWER_NS (60 * NS_PER_S) /* in which each request is answered */
#define ANSWER_MAX ((size_t)1 << 20)
#define REQUEST_MAX ((size_t)256 << 10)

struct client {
	unsigned number;
	struct socket *socket;
	bool is_used; /* the socket has had a request */
	char request[REQUEST_MAX];
	size_t size;
	char in[ANSWER_MAX]; /* that has come */
	size_t come, answer_size;
	unsigned status; /* of the last answer */
	size_t head_size, body_size;
	const char *body;
};

/* Returns whether it is of the daemon's machine: only such clients may remove images. */
bool is_of_this_machine(const struct client *c);

/* The daemon may close a connection before its first request, so that there is room for others. */
extern bool clients_are_crowded;

/* ---- the request ---- */

void begin_request(struct client *c, const char *method, const char *path);
void put_bytes(struct client *c, const void *data, size_t size);
void put_text(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the connection ---- */

void forget_socket(struct client *c);

/* Connects, unless the client is connected. */
void need_socket(struct client *c, unsigned port);

/* Waits for a drawn time. */
void pause_for(uint64_t max_ns);

/* Sends the first bytes of the request in pieces, with pauses. Returns false if the daemon has
 * closed. */
bool send_pieces(struct client *c, size_t size, uint64_t pause_ns, uint64_t until_ns);

enum outcome {
	ANSWERED,
	CLOSED, /* without any answer */
	BROKEN, /* in an answer */
	LATE
};

extern const char *const outcomes[];

/* Receives some more of an answer. Returns ANSWERED as long as there is more. */
enum outcome receive(struct client *c, uint64_t until_ns);

/* Reads the next answer. is_head: it has no body. */
enum outcome read_answer(struct client *c, bool is_head, uint64_t until_ns);

/* Ends an exchange whose answer was read. Closes the connection if the answer says so, and now and
 * then without that. */
void end_exchange(struct client *c);

/* Sends the request and reads its answer, as clients should. A connection that was idle may have
 * been closed: then the request is sent again. Without an answer, a promise is broken. */
void exchange(struct client *c, bool is_head);

/* Returns the value of a header field of the answer, or NULL. */
const char *answer_field(const struct client *c, const char *name);

#endif

/*
 * shares.h - what each client has of the machine: admitted work in flight, and what is expected of
 * uploads that it has announced. By slots of clients.h: clients of one slot share, as in stochastic
 * fairness queueing (McKenney 1990).
 *
 * An upload is announced when its header has been admitted, until its body has come. A client may
 * announce any number and send none. So announcements have a claim by what their client completes:
 * of the announced work x, x * y / (x + y) is expected, if y has come lately. That is nearly x for
 * a client that completes its uploads. It is 0 for one that completes none, and never more than y,
 * however many headers come. So a flood of headers takes no room, even from an honest client's
 * address. Images are counted in the same way, but one is expected of any client.
 *
 * Clients have turns (client_turns.h), so that none is served more than another one that waits. So
 * an upload ends when its client has been served its own work, and each other client at most as
 * much (fair queueing: Demers, Keshav & Shenker 1989). The work of a client that has more than that
 * does not delay it. The caller passes the time and locks.
 */
#ifndef DARKROOM_ADMISSION_SHARES_H
#define DARKROOM_ADMISSION_SHARES_H

#include <stdint.h>

#include "clients.h"

/* Images, and their work in the unit of overload.h. */
struct load {
	uint64_t images, work;
};

struct share {
	uint64_t in_flight;    /* work whose body has come, and that has not ended */
	struct load announced; /* uploads, counted as one image each */
	struct load come;      /* lately: halved with each window */
	uint64_t halved_ns;    /* when */
	struct load claim;     /* of what is announced, as of the last look */
};

/* All zero at first, but for the window. */
struct shares {
	uint64_t window_ns; /* for what has come lately */
	struct load claims; /* of all clients, as of their last looks */
	struct share client[CLIENT_SLOTS];
};

/* An upload of that work is announced. Returns how much of it is counted: a client announces any
 * length. */
uint64_t shares_announce(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns);

/* That upload is no longer announced: its body has come, or never will. work: what was counted. */
void shares_forget(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns);

/* Images whose body has come begin, and their work ends. */
void shares_begin(struct shares *s, unsigned client, unsigned images, uint64_t work,
                  uint64_t now_ns);
void shares_end(struct shares *s, unsigned client, uint64_t work);

/* Looks at the claims of all clients. Returns the work that is done before an upload of that work
 * by the client ends, with this upload. */
uint64_t shares_look(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns);

#endif

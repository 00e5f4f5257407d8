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
 * Room is given by deficit, not by size. `recent` is the work of a client that came lately, with a
 * half-life of experiment.share_half_life. A client whose recent work is 0 may use all room. One
 * with as much as the typical client leaves experiment.share_reserve of it free, one with much more
 * up to twice that. What is typical is the mean over all recent work of its client's recent work.
 * Under overload the load is as high as the clients in front of their share find room. So the
 * reserve is free for those behind theirs, as long as these alone do not overload the machine. A
 * refused client falls behind with time, so its claim grows. The size of an upload does not matter:
 * a large picture is refused as often as small ones of its client, and delays the next ones of its
 * client for longer.
 *
 * Work in flight of one client counts for others up to a quantum, or as much as they have
 * themselves. Clients have turns (client_turns.h), so more than that does not delay others (fair
 * queueing: Demers, Keshav & Shenker 1989). The caller passes the time and locks.
 */
#ifndef DARKROOM_ADMISSION_SHARES_H
#define DARKROOM_ADMISSION_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "clients.h"

/* Images, and their work: the CPU time in ns that they are expected to need. */
struct load {
	uint64_t images, work;
};

struct share {
	uint64_t in_flight;    /* work whose body has come, and that has not ended */
	struct load announced; /* uploads, counted as one image each */
	struct load come;      /* lately: halved with each window */
	uint64_t halved_ns;    /* when */
	struct load claim;     /* of what is announced, as of the last look */
	double recent;         /* work that has come; in a unit that shrinks by the half-life */
};

/* All zero at first, but for the first members. */
struct shares {
	uint64_t window_ns; /* for what has come lately */
	uint64_t half_life_ns;
	double reserve; /* below 0.5 */

	struct load claims;               /* of all clients, as of their last looks */
	uint64_t unit_ns;                 /* when the unit of `recent` was that of work */
	double recent, squares;           /* of all clients: sums of `recent` and of its square */
	uint64_t busy[CLIENT_SLOTS / 64]; /* bits: clients with work in flight or announced */
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

/* What a client finds. */
struct shares_view {
	uint64_t work; /* in flight and claimed, of which others' counts up to the quantum */
	double room;   /* the share of all room that it may use */
	bool is_heavy; /* it has three quarters of all recent work */
};

/* Looks at the claims of all clients that have uploads, for one client. */
struct shares_view shares_look(struct shares *s, unsigned client, uint64_t quantum,
                               uint64_t now_ns);

/* Returns after how many seconds the client's room exceeds what is taken, if the others go on as
 * they do; 0: it does now, or never. */
double shares_wait_s(const struct shares *s, unsigned client, double taken);

#endif

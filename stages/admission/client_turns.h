/*
 * client_turns.h - the clients' turns at jpeg_decode: the client that was served least is next.
 *
 * Service is CPU time, as in start-time fair queueing (Goyal, Vin & Cheng 1996). A client that has
 * sent nothing for a while begins a little behind the virtual time. That is at least the service of
 * the image that began last, and grows by what each client's share is of the time spent (Parekh &
 * Gallager 1993). Clients that were served no more go in the order of their images' arrival. So
 * clients with small images do not wait behind clients with large ones, and in a crowd of clients
 * with few images each, nobody waits for all others to have had as much.
 *
 * The scheduler knows no clients. An image that leaves the stage's queue while it is another
 * client's turn is kept here, and the image whose turn it is goes first. While several clients have
 * images in flight, each may have `window` of them between the begin of decoding and the end of
 * encoding. So policies that serve a stage until its queue is empty come to the next stage. While
 * one client alone has images, policy and discipline decide.
 *
 * An image is urgent if its client has few images in flight, compared with the client that has most
 * of them and no small part of all, and is not far ahead of that one. It is also urgent if it is
 * short while a long image of another client holds a core, and its client was served less than that
 * one. Urgent images precede others in every stage, and interrupt them. So neither the flood of one
 * client nor a PNG of many pixels holds up another client's image, under any policy.
 *
 * While an image waits for memory, its client's other images are kept. So another client's image
 * stands behind few of them in the line for memory.
 *
 * Clients of one slot of clients.h share a turn, so that a client costs no memory. With
 * experiment.fair_clients = no all clients have one slot, and are like one client.
 *
 * Locked inside; the lock is held for a few instructions per client with waiting images. Any
 * thread.
 */
#ifndef DARKROOM_ADMISSION_CLIENT_TURNS_H
#define DARKROOM_ADMISSION_CLIENT_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "clients.h"

/* An image that waits to be decoded. Embedded in it. */
struct turn {
	unsigned slot;
	uint64_t expected_ns; /* CPU time that it is expected to need */
	uint64_t number;      /* in the order of arrival */
	bool is_urgent, was_kept, has_ended;
	struct turn *next; /* in its slot, or in a list that a function returns */
};

struct turn_slot {
	struct turn *first, *last; /* kept, in the order of their turns */
	unsigned queued;           /* in the stage's queue */
	unsigned kept;
	unsigned begun; /* taken, and not encoded */
	uint64_t served_ns;
	uint64_t oldest;  /* number of its first image that has not begun, as far as known */
	int memory_waits; /* images that wait for memory; -1: one has it before it is counted */
	struct turn_slot *next, *previous; /* in the ring; NULL: not in it */
};

struct client_turns {
	pthread_mutex_t lock;
	unsigned window;
	unsigned queued, in_flight; /* of all slots */
	unsigned present;           /* slots that have an image in flight */
	bool is_direct;             /* threads call all stages of their connection */
	uint64_t contended_ns;      /* when a client came while another one had images */
	uint64_t served_ns;         /* the virtual time */
	uint64_t added;             /* images, since startup */
	unsigned long_begun;        /* long images that were taken, and not encoded */
	uint64_t long_served_ns;    /* of the slot that was served most when one was taken */
	struct turn_slot *largest;  /* had most images in flight when it last sent one; or NULL */
	/* Slots that have images and may have a turn. */
	struct turn_slot ring;
	unsigned ring_count;
	struct turn_slot slot[CLIENT_SLOTS];
};

/* window: at least as many images as threads work on at once. */
void client_turns_init(struct client_turns *t, unsigned window);

/* No image may be in flight. */
void client_turns_fini(struct client_turns *t);

/* An image of a client of the slot is about to be sent to the stage; cost.h expects that much CPU
 * time. Returns whether it is urgent. */
bool client_turns_add(struct client_turns *t, struct turn *turn, unsigned slot,
                      uint64_t expected_ns);

/*
 * The image has left the queue; its event is parked. Returns the image to decode now: this one, or
 * a kept one, whose event is now the caller's. NULL: none; this one is kept. With is_direct,
 * under policy thread-per-connection, it is this one unless several clients have had images within
 * the last second. *resumed becomes a list of images whose events the caller must push to the
 * stage.
 */
struct turn *client_turns_take(struct client_turns *t, struct turn *turn, bool is_direct,
                               struct turn **resumed);

/* An image of the slot waits for memory. The image may have it already. */
void client_turns_memory_wait(struct client_turns *t, unsigned slot);

/* An image of the slot had to wait, and has its memory. Returns a list as above. */
struct turn *client_turns_memory_granted(struct client_turns *t, unsigned slot);

/* An image that was taken needs no core any more; it took spent_ns of CPU time. Its thread
 * may call this again. Returns a list as above. */
struct turn *client_turns_ended(struct client_turns *t, struct turn *turn, uint64_t spent_ns);

#endif

/* client_list.h - lists of clients that wait for a time, in the order of these times. */
#ifndef DARKROOM_LOADGEN_LOAD_CLIENT_LIST_H
#define DARKROOM_LOADGEN_LOAD_CLIENT_LIST_H

#include <stddef.h>
#include <stdint.h>

/* A list, or the place of a client in one. */
struct client_link {
	struct client_link *prev, *next;
	uint64_t when_ns;
};

static inline void client_list_init(struct client_link *list)
{
	list->next = list->prev = list;
}

/* Does nothing if the client is in no list. */
static inline void client_list_remove(struct client_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	client_list_init(link);
}

/* Moves the client to the end of the list, whose times must not be later. */
static inline void client_list_move(struct client_link *list, struct client_link *link,
                                    uint64_t when_ns)
{
	client_list_remove(link);
	link->when_ns = when_ns;
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

/* Moves the client to its place in the list, where other times may be later. */
static inline void client_list_insert(struct client_link *list, struct client_link *link,
                                      uint64_t when_ns)
{
	struct client_link *at = list;

	client_list_remove(link);
	while (at->prev != list && at->prev->when_ns > when_ns)
		at = at->prev;
	client_list_move(at, link, when_ns);
}

/* Returns NULL if the list is empty. */
static inline struct client_link *client_list_first(const struct client_link *list)
{
	return list->next == list ? NULL : list->next;
}

#endif

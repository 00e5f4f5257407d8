/*
 * net.h - TCP in memory: sockets of the daemon, as descriptors, and of clients; and the daemon's
 * event loops, which wait for both.
 *
 * A connection has a buffer for each direction, whose room is drawn. Calls of the daemon take and
 * give random parts, are interrupted, and find no room. Ready descriptors come in random order.
 */
#ifndef DARKROOM_TESTS_WORLD_NET_H
#define DARKROOM_TESTS_WORLD_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct socket;

/* Draws one of `below` numbers, of the seed. */
uint64_t draw(uint64_t below);

/* ---- for clients: the calling thread waits ---- */

/* Connects to a port, from that IPv4 address. Returns NULL: it was refused. */
struct socket *net_connect(unsigned port, uint32_t address);

/* Sends all. Returns false: the daemon has closed, or the time has come. */
bool net_send(struct socket *s, const void *data, size_t size, uint64_t until_ns);

enum net_result { NET_DATA, NET_END, NET_RESET, NET_LATE };

/* Receives some bytes, at most *size, and sets *size. */
enum net_result net_receive(struct socket *s, void *to, size_t *size, uint64_t until_ns);

/* Nothing more will be sent. */
void net_shut(struct socket *s);

/* Unread bytes reset the connection. */
void net_close(struct socket *s);

/* ---- for checks ---- */

/* Returns how many descriptors of sockets are open, and how many watches and timers there are. */
unsigned net_open_count(void);
unsigned net_watch_count(void);

#endif

/* conn_room.c - closes the first of a line of connections. Each I/O thread its own. */
#include "conn_room.h"

#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "conn.h"
#include "io_loop.h"

#define LOOKED_AT_MAX 16 /* connections, to find an idle one */
/* A connection that has had a response may be idle for this factor longer than one without. A
 * client that opens connections faster and faster would close those of others otherwise. */
#define KEPT_LONGER 16
/* It is not closed before this time while there is one without. Many that are accepted at once have
 * no age. */
#define KEPT_MIN_NS (2 * NS_PER_S)

/* Returns whether the client has sent something that is still to be read. */
static bool has_unread(const struct conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Returns the first connection of the line that is idle, or NULL. */
static struct conn *first_idle(const struct conn_line *line)
{
	struct conn *c = line->first;

	for (unsigned i = 0; c && i < LOOKED_AT_MAX; i++, c = c->in_line.next)
		if (!has_unread(c))
			return c;
	return NULL;
}

bool conn_close_idle(struct io_loop *io)
{
	struct conn *c = first_idle(&io->without_request), *kept = first_idle(&io->kept);
	uint64_t now_ns = clock_ns(), idle_ns = kept ? now_ns - kept->in_line.since_ns : 0;

	if (!c || (idle_ns > KEPT_MIN_NS && idle_ns > KEPT_LONGER * (now_ns - c->in_line.since_ns)))
		c = kept;
	if (!c)
		return false;
	conn_close(io->visit, c);
	return true;
}

bool conn_close_rejected(struct io_loop *io)
{
	struct conn *c = io->rejected.first;

	if (c)
		conn_close(io->visit, c);
	return c != NULL;
}

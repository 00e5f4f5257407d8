/* conn_room.c - closes the first of a line of connections. Each I/O thread its own. */
#include "conn_room.h"

#include <stddef.h>
#include <sys/socket.h>

#include "conn.h"
#include "io_loop.h"

#define LOOKED_AT_MAX 16 /* connections, to find an idle one */

/* Returns whether the client has sent something that is still to be read. */
static bool has_unread(const struct conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool conn_close_idle(struct io_loop *io)
{
	struct conn *c = io->without_request.first;

	for (unsigned i = 0; c && i < LOOKED_AT_MAX && has_unread(c); i++)
		c = c->in_line.next;
	if (!c || has_unread(c))
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

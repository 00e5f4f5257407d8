/* conn_line.c - a doubly linked list. The I/O thread. */
#include "conn_line.h"

#include <stddef.h>

#include "base/check.h"
#include "base/clock.h"
#include "conn.h"

void conn_line_add(struct conn_line *line, struct conn *c)
{
	assert(!c->in_line.line);
	c->in_line = (struct conn_line_place){ .line = line,
		                               .previous = line->last,
		                               .since_ns = clock_ns() };
	if (line->last)
		line->last->in_line.next = c;
	else
		line->first = c;
	line->last = c;
}

void conn_line_remove(struct conn *c)
{
	struct conn_line_place *place = &c->in_line;

	if (!place->line)
		return;
	if (place->previous)
		place->previous->in_line.next = place->next;
	else
		place->line->first = place->next;
	if (place->next)
		place->next->in_line.previous = place->previous;
	else
		place->line->last = place->previous;
	*place = (struct conn_line_place){ .line = NULL };
}

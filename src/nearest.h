/*
 * nearest.h - "did you mean": of some names the one that a mistyped one is most like.
 *
 * Any thread.
 */
#ifndef DARKROOM_NEAREST_H
#define DARKROOM_NEAREST_H

struct nearest {
	const char *wanted; /* as it was typed */
	const char *best;   /* of what was offered; NULL: nothing is alike. Borrowed */
	unsigned distance;
};

/* Considers a name; { .wanted = ... } to begin with. */
void nearest_offer(struct nearest *n, const char *name);

#endif

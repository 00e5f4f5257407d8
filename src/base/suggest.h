/*
 * suggest.h - "did you mean": of some names the one that a mistyped one is most like.
 *
 * Any thread.
 */
#ifndef DARKROOM_BASE_SUGGEST_H
#define DARKROOM_BASE_SUGGEST_H

struct suggest {
	const char *wanted; /* as it was typed */
	const char *best;   /* of what was offered; NULL: nothing is alike. Borrowed */
	unsigned distance;
};

/* Considers a name; { .wanted = ... } to begin with. */
void suggest_offer(struct suggest *n, const char *name);

#endif

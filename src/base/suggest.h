/*
 * suggest.h - "did you mean": finds the known name that is closest to a mistyped one.
 *
 * Any thread, each with a struct of its own.
 */
#ifndef DARKROOM_BASE_SUGGEST_H
#define DARKROOM_BASE_SUGGEST_H

struct suggest {
	const char *wanted; /* the mistyped name */
	const char *best;   /* the closest name so far, borrowed; NULL: none is close enough */
	unsigned distance;  /* of the closest name, in edits */
	char phrase[64];
};

/* Considers a known name. The struct begins as { .wanted = ... }. */
void suggest_offer(struct suggest *s, const char *name);

/* Returns the end of a message, "; did you mean NAME?", or "" if no name is close. It is in *s. */
const char *suggest_phrase(struct suggest *s);

#endif

/*
 * top_screen.h - the terminal of ctl top, with ncurses. Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_SCREEN_H
#define DARKROOM_DAEMON_TOP_SCREEN_H

#include <stdbool.h>

#include "top_table.h"

#define TOP_MESSAGE_MAX 200

enum top_mode { TOP_SHOW_TABLE, TOP_SHOW_HELP, TOP_CHOOSE_POLICY };

/* What keys change. */
struct top_state {
	enum top_mode mode;
	enum top_order order;
	bool is_reversed;
	int first;                     /* line of the table at the top of the screen */
	unsigned policy;               /* the chosen one, in policy_at() */
	bool wants_policy;             /* Enter was pressed; the caller clears it */
	bool ends;                     /* q was pressed */
	char message[TOP_MESSAGE_MAX]; /* in the last line; "": the keys */
};

/* Opens the terminal of standard input and output. Returns false if it cannot place text. */
bool top_screen_open(void);

/* Restores the terminal. It may be called twice. */
void top_screen_close(void);

/* Returns whether the locale's characters are UTF-8. */
bool top_screen_is_utf8(void);

/* Takes all keys that were pressed. active: the daemon's policy. */
void top_screen_keys(struct top_state *s, const char *active);

/* Draws. f: NULL without figures. trouble: shown instead of the title; NULL: none. */
void top_screen_draw(struct top_state *s, const struct top_figures *f, const char *trouble);

#endif

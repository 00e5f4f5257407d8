/*
 * conf_live.h - live keys: those that can change while the daemon runs.
 */
#ifndef DARKROOM_CONF_CONF_LIVE_H
#define DARKROOM_CONF_CONF_LIVE_H

struct conf;
struct text;

/*
 * Copies the live keys of next into *conf; both must be valid. Appends the names of other keys that
 * differ to others, one line each. Returns the number of keys that changed. Any thread.
 */
unsigned conf_take_live(struct conf *conf, const struct conf *next, struct text *others);

/* Appends the policy and every other live key that differs from its default, on one line. Main
 * thread. */
void conf_print_live(const struct conf *conf, struct text *to);

#endif

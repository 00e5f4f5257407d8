/*
 * conf_compare.h - compares two configurations key by key: which live keys a running daemon takes,
 * and what differs.
 */
#ifndef DARKROOM_CONF_CONF_COMPARE_H
#define DARKROOM_CONF_CONF_COMPARE_H

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

/*
 * Appends a line for each key of conf that other has with another value: the key and both values.
 * `where` names the place of the other ones. Returns the number of lines. Any thread.
 */
unsigned conf_diff(const struct conf *conf, const struct conf *other, const char *where,
                   struct text *to);

#endif

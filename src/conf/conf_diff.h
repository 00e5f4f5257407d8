/*
 * conf_diff.h - in which keys two configurations differ.
 */
#ifndef DARKROOM_CONF_CONF_DIFF_H
#define DARKROOM_CONF_CONF_DIFF_H

struct conf;
struct text;

/* Appends a line "  SECTION.KEY = VALUE (WHERE: OTHER)" for each key of conf with another value in
 * other, variants and groups included. where: where the other configuration is. Returns the number
 * of lines. Any thread. */
unsigned conf_diff(const struct conf *conf, const struct conf *other, const char *where,
                   struct text *to);

#endif

/*
 * conf_dump.h - a configuration as the INI file that gives it back: darkroomd -T.
 */
#ifndef DARKROOM_CONF_CONF_DUMP_H
#define DARKROOM_CONF_CONF_DUMP_H

struct conf;
struct text;

/* Appends every key with its value. Returns 0, -ENOMEM, or -EILSEQ if a value has both kinds of
 * quotation marks. Any thread. */
int conf_dump(const struct conf *conf, struct text *to);

#endif

/*
 * conf_ini.h - reads the settings of an INI file. Private to conf/. Main thread.
 */
#ifndef DARKROOM_CONF_CONF_INI_H
#define DARKROOM_CONF_CONF_INI_H

struct conf_source;
struct text;

/* Appends the settings of the file at s->path. Returns as conf_source_read(). */
int conf_ini_read(struct conf_source *s, struct text *errors);

#endif

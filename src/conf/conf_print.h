/*
 * conf_print.h - the documentation of all keys: darkroomd --keys, conf/darkroomd.ini, and with
 * scripts/keys-to-mdoc the man page darkroomd.ini(5).
 */
#ifndef DARKROOM_CONF_CONF_PRINT_H
#define DARKROOM_CONF_CONF_PRINT_H

struct text;

/* Appends a commented INI file with every key at its default. Any thread. */
void conf_print_keys(struct text *to);

#endif

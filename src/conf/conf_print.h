/*
 * conf_print.h - INI files: a configuration, and the documentation of all keys, for darkroomd
 * --keys, and with scripts/keys-to-mdoc the man page darkroomd.ini(5).
 */
#ifndef DARKROOM_CONF_CONF_PRINT_H
#define DARKROOM_CONF_CONF_PRINT_H

#include <stdbool.h>

struct conf;
struct text;

/* Appends a commented INI file with every key at its default; has_experiments: also those that are
 * not for operators. Any thread. */
void conf_print_keys(struct text *to, bool has_experiments);

/* Appends every key with its value. Returns 0, -ENOMEM, or -EILSEQ if a value has both kinds of
 * quotation marks. Any thread. */
int conf_dump(const struct conf *conf, struct text *to);

#endif

/*
 * conf_fields.h - the notation of store.metadata: names of form fields, separated by commas or
 * spaces. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_FIELDS_H
#define DARKROOM_CONF_CONF_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#define CONF_FIELDS_MAX 8
#define CONF_FIELD_NAME_MAX 32 /* bytes */
#define CONF_FIELDS_FORM \
	"at most 8 names, each of at most 32 of a-z, A-Z, 0-9, '_' and '-' (not focus)"

bool conf_fields_are_valid(const char *text);

/* Returns whether the valid text has the name. */
bool conf_fields_have(const char *text, const char *name, size_t length);

#endif

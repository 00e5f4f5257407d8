/* conf_fields.c - splits a list of names. Any thread. */
#include "conf_fields.h"

#include <string.h>

#define BETWEEN ", \t"

/* Removes the next name from *at. Returns its length, or 0 at the end. */
static size_t next_name(const char **at, const char **name)
{
	*name = *at + strspn(*at, BETWEEN);
	size_t length = strcspn(*name, BETWEEN);

	*at = *name + length;
	return length;
}

/* The field has a meaning of its own. */
static bool is_focus(const char *name, size_t length)
{
	return length == 5 && memcmp(name, "focus", length) == 0;
}

bool conf_fields_are_valid(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *name;
	unsigned count = 0;

	for (size_t n; (n = next_name(&text, &name)); count++)
		if (n > CONF_FIELD_NAME_MAX || strspn(name, allowed) < n || *name == '-' ||
		    is_focus(name, n))
			return false;
	return count <= CONF_FIELDS_MAX;
}

bool conf_fields_have(const char *text, const char *name, size_t length)
{
	const char *one;

	for (size_t n; (n = next_name(&text, &one));)
		if (n == length && memcmp(one, name, n) == 0)
			return true;
	return false;
}

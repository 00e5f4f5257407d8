/*
 * conf_keys.c - access to the table of keys: by index, by name, and by section. Any thread.
 */
#include "conf_keys.h"

#include <string.h>

#include "base/check.h"
#include "conf.h"

const struct conf_choice conf_yes_no[] = { { "yes", CONF_YES }, { "no", CONF_NO }, { 0 } };

const struct conf_choice conf_yes_no_auto[] = {
	{ "auto", CONF_DEFAULT }, { "yes", CONF_YES }, { "no", CONF_NO }, { 0 }
};

/* In the order of the shipped file: what most sites change comes first. */
static const struct conf_section sections[] = {
	{ .name = "server" },
	{ .name = "log" },
	{ .name = "access" },
	{ .name = "store",
	  .help = "Which images are removed. A request may name a time of its own: X-Expires-After,\n"
	          "see darkroom-http(7)." },
	{ .name = "limits",
	  .help = "The most that a request may cost. A request above a limit gets the status that is\n"
	          "named here. The answer names the limit, its value and what was found." },
	{ .name = "overload",
	  .help = "What is refused when more is uploaded than the machine can process. The defaults\n"
	          "suit most sites: only target_p90 is a matter of taste." },
	{ .name = "scheduler" },
	{ .name = "layout" },
};

const struct conf_section *conf_section_at(size_t index)
{
	return index < COUNT_OF(sections) ? &sections[index] : NULL;
}

const struct conf_key *conf_key_at(size_t index)
{
	const struct conf_key_list *const lists[] = { &conf_keys_server,   &conf_keys_client,
		                                      &conf_keys_access,   &conf_keys_store,
		                                      &conf_keys_overload, &conf_keys_scheduler,
		                                      &conf_keys_variant };

	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		if (index < lists[i]->count)
			return &lists[i]->row[index];
		index -= lists[i]->count;
	}
	return NULL;
}

const struct conf_key *conf_key_find(const char *section, const char *name)
{
	const struct conf_key *key;

	for (size_t i = 0; (key = conf_key_at(i)); i++)
		if (strcmp(key->section, section) == 0 && strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

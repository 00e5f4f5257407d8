/* conf_places.c - keeps the settings that were read last. Main thread. */
#include "conf_places.h"

#include <string.h>

#include "base/text.h"
#include "conf_source.h"

static struct conf_source kept;

const struct conf_source *conf_places_keep(struct conf_source *source)
{
	conf_source_fini(&kept);
	kept = *source;
	*source = (struct conf_source){ 0 };
	return &kept;
}

const char *conf_place(const char *key)
{
	static char place[4096 + 16]; /* PATH_MAX, and a line */
	const char *dot = strrchr(key, '.');
	char section[64];
	struct text text;

	text_init(&text, section, sizeof section);
	text_put(&text, key, (size_t)(dot - key));
	const struct conf_setting *setting = conf_source_find(&kept, section, dot + 1);

	text_init(&text, place, sizeof place);
	if (setting && !setting->override) {
		conf_source_where(&kept, setting, &text);
		text_puts(&text, ": ");
	}
	return place;
}

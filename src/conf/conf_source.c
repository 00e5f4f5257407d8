/*
 * conf_source.c - the list of settings: overrides, lookup by name, places for messages.
 *
 * The file itself is read by conf_ini.c. Main thread.
 */
#include "conf_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "conf_ini.h"

#define QUOTED_MAX 80 /* bytes of a value in a message; longer ones are cut */

/* ---- the list ---- */

const struct conf_setting *conf_source_find(const struct conf_source *s, const char *section,
                                            const char *key)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct conf_setting *at = &s->setting[i];

		if (strcmp(at->section, section) == 0 &&
		    (key ? at->key && strcmp(at->key, key) == 0 : !at->key))
			return at;
	}
	return NULL;
}

const struct conf_setting *conf_source_earlier(const struct conf_source *s,
                                               const struct conf_setting *newest)
{
	const struct conf_setting *found = conf_source_find(s, newest->section, newest->key);

	return found == newest ? NULL : found;
}

static char *lower_copy(const char *name, size_t length)
{
	char *copy = strndup(name, length);

	for (char *c = copy; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

struct conf_setting *conf_source_append(struct conf_source *s, const char *section,
                                        size_t section_length, const char *key, size_t key_length)
{
	struct conf_setting *at;

	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 64;
		struct conf_setting *grown = reallocarray(s->setting, capacity, sizeof *grown);

		if (!grown)
			return NULL;
		s->setting = grown;
		s->capacity = capacity;
	}
	at = &s->setting[s->count];
	*at = (struct conf_setting){ .section = lower_copy(section, section_length) };
	if (key)
		at->key = lower_copy(key, key_length);
	if (!at->section || (key && !at->key)) {
		free(at->section);
		free(at->key);
		return NULL;
	}
	s->count++;
	return at;
}

void conf_source_drop_newest(struct conf_source *s)
{
	struct conf_setting *at = &s->setting[--s->count];

	free(at->section);
	free(at->key);
	free(at->value);
}

void conf_source_fini(struct conf_source *s)
{
	while (s->count > 0)
		conf_source_drop_newest(s);
	free(s->setting);
	*s = (struct conf_source){ 0 };
}

/* ---- names ---- */

bool conf_name_is_valid(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-' &&
		    name[i] != '.')
			return false;
	return length > 0;
}

bool conf_section_has_capitals(const char *section, size_t length)
{
	static const char prefix[] = "variant.";

	if (length < sizeof prefix || strncasecmp(section, prefix, sizeof prefix - 1) != 0)
		return false;
	for (size_t i = sizeof prefix - 1; i < length; i++)
		if (isupper((unsigned char)section[i]))
			return true;
	return false;
}

const char *conf_skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* ---- messages ---- */

void conf_source_where(const struct conf_source *s, const struct conf_setting *setting,
                       struct text *to)
{
	if (!setting)
		text_puts(to, "default");
	else if (setting->override)
		text_printf(to, "%s%.200s", s->override_lead, setting->override);
	else
		text_printf(to, "%s:%u", s->path, setting->line);
}

void conf_source_report(const struct conf_source *s, const struct conf_setting *setting,
                        const char *message, struct text *errors)
{
	conf_source_where(s, setting, errors);
	text_puts(errors, ": ");
	if (setting && !setting->override && setting->key) {
		text_printf(errors, "%s.%s = ", setting->section, setting->key);
		conf_quote(errors, setting->value);
		text_puts(errors, ": ");
	} else if (setting && !setting->override) {
		text_printf(errors, "[%s]: ", setting->section);
	}
	text_printf(errors, "%s\n", message);
}

void conf_quote(struct text *to, const char *value)
{
	size_t length = strlen(value);
	bool is_cut = length > QUOTED_MAX;

	text_put(to, "\"", 1);
	for (size_t i = 0; i < (is_cut ? QUOTED_MAX - 3 : length); i++)
		text_put(to, iscntrl((unsigned char)value[i]) ? "?" : &value[i], 1);
	text_puts(to, is_cut ? "...\"" : "\"");
}

/* ---- overrides ---- */

struct override {
	const char *text;
	const char *section, *key, *value; /* in text */
	size_t section_length, key_length, value_length;
};

/* Cuts SECTION.KEY=VALUE in pieces; the section may contain dots. False: it is not of that form. */
static bool split_override(struct override *o, const char *text)
{
	const char *equals = strchr(text, '='), *dot = NULL, *start = conf_skip_space(text), *end;

	for (const char *c = start; equals && c < equals; c++)
		if (*c == '.')
			dot = c;
	if (!dot)
		return false;
	for (end = equals; end > dot && isspace((unsigned char)end[-1]);)
		end--;
	*o = (struct override){ .text = text,
		                .section = start,
		                .section_length = (size_t)(dot - start),
		                .key = dot + 1,
		                .key_length = (size_t)(end - dot - 1),
		                .value = conf_skip_space(equals + 1) };
	o->value_length = strlen(o->value);
	while (o->value_length > 0 && isspace((unsigned char)o->value[o->value_length - 1]))
		o->value_length--;
	return conf_name_is_valid(o->section, o->section_length) &&
	       conf_name_is_valid(o->key, o->key_length);
}

/* Lets the newest setting replace an earlier one in its position, which orders the variants. */
static void replace_earlier(struct conf_source *s, struct conf_setting *newest)
{
	const struct conf_setting *earlier = conf_source_earlier(s, newest);

	if (!earlier)
		return;
	struct conf_setting *old = &s->setting[earlier - s->setting];
	struct conf_setting replaced = *old;

	*old = *newest;
	*newest = replaced;
	conf_source_drop_newest(s);
}

/* 0, -EINVAL (reported) or -ENOMEM. */
static int add_override(struct conf_source *s, const char *text, struct text *errors)
{
	struct override o;

	if (!split_override(&o, text)) {
		text_puts(errors, s->override_lead);
		conf_quote(errors, text);
		text_puts(errors, ": expected SECTION.KEY=VALUE\n");
		return -EINVAL;
	}
	if (conf_section_has_capitals(o.section, o.section_length)) {
		text_printf(errors,
		            "%s%s: expected a variant's name in lower case: it becomes part of "
		            "URLs\n",
		            s->override_lead, text);
		return -EINVAL;
	}
	struct conf_setting *at =
		conf_source_append(s, o.section, o.section_length, o.key, o.key_length);

	if (!at)
		return -ENOMEM;
	at->override = text;
	at->value = strndup(o.value, o.value_length);
	if (!at->value) {
		conf_source_drop_newest(s);
		return -ENOMEM;
	}
	replace_earlier(s, at);
	return 0;
}

int conf_source_read(struct conf_source *s, const char *path, const char *const *overrides,
                     size_t override_count, struct text *errors)
{
	int err = 0;

	*s = (struct conf_source){ .path = path, .override_lead = "-o " };
	if (path) {
		err = conf_ini_read(s, errors);
		if (err && err != -EINVAL)
			return err;
	}
	for (size_t i = 0; i < override_count; i++) {
		int override_err = add_override(s, overrides[i], errors);

		if (override_err == -ENOMEM) {
			text_printf(errors, "-o %s: %s\n", overrides[i], strerror(ENOMEM));
			return override_err;
		}
		if (override_err)
			err = override_err;
	}
	return err;
}

int conf_source_read_one(struct conf_source *s, const char *setting, struct text *errors)
{
	*s = (struct conf_source){ .override_lead = "" };
	return add_override(s, setting, errors);
}

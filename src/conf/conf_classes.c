/* conf_classes.c - parses overload.classes, word by word. Any thread. */
#include "conf_classes.h"

#include <ctype.h>
#include <string.h>

#include "conf_number.h"

#define TARGET_MAX_MS 3600000

static bool copy_word(char *to, size_t size, const char *from, size_t length)
{
	if (length == 0 || length >= size)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

static bool is_name(const char *name)
{
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

/* X-Tier=silver */
static bool parse_header(const char *text, struct conf_class_term *term)
{
	const char *equals = strchr(text, '=');

	term->kind = CONF_CLASS_HEADER;
	if (!equals || !copy_word(term->word, sizeof term->word, text, (size_t)(equals - text)) ||
	    !copy_word(term->value, sizeof term->value, equals + 1, strlen(equals + 1)))
		return false;
	for (char *c = term->word; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return is_name(term->word);
}

static bool parse_term(const char *word, struct conf_classes *classes)
{
	unsigned class = classes->count - 1;
	uint64_t *ms = &classes->class[class].target_ms;

	if (strncmp(word, "target:", 7) == 0) /* 500ms or 2s */
		return conf_units_parse_duration(word + 7, 1000, ms) && *ms >= 10 &&
		       *ms <= TARGET_MAX_MS;
	if (classes->term_count == CONF_CLASS_TERMS_MAX)
		return false;
	struct conf_class_term *term = &classes->term[classes->term_count++];

	term->class = class;
	term->kind = CONF_CLASS_NET;
	if (strncmp(word, "net:", 4) == 0)
		return network_parse(word + 4, strlen(word + 4), &term->net);
	if (strncmp(word, "header:", 7) == 0)
		return parse_header(word + 7, term);
	term->kind = CONF_CLASS_TOKEN;
	return strncmp(word, "token:", 6) == 0 &&
	       copy_word(term->word, sizeof term->word, word + 6, strlen(word + 6));
}

static bool parse_name(const char *word, struct conf_classes *classes)
{
	if (classes->count == CONF_CLASSES_MAX || strcmp(word, "other") == 0)
		return false;
	for (unsigned i = 0; i < classes->count; i++)
		if (strcmp(classes->class[i].name, word) == 0)
			return false;
	char *name = classes->class[classes->count++].name;

	return copy_word(name, CONF_CLASS_NAME_MAX, word, strlen(word)) && is_name(name);
}

bool conf_classes_parse(const char *text, struct conf_classes *classes)
{
	unsigned terms_before = 0;
	bool is_begin = true;

	*classes = (struct conf_classes){ 0 };
	while (*(text += strspn(text, " \t"))) {
		size_t length = strcspn(text, " \t,");
		char word[CONF_TEXT_MAX];

		if (!copy_word(word, sizeof word, text, length))
			return false;
		if (!(is_begin ? parse_name(word, classes) : parse_term(word, classes)))
			return false;
		text += length + strspn(text + length, " \t");
		is_begin = *text == ',';
		text += is_begin;
		if (!is_begin && *text)
			continue;
		if (classes->term_count == terms_before) /* nothing would be in the class */
			return false;
		terms_before = classes->term_count;
	}
	return !is_begin || classes->count == 0;
}

bool conf_classes_are_valid(const char *text)
{
	struct conf_classes ignored;

	return conf_classes_parse(text, &ignored);
}

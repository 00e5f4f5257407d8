/* conf_degrade.c - parses overload.degrade, step by step, and applies it to variants. Any thread.
 */
#include "conf_degrade.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define WORDS_MAX 2

static_assert(sizeof(struct conf_degrade_step) ==
                      2 * sizeof(unsigned) + CONF_NAME_MAX + CONF_DEGRADE_TEXT_MAX,
              "no padding, for memcmp()");
static_assert(CONF_DEGRADE_TEXT_MAX % alignof(unsigned) == 0, "the same");

/* 1 to 100 */
static bool parse_quality(const char *word, struct conf_degrade_step *step)
{
	size_t digits = strspn(word, "0123456789");

	if (digits == 0 || digits > 3 || word[digits])
		return false;
	step->quality = (unsigned)strtoul(word, NULL, 10);
	return step->quality >= 1 && step->quality <= 100;
}

/* word[1] is empty if there is only one. */
static bool parse_words(char word[WORDS_MAX][CONF_NAME_MAX], struct conf_degrade_step *step)
{
	if (strcmp(word[0], "quality") == 0) {
		step->kind = CONF_DEGRADE_QUALITY;
		return parse_quality(word[1], step);
	}
	if (strcmp(word[0], "skip") == 0) {
		step->kind = CONF_DEGRADE_SKIP;
		snprintf(step->variant, sizeof step->variant, "%s", word[1]);
		return conf_is_variant_name(word[1]);
	}
	if (word[1][0])
		return false;
	if (strcmp(word[0], "no-optimize") == 0)
		step->kind = CONF_DEGRADE_NO_OPTIMIZE;
	else if (strcmp(word[0], "no-progressive") == 0)
		step->kind = CONF_DEGRADE_NO_PROGRESSIVE;
	return step->kind != 0;
}

/* Parses a step up to its comma or the end. */
static bool parse_step(const char **text, struct conf_degrade *degrade)
{
	char piece[CONF_TEXT_MAX], word[WORDS_MAX][CONF_NAME_MAX] = { "", "" }, more;
	size_t length = strcspn(*text, ",");
	struct conf_degrade_step step = { 0 };

	if (length >= sizeof piece || degrade->count == CONF_DEGRADE_MAX)
		return false;
	memcpy(piece, *text, length);
	piece[length] = '\0';
	*text += length;
	int n = sscanf(piece, "%31s %31s %c", word[0], word[1], &more); /* CONF_NAME_MAX - 1 */

	if (n < 1 || n > WORDS_MAX || !parse_words(word, &step))
		return false;
	snprintf(step.text, sizeof step.text, "%s%s%s", word[0], n > 1 ? " " : "", word[1]);
	for (unsigned i = 0; i < degrade->count; i++)
		if (strcmp(degrade->step[i].text, step.text) == 0)
			return false;
	degrade->step[degrade->count++] = step;
	return true;
}

bool conf_degrade_parse(const char *text, struct conf_degrade *degrade)
{
	*degrade = (struct conf_degrade){ 0 };
	if (text[strspn(text, " \t")] == '\0')
		return true;
	while (parse_step(&text, degrade)) {
		if (*text == '\0')
			return true;
		text++; /* the comma */
	}
	return false;
}

bool conf_degrade_is_valid(const char *text)
{
	struct conf_degrade ignored;

	return conf_degrade_parse(text, &ignored);
}

bool conf_degrade_variant(const struct conf_degrade *degrade, unsigned level,
                          const struct conf_variant *variant, struct conf_variant *made)
{
	bool is_made = true;

	*made = *variant;
	for (unsigned i = 0; i < level && i < degrade->count; i++) {
		const struct conf_degrade_step *step = &degrade->step[i];

		if (step->kind == CONF_DEGRADE_QUALITY && made->quality > step->quality)
			made->quality = step->quality;
		else if (step->kind == CONF_DEGRADE_NO_OPTIMIZE)
			made->optimize = CONF_NO;
		else if (step->kind == CONF_DEGRADE_NO_PROGRESSIVE)
			made->progressive = CONF_NO;
		else if (step->kind == CONF_DEGRADE_SKIP)
			is_made &= strcmp(step->variant, variant->name) != 0;
	}
	return is_made;
}

/*
 * conf_degrade.h - the notation of overload.degrade: cheaper ways to make images, in order.
 *
 * quality 65, no-optimize, skip blurred
 *
 * A level is a number of steps: those of its first ones are in. Level 0 is the configuration.
 * Any thread.
 */
#ifndef DARKROOM_CONF_CONF_DEGRADE_H
#define DARKROOM_CONF_CONF_DEGRADE_H

#include <stdbool.h>

#include "conf.h"

#define CONF_DEGRADE_FORM                                                                          \
	"at most 8 of quality NUMBER, no-optimize, no-progressive and skip VARIANT, separated by " \
	"commas"
#define CONF_DEGRADE_MAX 8
#define CONF_DEGRADE_TEXT_MAX (2 * CONF_NAME_MAX) /* two words */

enum conf_degrade_kind {
	CONF_DEGRADE_QUALITY = 1,    /* caps the quality of all variants */
	CONF_DEGRADE_NO_OPTIMIZE,    /* files have the usual Huffman tables */
	CONF_DEGRADE_NO_PROGRESSIVE, /* all files are baseline files */
	CONF_DEGRADE_SKIP            /* the variant is not made */
};

struct conf_degrade {
	unsigned count;
	struct conf_degrade_step {
		enum conf_degrade_kind kind;
		unsigned quality;                 /* 1..100 */
		char variant[CONF_NAME_MAX];      /* skip; it may be unknown */
		char text[CONF_DEGRADE_TEXT_MAX]; /* "skip blurred", with single spaces */
	} step[CONF_DEGRADE_MAX];
};

/* Parses the text. Returns false if it has another form, or the same step twice. Empty text has no
 * steps. *degrade has no undefined byte: memcmp() compares it. */
bool conf_degrade_parse(const char *text, struct conf_degrade *degrade);
bool conf_degrade_is_valid(const char *text);

/* Writes how a variant is made at the level. Returns false if it is skipped; *made is then as at
 * the level, too. */
bool conf_degrade_variant(const struct conf_degrade *degrade, unsigned level,
                          const struct conf_variant *variant, struct conf_variant *made);

#endif

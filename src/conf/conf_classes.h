/*
 * conf_classes.h - the notation of overload.classes: classes of clients, highest first.
 *
 * gold target:1s token:partner net:10.0.0.0/8, silver header:X-Tier=silver
 *
 * A class has a name, and terms of which one must match. Requests of no class are in one more, the
 * lowest. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_CLASSES_H
#define DARKROOM_CONF_CONF_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/network.h"
#include "conf.h"

#define CONF_CLASSES_FORM                                                     \
	"at most 3 classes such as gold target:1s token:NAME net:10.0.0.0/8 " \
	"header:X-Tier=gold, separated by commas"
#define CONF_CLASSES_MAX 3      /* named ones */
#define CONF_CLASS_TERMS_MAX 12 /* of all classes together */
#define CONF_CLASS_NAME_MAX 16  /* bytes, with the zero */
#define CONF_CLASS_WORD_MAX                                                   \
	64 /* bytes of a token's name, a field's name or value, with the zero \
	    */

enum conf_class_term_kind { CONF_CLASS_TOKEN = 1, CONF_CLASS_NET, CONF_CLASS_HEADER };

struct conf_class_term {
	enum conf_class_term_kind kind;
	unsigned class;
	char word[CONF_CLASS_WORD_MAX];  /* of the token, or of the field in lower case */
	char value[CONF_CLASS_WORD_MAX]; /* of the field */
	struct network net;
};

struct conf_classes {
	unsigned count, term_count;
	struct {
		char name[CONF_CLASS_NAME_MAX];
		uint64_t target_ms; /* 0: overload.target_p90 */
	} class[CONF_CLASSES_MAX];
	struct conf_class_term term[CONF_CLASS_TERMS_MAX];
};

/* Parses the text. Returns false if it has another form. Empty text has no classes. */
bool conf_classes_parse(const char *text, struct conf_classes *classes);
bool conf_classes_are_valid(const char *text);

#endif

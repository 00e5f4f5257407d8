/* client_class.c - matches a request with the terms of the classes. */
#include "client_class.h"

#include <string.h>

#include "conf/conf_classes.h"
#include "conn.h"
#include "head.h"
#include "io_loop.h"

static bool has_field(const struct conn *c, const struct conf_class_term *term)
{
	struct slice rest = request_fields(&c->request, c->input + c->begin), value;

	while (head_find(&rest, term->word, &value))
		if (value.length == strlen(term->value) &&
		    memcmp(value.data, term->value, value.length) == 0)
			return true;
	return false;
}

static bool matches(const struct conn *c, const struct conf_class_term *term)
{
	switch (term->kind) {
	case CONF_CLASS_TOKEN:
		return strcmp(c->token_name, term->word) == 0;
	case CONF_CLASS_NET:
		return network_contains(&term->net, c->client.address);
	case CONF_CLASS_HEADER:
		return has_field(c, term);
	}
	return false;
}

unsigned client_class_of(const struct conn *c)
{
	const struct conf_classes *classes = &conf_epochs_now(&conn_images(c)->epochs)->classes;

	/* Terms are in the order of their classes. */
	for (unsigned i = 0; i < classes->term_count; i++)
		if (matches(c, &classes->term[i]))
			return classes->term[i].class;
	return classes->count;
}

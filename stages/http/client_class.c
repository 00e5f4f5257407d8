/* client_class.c - matches a request with the terms of the classes. */
#include "client_class.h"

#include <string.h>

#include "conf/conf_classes.h"
#include "conn.h"
#include "head.h"
#include "io_loop.h"

/* IPv4 */
static bool is_mapped(const uint8_t address[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(address, prefix, sizeof prefix) == 0;
}

static bool is_in_net(const struct client_key *client, const struct conf_class_term *term)
{
	unsigned bytes = term->bits / 8, rest = term->bits % 8;
	bool is_v4 = is_mapped(client->address);

	if (is_v4 != is_mapped(term->address) || memcmp(client->address, term->address, bytes) != 0)
		return false;
	unsigned mask = 0xffu << (8 - rest) & 0xff;

	return rest == 0 || ((client->address[bytes] ^ term->address[bytes]) & mask) == 0;
}

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
	struct tokens *tokens = &c->io->http->tokens;

	switch (term->kind) {
	case CONF_CLASS_TOKEN:
		return tokens_are_needed(tokens) &&
		       tokens_is_named(tokens, c->payer.address, term->word);
	case CONF_CLASS_NET:
		return is_in_net(&c->client, term);
	case CONF_CLASS_HEADER:
		return has_field(c, term);
	}
	return false;
}

unsigned client_class_of(const struct conn *c)
{
	const char *text = conn_conf(c)->overload.classes;
	struct conf_classes classes;

	if (!text[0] || !conf_classes_parse(text, &classes))
		return 0;
	/* Terms are in the order of their classes. */
	for (unsigned i = 0; i < classes.term_count; i++)
		if (matches(c, &classes.term[i]))
			return classes.term[i].class;
	return classes.count;
}

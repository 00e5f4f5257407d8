/*
 * conf_keys_client.c - rows of the table of keys: those of [limits] that concern one client.
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"

static const struct conf_key rows[] = {
	{
		CONF_KEY(limits, connections_per_client, connections_per_client),
		.type = CONF_TYPE_AUTO,
		.max = 100000,
		.default_value = "auto",
		.is_live = true,
		.help = "Open connections of one client. One more is answered 503 and closed. 0: no\n"
			"limit. auto: a quarter of connections, and no limit for this machine, where a\n"
			"proxy may stand for all clients. A proxy on another machine needs more, or 0.",
	},
	{
		CONF_KEY(limits, images_per_client, images_per_client),
		.type = CONF_TYPE_AUTO,
		.max = 65536,
		.default_value = "auto",
		.is_live = true,
		.help = "Images of one client between upload and store: 429. A client is a token if the\n"
			"request needs one, otherwise an address. Behind a proxy that is not one of\n"
			"server.trusted_proxies, all clients have its address. 0: no limit. auto: a\n"
			"quarter of images_in_flight, at least parts, and no limit for addresses of this\n"
			"machine.",
	},
	{
		CONF_KEY(limits, client_rate, client_rate),
		.type = CONF_TYPE_DECIMAL,
		.max = 1000000000,
		.default_value = "0",
		.is_live = true,
		.help = "Images per second that one client may send, on average: 429 with Retry-After,\n"
			"before the body is read. 0: no limit. Clients take turns in any case, so this\n"
			"is for sites that bound what a client stores.",
	},
	{
		CONF_KEY(limits, client_burst, client_burst),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 1000000,
		.default_value = "100",
		.is_live = true,
		.help = "Images that a client may send at once before client_rate holds it back. A form\n"
			"with more images is accepted, and the next upload waits for longer.",
	},
	{
		CONF_KEY(limits, client_ipv6_prefix, client_ipv6_prefix),
		.type = CONF_TYPE_NUMBER,
		.min = 32,
		.max = 128,
		.default_value = "64",
		.is_live = true,
		.help = "Bits of an IPv6 address that tell clients apart, for limits and turns: a host\n"
			"may use all addresses of its network. 56 or 48 if providers give each customer\n"
			"that many.",
	},
	{
		CONF_KEY(limits, idempotency_keys, idempotency_keys),
		.type = CONF_TYPE_NUMBER,
		.max = 1000000,
		.default_value = "100000",
		.is_live = true,
		.help = "Images that a client may upload with an Idempotency-Key within\n"
			"store.idempotency_age: 429. Each takes a small file for that time. 0: no limit.\n"
			"Clients on this machine have none.",
	},
};

const struct conf_key_list conf_keys_client = { rows, COUNT_OF(rows) };

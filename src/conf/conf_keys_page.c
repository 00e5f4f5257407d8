/* conf_keys_page.c - the keys of the web pages, which are in [server]. */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"

static const struct conf_key rows[] = {
	{
		CONF_KEY(server, page, page),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether GET / serves a page to upload photos and to look at them. It uses the\n"
			"same requests as other clients, and needs the same tokens. no: a site whose\n"
			"proxy passes everything on does not show a form unasked.",
	},
	{
		CONF_KEY(server, admin_control, admin_control),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether server.admin_listen also serves POST /control, with which the page\n"
			"/operator switches policy, service, discipline and threads. server.listen never\n"
			"does. Every user of this machine can connect to a port, so no is the default;\n"
			"a Unix socket is for its group only.",
	},
};

const struct conf_key_list conf_keys_page = { rows, COUNT_OF(rows) };

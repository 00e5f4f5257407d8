/*
 * conf_keys_access.c - rows of the table of keys: [access].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"

static const struct conf_key rows[] = {
	{
		CONF_KEY(access, tokens_file, tokens_file),
		.type = CONF_TYPE_PATH,
		.default_value = "",
		.help = "File of the tokens that POST, DELETE and lists need (Authorization: Bearer\n"
			"TOKEN). darkroomd token makes a token and its line: NAME HASH [upload] [delete]\n"
			"[list] [original] [images=N] [bytes=N] [uploads=N], see darkroomd(8). A line\n"
			"without a scope allows all but original. The file is reloaded when it changes.\n"
			"If it is wrong, the tokens stay as they were. The daemon's user must be able to\n"
			"read it, others should not. Empty: requests need no token.",
	},
};

const struct conf_key_list conf_keys_access = { rows, COUNT_OF(rows) };

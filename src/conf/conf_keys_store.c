/*
 * conf_keys_store.c - rows of the table of keys: [store].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_fields.h"
#include "conf_keys.h"

#define TIB (UINT64_C(1) << 40)
#define CONF_MS_PER_DAY (UINT64_C(24) * CONF_MS_PER_HOUR)

static const struct conf_key rows[] = {
	{
		CONF_KEY(store, max_age, max_age_ms),
		.type = CONF_TYPE_MS,
		.max = 36500 * CONF_MS_PER_DAY,
		.default_value = "0",
		.is_live = true,
		.help = "Images that were uploaded longer ago are removed: 365d is a year. They are\n"
			"answered 404 at once, and no cache may keep them longer. 0: no limit.",
	},
	{
		CONF_KEY(store, max_bytes, max_bytes),
		.type = CONF_TYPE_BYTES,
		.max = 1024 * TIB,
		.default_value = "0",
		.is_live = true,
		.help = "Bytes of all stored files, without image.json. If there are more, the oldest\n"
			"images are removed. After a crash, and after darkroomd store remove, the\n"
			"daemon counts the images first, in the background. 0: no limit.",
	},
	{
		CONF_KEY(store, sweep_interval, sweep_interval_ms),
		.type = CONF_TYPE_MS,
		.min = 100,
		.max = CONF_MS_PER_DAY,
		.default_value = "1m",
		.is_live = true,
		.help = "How often images to remove are looked for.",
	},
	{
		CONF_KEY(store, sweep_rate, sweep_rate),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 100000,
		.default_value = "500",
		.is_live = true,
		.help = "Images removed in a second, at most. Uploads come first: while images are in\n"
			"flight, each batch of removals waits for up to 100 ms.",
	},
	{
		CONF_KEY(store, metadata, metadata),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_fields_are_valid,
		.form = CONF_FIELDS_FORM,
		.default_value = "",
		.is_live = true,
		.help = "Fields of upload forms, at most 8, that are kept as texts with each image of the\n"
			"form and returned in its JSON, such as caption, user. Others are ignored.",
	},
	{
		CONF_KEY(store, make_missing, make_missing),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether a GET of a variant that a stored image lacks makes it from the original,\n"
			"with all others that it lacks, also those that overload.degrade has skipped.\n"
			"Uploads come first. If 32 images wait for that, or 4 of one client, the answer\n"
			"is 503. Needs server.keep_originals = yes when the image is uploaded. If not,\n"
			"the answer is 404: see darkroom-store(7), remake.",
	},
	{
		CONF_KEY(store, placeholder, placeholder),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "yes",
		.is_live = true,
		.help = "Keeps the average colour of each image and a ThumbHash, 25 bytes from which a page\n"
			"draws a blurred picture until it has the real one, and returns them in its\n"
			"JSON. They are made from the smallest variant.",
	},
	{
		CONF_KEY(store, idempotency_age, idempotency_age_ms),
		.type = CONF_TYPE_MS,
		.max = 30 * CONF_MS_PER_DAY,
		.default_value = "24h",
		.is_live = true,
		.help = "How long the Idempotency-Key of an upload is remembered. A repeated upload gets\n"
			"the first one's images meanwhile. 0: the field is ignored.",
	},
};

const struct conf_key_list conf_keys_store = { rows, COUNT_OF(rows) };

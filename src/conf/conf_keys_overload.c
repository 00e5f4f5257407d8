/*
 * conf_keys_overload.c - rows of the table of keys: [overload].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_classes.h"
#include "conf_degrade.h"
#include "conf_keys.h"

static const struct conf_choice controller_choices[] = { { "backlog", CONF_CONTROLLER_BACKLOG },
	                                                 { "welsh", CONF_CONTROLLER_WELSH },
	                                                 { "off", CONF_CONTROLLER_OFF },
	                                                 { 0 } };
static const struct conf_choice when_full_choices[] = { { "refuse", CONF_WHEN_FULL_REFUSE },
	                                                { "wait", CONF_WHEN_FULL_WAIT },
	                                                { 0 } };

static const struct conf_key rows[] = {
	{
		CONF_KEY(overload, controller, controller),
		.type = CONF_TYPE_CHOICE,
		.choices = controller_choices,
		.default_value = "backlog",
		.is_live = true,
		.help = "What decides whether an upload is admitted:\n"
			"  backlog  as much is admitted as the machine, measured while it is busy, can\n"
			"           process within target_p90; clients take turns, so an upload that\n"
			"           ends in time is admitted however much other clients have sent\n"
			"  welsh    uploads per second, moved until target_p90 is met (SEDA, 2002)\n"
			"  off      nothing but limits.images_in_flight\n"
			"Nothing is refused while a core has fewer than two images to process, or while\n"
			"a pool of threads still grows (scheduler.dynamic).",
	},
	{
		CONF_KEY(overload, target_p90, target_p90_ms),
		.type = CONF_TYPE_MS,
		.min = 10,
		.max = CONF_MS_PER_HOUR,
		.default_value = "5s",
		.is_live = true,
		.help = "Response time that nine of ten uploads should keep, from the end of the body.\n"
			"Uploads that would have to wait longer are answered 503 before their body is\n"
			"read. Browsers do not repeat an upload: a long wait is better for their users.\n"
			"A service whose clients repeat requests by themselves needs 1s or less.",
	},
	{
		CONF_KEY(overload, when_full, when_full),
		.type = CONF_TYPE_CHOICE,
		.choices = when_full_choices,
		.default_value = "refuse",
		.is_live = true,
		.help = "What happens to an upload that is not admitted: refuse answers 503 with a\n"
			"Retry-After. wait leaves its body unread, so that TCP holds the client back,\n"
			"for at most limits.body_timeout.",
	},
	{
		CONF_KEY(overload, max_queue_time, max_queue_time_ms),
		.type = CONF_TYPE_MS,
		.max = CONF_MS_PER_HOUR,
		.default_value = "0",
		.is_live = true,
		.help = "An admitted image that has waited longer before it is decoded is dropped, and\n"
			"its upload is answered 503. 0: it waits. A client sets a bound of its own with\n"
			"X-Request-Deadline.",
	},
	{
		CONF_KEY(overload, classes, classes),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_classes_are_valid,
		.form = CONF_CLASSES_FORM,
		.default_value = "",
		.is_live = true,
		.help = "Classes of uploads, highest first: a name, and terms of which one must match.\n"
			"  token:NAME         the token of that name in access.tokens_file\n"
			"  net:10.0.0.0/8     the client's address\n"
			"  header:X-Tier=gold a header field; only behind a proxy that sets it\n"
			"  target:1s          the class has this instead of target_p90\n"
			"All other uploads are in the class other, the lowest. A lower class may use half\n"
			"of the room of the one above it, so that it is refused first.",
	},
	{
		CONF_KEY(overload, degrade, degrade),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_degrade_is_valid,
		.form = CONF_DEGRADE_FORM,
		.default_value = "",
		.is_live = true,
		.help = "Cheaper ways to make images under load, in the order in which they are added:\n"
			"  skip VARIANT    the variant is not made; at least one must remain\n"
			"  quality NUMBER  no variant has a higher quality\n"
			"  no-progressive  no file is progressive, which takes seven times the work\n"
			"  no-optimize     no file has Huffman tables of its own\n"
			"One after the other is added while half of the room of the upload's class is\n"
			"taken, and removed when the load has gone. The controller refuses an upload only\n"
			"when all are in. The image's JSON has them as degraded. skip saves most, but the\n"
			"image lacks the variant from then on, or until backfill makes it.",
	},
	{
		CONF_KEY(overload, backfill, backfill),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether variants that were skipped are made when the load has gone, also after a\n"
			"restart. They are made from original.jpg, so this needs server.keep_originals.\n"
			"Variants of a lower quality stay as they are; darkroomd store remake makes them\n"
			"as configured.",
	},
	{
		CONF_KEY(overload, samples, samples),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 1000,
		.default_value = "100",
		.is_live = true,
		.help = "Response times that end an interval of the controller.",
	},
	{
		CONF_KEY(overload, interval, interval_ms),
		.type = CONF_TYPE_MS,
		.min = 10,
		.max = 60000,
		.default_value = "1s",
		.is_live = true,
		.help = "Time that ends it in any case.",
	},
	{
		CONF_KEY(overload, smoothing, smoothing),
		.type = CONF_TYPE_DECIMAL,
		.max = 999,
		.default_value = "0.7",
		.is_live = true,
		.help = "welsh: weight of earlier intervals in the response time. The keys below are also for\n"
			"welsh only, with the names and defaults of its figure 50. The error is the\n"
			"response time less its target, divided by the target.",
	},
	{
		CONF_KEY(overload, increase_below, increase_below),
		.type = CONF_TYPE_DECIMAL,
		.max = 1000,
		.default_value = "0.5",
		.is_live = true,
		.help = "welsh: the rate grows while the error is below minus this.",
	},
	{
		CONF_KEY(overload, decrease_above, decrease_above),
		.type = CONF_TYPE_DECIMAL,
		.max = 10000,
		.default_value = "0",
		.is_live = true,
		.help = "welsh: the rate falls while the error is above this.",
	},
	{
		CONF_KEY(overload, increase, increase),
		.type = CONF_TYPE_DECIMAL,
		.max = 1000000,
		.default_value = "2",
		.is_live = true,
		.help = "welsh: the rate grows by this times -(error + increase_offset).",
	},
	{
		CONF_KEY(overload, increase_offset, increase_offset),
		.type = CONF_TYPE_DECIMAL,
		.max = 1000,
		.default_value = "0.1",
		.is_live = true,
		.help = "welsh: the error at which it would not grow.",
	},
	{
		CONF_KEY(overload, decrease, decrease),
		.type = CONF_TYPE_DECIMAL,
		.min = 1001,
		.max = 100000,
		.default_value = "1.2",
		.is_live = true,
		.help = "welsh: the rate falls by division by this.",
	},
	{
		CONF_KEY(overload, rate_min, rate_min),
		.type = CONF_TYPE_DECIMAL,
		.min = 1,
		.max = 1000000,
		.default_value = "0.05",
		.is_live = true,
		.help = "welsh: uploads per second that are admitted in any case.",
	},
	{
		CONF_KEY(overload, rate_max, rate_max),
		.type = CONF_TYPE_DECIMAL,
		.min = 1000,
		.max = 1000000000,
		.default_value = "5000",
		.is_live = true,
		.help = "welsh: uploads per second that are admitted at most.",
	},
	{
		CONF_KEY(overload, decrease_lower, decrease_lower),
		.type = CONF_TYPE_DECIMAL,
		.min = 1001,
		.max = 1000000,
		.default_value = "10",
		.is_live = true,
		.help = "welsh: when a class misses its target, the rates of lower classes are divided by\n"
			"this first.",
	},
	{
		CONF_KEY(overload, decrease_patience, decrease_patience),
		.type = CONF_TYPE_NUMBER,
		.max = 1000,
		.default_value = "20",
		.is_live = true,
		.help = "welsh: intervals with the lower classes at rate_min before the own rate falls.",
	},
};

const struct conf_key_list conf_keys_overload = { rows, COUNT_OF(rows) };

/*
 * conf_keys_log.c - rows of the table of keys: [log].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"
#include "log/log.h"

#define GIB (UINT64_C(1) << 30)
#define SIDE_MAX 65500 /* pixels of an image; libjpeg's JPEG_MAX_DIMENSION */
static const struct conf_choice level_choices[] = {
	{ "error", LOG_LEVEL_ERROR },   { "warning", LOG_LEVEL_WARNING },
	{ "notice", LOG_LEVEL_NOTICE }, { "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },   { 0 },
};
static const struct conf_choice access_choices[] = {
	{ "no", LOG_ACCESS_NO }, { "text", LOG_ACCESS_TEXT }, { "json", LOG_ACCESS_JSON }, { 0 }
};

static const struct conf_key rows[] = {
	{
		CONF_KEY(log, level, level),
		.type = CONF_TYPE_CHOICE,
		.choices = level_choices,
		.default_value = "info",
		.is_live = true,
		.help = "Messages above this level are not written. They go to standard error. If one\n"
			"place repeats an error or a warning, ten are written in ten seconds, then the\n"
			"number of the others.",
	},
	{
		CONF_KEY(log, access, access),
		.type = CONF_TYPE_CHOICE,
		.choices = access_choices,
		.default_value = "text",
		.is_live = true,
		.help = "One line per request, written when it is answered or its client has gone.\n"
			"text: KEY=VALUE, separated by spaces.",
	},
	{
		CONF_KEY(log, skip_probes, skip_probes),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether these lines leave out /healthz, /readyz, /stats and /metrics that were\n"
			"answered with success. A proxy that probes every second writes 86,400 a day.",
	},
	{
		CONF_KEY(log, access_file, access_file),
		.type = CONF_TYPE_LOG_FILE,
		.default_value = "stderr",
		.help = "Where these lines go: stderr, as messages of level info, or a file. The file\n"
			"is created if it is missing, its directory is not. SIGHUP reopens it, for\n"
			"logrotate.",
	},
};

const struct conf_key_list conf_keys_log = { rows, COUNT_OF(rows) };

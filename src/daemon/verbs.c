/*
 * verbs.c - prints the configuration and what follows from it. Main thread.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "check_start.h"
#include "conf/conf_dump.h"
#include "conf/conf_print.h"
#include "log/log.h"
#include "options.h"
#include "sandbox.h"
#include "topology_report.h"

#define OUTPUT_MAX ((size_t)1 << 20)

/* Prints the text and releases it. */
static int finish(struct text *text)
{
	fputs(text->data, stdout);
	text_fini(text);
	return options_finish_output();
}

int verb_check(const struct options *o, const struct conf *conf, const struct program *program)
{
	char data[512];
	struct text sandbox;

	if (check_start(program, conf))
		return EX_CONFIG;
	if (o->quiet)
		return EXIT_SUCCESS;
	text_init(&sandbox, data, sizeof data);
	sandbox_describe(conf, &sandbox);
	fprintf(stderr, "%s: the configuration is valid\n%s\n",
	        o->config_path ? o->config_path : "built-in values", data);
	return EXIT_SUCCESS;
}

int verb_dump(const struct conf *conf)
{
	struct text text;

	text_init_growable(&text, OUTPUT_MAX);
	int err = conf_dump(conf, &text);

	if (!err)
		return finish(&text);
	fprintf(stderr, "darkroomd: cannot write the configuration as an INI file: %s\n",
	        err == -EILSEQ ? "a value has both kinds of quotation marks" : strerror(-err));
	text_fini(&text);
	return EXIT_FAILURE;
}

int verb_topology(const struct conf *conf)
{
	struct text text;

	log_set_level(LOG_LEVEL_WARNING); /* notices would repeat the output */
	text_init_growable(&text, OUTPUT_MAX);
	if (!topology_report_print(conf, &text))
		return finish(&text);
	text_fini(&text);
	return EXIT_FAILURE;
}

int verb_keys(void)
{
	struct text text;

	text_init_growable(&text, OUTPUT_MAX);
	conf_print_keys(&text);
	return finish(&text);
}

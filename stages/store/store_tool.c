/* store_tool.c - finds and runs the command. Main thread. */
#include "store_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_commands.h"
#include "store_query.h"

static const struct {
	const char *name;
	int (*run)(struct store_query *q);
} commands[] = {
	{ "list", store_list },     { "find", store_find_images }, { "count", store_count },
	{ "remove", store_delete }, { "check", store_audit },      { "plan", store_plan },
	{ "remake", store_remake }, { "export", store_export },    { "import", store_import },
};

int store_tool(const struct conf *conf, store_ask *ask, char *const *words, size_t count)
{
	static struct store_query q;
	size_t i = 0;

	while (i < COUNT_OF(commands) && strcmp(words[0], commands[i].name) != 0)
		i++;
	if (i == COUNT_OF(commands))
		return store_query_usage(
			"%s: expected list, find, count, remove, check, plan, remake, export or "
			"import",
			words[0]);
	int status = store_query_open(&q, conf, ask, words, count);

	if (!status)
		status = commands[i].run(&q);
	store_query_close(&q);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("darkroomd store: standard output");
	return EXIT_FAILURE;
}

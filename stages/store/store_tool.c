/* store_tool.c - finds and runs the command. Main thread. */
#include "store_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_commands.h"
#include "store_query.h"

#define SELECTION                                                                        \
	"  --since, --before TIME   2026-11-22, 2026-11-22T11:40:00Z, or an age: 30d\n"  \
	"  --after ID, --limit N    the part of the list behind an id, and its length\n" \
	"  --newest                 newest first\n"
#define IDS "  --ids FILE               ids of a file, one on each line; -: standard input\n"
#define BY_NAME IDS "  --token NAME             uploaded with this token\n"
#define JSON "  --json                   JSON, one object on each line\n"
#define MISSING "  --missing                only variants that an image does not have\n"
#define DRY "  --dry-run                print the ids, and do nothing\n"

static const struct {
	const char *name;
	int (*run)(struct store_query *q);
	const char *help;
} commands[] = {
	{ "list", store_list,
	  "list [OPTION...]\n\nPrints a line for each image.\n\n" SELECTION BY_NAME JSON },
	{ "find", store_find_images,
	  "find [OPTION...] [ID...]\n\nPrints a line for each image that is named.\n\n" BY_NAME
	  "  --since, --before, --after, --limit, --newest: as for list\n" JSON },
	{ "count", store_count,
	  "count [OPTION...]\n\nPrints images and bytes by day, and bytes by variant.\n\n" SELECTION
	          BY_NAME JSON },
	{ "remove", store_delete,
	  "remove [OPTION...] [ID...]\n\nRemoves images, and prints their ids.\n\n" SELECTION
	          BY_NAME DRY
	  "  --rate N                 images in a second; 500 if it is not given\n" },
	{ "check", store_audit,
	  "check [OPTION...] [ID...]\n\nCompares all files with their checksums.\n\n"
	  "  --repair                 move damaged files to .quarantine\n"
	  "  --rate BYTES             bytes in a second, with K, M or G; 32M if it is not given\n"
	  "  --restart                begin with the first image again\n"
	  "  --ids FILE, --since, --before, --after, --limit: as for list\n" JSON },
	{ "plan", store_plan,
	  "plan [OPTION...] [VARIANT...]\n\nPrints what remake would do.\n\n" MISSING IDS SELECTION
	          JSON },
	{ "remake", store_remake,
	  "remake [OPTION...] [VARIANT...]\n\nHas the daemon make variants that images lack.\n\n" MISSING
	  "  --ids FILE               ids of a file, one on each line\n" SELECTION DRY },
	{ "export", store_export,
	  "export [OPTION...] [ID...]\n\nWrites images to standard output, as an archive of "
	  "tar.\n\n" SELECTION BY_NAME },
	{ "import", store_import,
	  "import [OPTION...]\n\nStores the images of such an archive, from standard input.\n\n" DRY },
};

static size_t find_command(const char *name)
{
	size_t i = 0;

	while (i < COUNT_OF(commands) && strcmp(name, commands[i].name) != 0)
		i++;
	return i;
}

bool store_tool_help(char *const *words, size_t count)
{
	bool is_asked = false;

	for (size_t i = 0; i < count; i++)
		is_asked |= strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0;
	if (!is_asked)
		return false;
	size_t command = find_command(words[0]);

	if (command < COUNT_OF(commands)) {
		printf("usage: darkroomd [-c FILE] store %s", commands[command].help);
	} else {
		printf("usage: darkroomd [-c FILE] store COMMAND [OPTION...]\n\nCommands:");
		for (size_t i = 0; i < COUNT_OF(commands); i++)
			printf(" %s", commands[i].name);
		printf("\n'store COMMAND --help' has the options of one.\n");
	}
	printf("See darkroom-store(7).\n");
	return true;
}

int store_tool(const struct conf *conf, store_ask *ask, char *const *words, size_t count)
{
	static struct store_query q;
	size_t i = find_command(words[0]);

	if (i == COUNT_OF(commands))
		return store_query_usage(
			"%s: expected list, find, count, remove, check, plan, remake, export or "
			"import",
			words[0]);
	if (conf->store.kind == CONF_STORE_S3)
		return store_query_usage("store.kind = s3 does not provide it");
	int status = store_query_open(&q, conf, ask, words, count);

	if (!status)
		status = commands[i].run(&q);
	store_query_close(&q);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("darkroomd store: standard output");
	return EXIT_FAILURE;
}

/* remake_queue.c - one small file for each image. Any thread. */
#include "remake_queue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf_files.h"
#include "conf/conf_value.h"
#include "directory.h"
#include "store.h"

#define HEAD 3 /* bytes before the names */
#define CONTENT_MAX (REMAKE_QUEUE_NAMES_MAX + 8)

static void path_of(char path[STORE_PATH_MAX], const char *id)
{
	snprintf(path, STORE_PATH_MAX, REMAKE_QUEUE_DIRECTORY "/%s", id);
}

int remake_queue_make(struct store *s)
{
	int fd = directory_open(s->root_fd, REMAKE_QUEUE_DIRECTORY, PRIVATE_DIRECTORY);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int remake_queue_put(struct store *s, const char *id, const struct remake_entry *entry)
{
	char path[STORE_PATH_MAX], content[CONTENT_MAX];
	int length = snprintf(content, sizeof content, "%c%c\n%s",
	                      (char)('0' + (entry->attempts < 9 ? entry->attempts : 9)),
	                      entry->only_missing ? 'm' : 'a', entry->names);

	path_of(path, id);
	return directory_write_file(s->root_fd, path, content, (size_t)length, false);
}

int remake_queue_get(struct store *s, const char *id, struct remake_entry *entry)
{
	char path[STORE_PATH_MAX], content[CONTENT_MAX];

	path_of(path, id);
	int n = directory_read_file(s->root_fd, path, content, sizeof content);

	if (n < 0)
		return n;
	if (n < HEAD || n - HEAD >= (int)sizeof entry->names || content[0] < '0' ||
	    content[0] > '9' || content[2] != '\n')
		return -EINVAL;
	entry->attempts = (unsigned)(content[0] - '0');
	entry->only_missing = content[1] == 'm';
	memcpy(entry->names, content + HEAD, (size_t)(n - HEAD) + 1);
	return 0;
}

int remake_queue_drop(struct store *s, const char *id)
{
	char path[STORE_PATH_MAX];

	path_of(path, id);
	return directory_unlink(s->root_fd, path, 0);
}

bool remake_queue_has(struct store *s, const char *id)
{
	char path[STORE_PATH_MAX];
	struct stat st;

	path_of(path, id);
	return directory_stat(s->root_fd, path, &st) == 0;
}

/* Returns whether the entry has the name, or all. */
static bool wants(const struct remake_entry *entry, const char *name)
{
	return !entry->names[0] || conf_fields_have(entry->names, name, strlen(name));
}

uint32_t remake_entry_wanted(const struct remake_entry *entry, const struct conf *conf)
{
	struct conf_files files;
	uint32_t wanted = 0;

	conf_files_list(&files, conf);
	for (unsigned i = 0; i < files.count; i++)
		if (wants(entry, files.file[i].label) ||
		    wants(entry, conf->variant[files.file[i].variant].name))
			wanted |= UINT32_C(1) << i;
	return wanted;
}

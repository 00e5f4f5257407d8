/* sandbox_root.c - looks at the store's parent directory. Main thread. */
#include "sandbox_root.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"

/* Returns whether a directory has one entry, and that has this name. */
static bool has_only(const char *path, const char *name)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool is_there = false;

	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (strcmp(entry->d_name, name) != 0)
			break;
		is_there = true;
	}
	closedir(dir);
	return is_there && !entry;
}

const char *sandbox_root(const char *root)
{
	static char parent[CONF_TEXT_MAX];

	snprintf(parent, CONF_TEXT_MAX, "%s", root);
	for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	char *slash = strrchr(parent, '/');

	if (!slash || slash == parent)
		return root;
	*slash = '\0';
	return has_only(parent, slash + 1) ? parent : root;
}

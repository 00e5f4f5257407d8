/* stray.c - compares names with those that the store gives. Any thread; calls block. */
#include "stray.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "directory.h"

static bool has_length(const char *name, size_t length)
{
	return strlen(name) == length && strspn(name, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == length;
}

/* Returns whether a directory belongs into another one, with images. *below: further ones are in
 * it. */
static bool belongs(const char *directory, const char *name, bool *below)
{
	char path[STORE_PATH_MAX];
	size_t depth = strlen(directory);

	*below = depth == 0 || depth == STORE_SPAN_LENGTH;
	if (depth == 0 && has_length(name, STORE_SPAN_LENGTH))
		return true;
	if (*below)
		return has_length(name, STORE_SHARD_LENGTH);
	/* An image must lie where its id says. */
	if (!ulid_is_valid(name, strlen(name)))
		return false;
	store_shard_path(path, depth > STORE_SPAN_LENGTH ? STORE_BY_TIME : STORE_BY_TAIL, name);
	return strcmp(path, directory) == 0;
}

/* The directories and files behind a dot. *below: names in it can be told from others. */
static bool belongs_behind_dot(const char *name, bool *below)
{
	static const char *const directories[] = { STORE_INCOMING_DIRECTORY, STORE_TRASH_DIRECTORY,
		                                   STORE_SPOOL_DIRECTORY,    STORE_EXPIRY_DIRECTORY,
		                                   STORE_KEYS_DIRECTORY,     STORE_IMPORT_DIRECTORY,
		                                   REMAKE_QUEUE_DIRECTORY };
	static const char *const others[] = { STORE_QUARANTINE_DIRECTORY, USAGE_FILE,
		                              USAGE_RECOUNT_FILE, STORE_CHECK_FILE };
	bool is_known = false;

	*below = false;
	for (size_t i = 0; i < COUNT_OF(directories); i++)
		*below |= strcmp(name, directories[i]) == 0;
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		size_t n = strlen(others[i]);

		is_known |= strncmp(name, others[i], n) == 0 &&
		            (!name[n] || strcmp(name + n, ".new") == 0);
	}
	return is_known || *below;
}

/* The names in a directory behind a dot. */
static bool belongs_in(const char *directory, const char *name)
{
	if (strcmp(directory, STORE_EXPIRY_DIRECTORY) == 0)
		return strspn(name, "0123456789") == strlen(name) || strcmp(name, "swept") == 0;
	if (strcmp(directory, STORE_KEYS_DIRECTORY) == 0)
		return strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2;
	return directory_has_id(name);
}

static bool is_stray(const char *directory, const char *name, mode_t mode, enum stray_where where,
                     bool *below)
{
	bool is_root = !*directory, is_dotted = (is_root ? name : directory)[0] == '.';

	*below = false;
	if (is_root && (strcmp(name, "lost+found") == 0 || S_ISSOCK(mode)))
		return false;
	if (is_root && is_dotted)
		return where == STRAY_AT_START && !belongs_behind_dot(name, below);
	if (is_dotted)
		return !belongs_in(directory, name);
	bool is_known = S_ISDIR(mode) && belongs(directory, name, below);

	*below = *below &&
	         (where == STRAY_AMONG_IMAGES || (is_root && strlen(name) == STORE_SPAN_LENGTH));
	return !is_known;
}

/* An entry that has gone since it was listed is an image that was removed. */
void stray_find(int root_fd, const char *directory, enum stray_where where,
                void (*each)(const char *path, void *arg), void *arg)
{
	DIR *dir = directory_list(root_fd, *directory ? directory : ".");
	char path[STRAY_PATH_MAX];
	const char *name;
	struct stat st = { .st_mode = S_IFDIR };
	bool below, looks = where == STRAY_AMONG_IMAGES || !*directory;

	while (dir && (name = directory_next(dir))) {
		if (looks && fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno == ENOENT)
				continue;
			st.st_mode = 0;
		}
		snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", name);
		if (is_stray(directory, name, st.st_mode, where, &below))
			each(path, arg);
		else if (below)
			stray_find(root_fd, path, where, each, arg);
	}
	if (dir)
		closedir(dir);
}

/*
 * check_start.c - tries what a start would need, and leaves nothing behind.
 *
 * What belongs to server.user is tried by a child process that becomes this user. Main thread.
 */
#include "check_all.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/conf_source.h"
#include "daemon/sandbox/sandbox.h"
#include "log/log.h"
#include "program.h"

#define PATH_BYTES CONF_TEXT_MAX

/* ---- memory ---- */

/* Returns the limit in the file, or UINT64_MAX: it has none, or does not exist. */
static uint64_t read_limit(const char *group)
{
	char path[PATH_BYTES + 64];
	uint64_t limit = UINT64_MAX;
	int n = snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
	FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &limit) != 1)
		limit = UINT64_MAX; /* "max" */
	fclose(file);
	return limit;
}

/* Returns the lowest limit of this process's control group (version 2) and of those above it. */
static uint64_t group_memory_max(void)
{
	char line[PATH_BYTES], *end;
	uint64_t lowest = UINT64_MAX, limit;
	FILE *file = fopen("/proc/self/cgroup", "re");

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof line, file)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		while ((end = strrchr(line + 3, '/'))) {
			limit = read_limit(line + 3);
			lowest = limit < lowest ? limit : lowest;
			*end = '\0';
		}
	}
	fclose(file);
	return lowest;
}

void check_start_memory(const struct conf *conf)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), max = group_memory_max();
	uint64_t all = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	bool is_group = max < all;

	if (!is_group)
		max = all;
	if (conf->limits.memory_budget > max)
		log_warning("%slimits.memory_budget = %" PRIu64 " MiB: expected at most %" PRIu64
		            " MiB, the memory of this %s",
		            conf_place("limits.memory_budget"), conf->limits.memory_budget >> 20,
		            max >> 20, is_group ? "control group" : "machine");
}

/* ---- directories ---- */

/* Returns whether the directory, which the key's path needs, exists and can be written; logged. */
static bool check_directory(const char *key, const char *path, const char *directory)
{
	struct stat st;

	if (stat(directory, &st))
		log_error("%s%s = %s: %s: %s", conf_place(key), key, path, directory,
		          strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		log_error("%s%s = %s: %s is not a directory", conf_place(key), key, path,
		          directory);
	else if (access(directory, W_OK | X_OK))
		log_error("%s%s = %s: cannot write in %s: %s", conf_place(key), key, path,
		          directory, strerror(errno));
	else
		return true;
	return false;
}

/* The directory above the key's file, if `path` is one. */
static bool check_above(const char *key, const char *path)
{
	char above[PATH_BYTES];

	if (!strchr(path, '/'))
		return true; /* none, or stderr */
	snprintf(above, sizeof above, "%s", path);
	return check_directory(key, path, dirname(above));
}

/* The start opens the log, or makes it if there is none. */
static bool check_log(const char *path)
{
	struct stat st;

	if (!strchr(path, '/') || stat(path, &st))
		return check_above("log.access_file", path);
	if (S_ISREG(st.st_mode) && access(path, W_OK) == 0)
		return true;
	log_error("%slog.access_file = %s: %s", conf_place("log.access_file"), path,
	          S_ISREG(st.st_mode) ? strerror(errno) : "expected a regular file");
	return false;
}

/* The start makes the store, but not the directories above it. Some file systems of the kernel tell
 * only here that they take no directory. */
static bool check_root(const char *root)
{
	if (access(root, F_OK) == 0)
		return check_directory("server.root", root, root);
	if (!check_above("server.root", root))
		return false;
	if (mkdir(root, 0700) == 0 && rmdir(root) == 0)
		return true;
	log_error("%sserver.root = %s: cannot make it: %s", conf_place("server.root"), root,
	          strerror(errno));
	return false;
}

/* Whether the key's file can be read; "": none. */
static bool check_readable(const struct conf *conf, const char *key, const char *path)
{
	if (!*path || access(path, R_OK) == 0)
		return true;
	log_error("%s%s = %s: cannot read it%s%s: %s", conf_place(key), key, path,
	          *conf->server.user ? " as " : "", conf->server.user, strerror(errno));
	return false;
}

static bool check_files(const struct conf *conf)
{
	bool is_right = check_root(conf->server.root);

	is_right &= check_log(conf->log.access_file);
	is_right &= check_above("server.control", conf->server.control);
	is_right &= check_readable(conf, "access.tokens_file", conf->access.tokens_file);
	if (conf->store.kind != CONF_STORE_S3)
		return is_right;
	is_right &= check_readable(conf, "store.s3_credentials", conf->store.s3_credentials);
	if (strncmp(conf->store.s3_endpoint, "https", strlen("https")) == 0)
		is_right &= check_readable(conf, "store.s3_ca_file", conf->store.s3_ca_file);
	return is_right;
}

/* The same as server.user. */
static bool check_files_as_user(const struct conf *conf)
{
	int status = 0;

	fflush(NULL);
	pid_t child = fork();

	if (child == 0)
		_exit(!sandbox_become_user(conf) && check_files(conf) ? EXIT_SUCCESS
		                                                      : EXIT_FAILURE);
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		log_error("cannot check the files of server.user: %s", strerror(errno));
		return false;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

int check_start(const struct conf *conf)
{
	const char *user = conf->server.user;
	bool is_right = true;

	if (!*user) {
		is_right = check_files(conf);
	} else if (geteuid() == 0) {
		is_right = check_files_as_user(conf);
	} else if (!getpwnam(user)) {
		log_error("%sserver.user = %s: unknown user", conf_place("server.user"), user);
		is_right = false;
	}
	is_right &= program_check_addresses(conf) == 0;
	check_start_memory(conf);
	return is_right ? 0 : -EINVAL;
}

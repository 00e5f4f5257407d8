/*
 * sandbox_files.c - Landlock's rules. libc has no wrappers for its system calls, and the installed
 * header may be older than the kernel: both are here.
 */
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"

/* Access rights, by the version of the interface that introduced them. */
#define FS_1 ((UINT64_C(1) << 13) - 1) /* all of Linux 5.13 */
#define FS_REFER (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)
#define NET_ALL UINT64_C(3) /* version 4: binding and connecting of TCP sockets */
#define NET_CONNECT UINT64_C(2)
#define NET_VERSION 4
#define RULE_NET_PORT 2
#define SCOPE_ALL                                                                      \
	UINT64_C(3) /* version 6: abstract Unix sockets and signals of other processes \
	             */

/* Rights that the store needs: not devices, sockets, fifos, symbolic links or execution. */
#define FS_STORE                                                                    \
	((uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |    \
	            LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |  \
	            LANDLOCK_ACCESS_FS_MAKE_REG) |                                  \
	 FS_REFER | FS_TRUNCATE)

struct ruleset_attributes {
	uint64_t fs, net, scoped;
};

struct port_attributes {
	uint64_t access, port;
};

static int allow_path(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access };
	int err = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return -errno;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		err = -errno;
	close(rule.parent_fd);
	return err;
}

int sandbox_files_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? 0 : (int)version;
}

int sandbox_files_enter(const struct sandbox_allowed *allowed)
{
	int version = sandbox_files_version();
	const struct ruleset_attributes attributes = { .fs = FS_1 | FS_REFER |
		                                             (version >= 3 ? FS_TRUNCATE : 0) |
		                                             (version >= 5 ? FS_IOCTL_DEV : 0),
		                                       .net = NET_ALL,
		                                       .scoped = SCOPE_ALL };
	const struct port_attributes port = { .access = NET_CONNECT, .port = allowed->port };
	/* An older kernel refuses a longer structure than its own. */
	size_t size = (version >= 6 ? 3 : version >= NET_VERSION ? 2 : 1) * sizeof(uint64_t);
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);

	if (ruleset < 0)
		return -errno;
	int err = allow_path(ruleset, allowed->root, FS_STORE & attributes.fs);

	if (!err && allowed->read_file)
		err = allow_path(ruleset, allowed->read_file, LANDLOCK_ACCESS_FS_READ_FILE);
	if (!err && allowed->port && version >= NET_VERSION &&
	    syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &port, 0))
		err = -errno;
	if (!err && syscall(SYS_landlock_restrict_self, ruleset, 0))
		err = -errno;
	close(ruleset);
	return err;
}

void sandbox_files_describe(uint16_t port, struct text *to)
{
	int version = sandbox_files_version();

	if (version < SANDBOX_FILES_MIN) {
		text_printf(to, "no Landlock (%s)",
		            version ? "this kernel's version cannot allow renaming"
		                    : "this kernel does not have it");
		return;
	}
	text_printf(to, "Landlock, version %d: only the store", version);
	if (version >= NET_VERSION && port)
		text_printf(to, ", other TCP sockets only to port %u", port);
	else if (version >= NET_VERSION)
		text_puts(to, ", no other TCP sockets");
	text_puts(to, version >= 6 ? ", no signals to other processes" : "");
}

/* ---- the store ---- */

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

const char *sandbox_files_root(const char *root)
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

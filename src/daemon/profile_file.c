/*
 * profile_file.c - opens and writes the file of --profile. Knows nothing of its format.
 *
 * The file is opened at startup: later the sandbox and the daemon's own user may not be allowed to.
 */
#include "profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/partition.h"
#include "log/log.h"
#include "sched/profile.h"
#include "sched/stage_costs.h"

int profile_file_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644),
	    err = fd < 0 ? -errno : 0;
	struct stat st;

	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err && S_ISREG(st.st_mode))
		return fd;
	log_error("--profile %s: %s", path, err ? strerror(-err) : "expected a regular file");
	if (fd >= 0)
		close(fd);
	return err ? err : -EINVAL;
}

int profile_file_write(int fd, const char *path, const struct graph *graph)
{
	struct partition_weights weights;

	stage_costs_collect(&weights, graph);
	int err = profile_write(&weights, fd);

	if (err)
		log_error("--profile %s: cannot write: %s", path, strerror(-err));
	else
		log_notice("profile written to %s", path);
	return err;
}

/*
 * descriptors.c - opens standard descriptors, raises RLIMIT_NOFILE. Main thread.
 */
#include "descriptors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/conf_places.h"
#include "log/log.h"
#include "telemetry/perf.h"

#define OTHER_FILES 256 /* store, queues, log, control socket and the like */

void descriptors_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void descriptors_raise_limit(const struct conf *conf)
{
	struct rlimit limit;
	rlim_t needed = (rlim_t)conf->limits.connections * 2 + OTHER_FILES;
	/* Without enough for their counters, threads run without counters. */
	rlim_t wanted = needed + PERF_COUNT * CONF_THREADS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < needed)
		log_warning("%slimits.connections = %" PRIu64 ": expected a limit of %" PRIu64
		            " open files (ulimit -n), but it is %" PRIu64,
		            conf_place("limits.connections"), conf->limits.connections,
		            (uint64_t)needed, (uint64_t)limit.rlim_cur);
}

/* process.c - reads memory, CPU time and descriptors of this process. Any thread. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"
#include "metrics_text.h"

void process_open(struct process *p)
{
	process_set_reload(false);
	clock_gettime(CLOCK_REALTIME, &p->start);
	pthread_mutex_init(&p->lock, NULL);
	p->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	p->fds = opendir("/proc/self/fd");
	if (p->statm_fd < 0 || !p->fds)
		log_info("/proc: cannot read it; /metrics has only a part of process_*");
}

void process_close(struct process *p)
{
	if (p->statm_fd >= 0)
		close(p->statm_fd);
	if (p->fds)
		closedir(p->fds);
	pthread_mutex_destroy(&p->lock);
}

static _Atomic bool has_reload_failed;
static _Atomic uint64_t reload_s; /* the time of the last reload that succeeded */

void process_set_reload(bool has_failed)
{
	struct timespec now;

	atomic_store_explicit(&has_reload_failed, has_failed, memory_order_relaxed);
	if (!has_failed && clock_gettime(CLOCK_REALTIME, &now) == 0)
		atomic_store_explicit(&reload_s, (uint64_t)now.tv_sec, memory_order_relaxed);
}

static void memory(struct process *p, struct metrics *m)
{
	char data[128];
	uint64_t size, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);
	ssize_t n = p->statm_fd < 0 ? -1 : pread(p->statm_fd, data, sizeof data - 1, 0);

	if (n <= 0)
		return;
	data[n] = '\0';
	if (sscanf(data, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return;
	metrics_value(m, "process_resident_memory_bytes", "Resident memory size in bytes.",
	              resident * page);
	metrics_value(m, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
	              size * page);
}

static void descriptors(struct process *p, struct metrics *m)
{
	const struct dirent *entry;
	struct rlimit limit;
	uint64_t count = 0;

	if (p->fds) {
		pthread_mutex_lock(&p->lock);
		rewinddir(p->fds);
		while ((entry = readdir(p->fds)))
			count += entry->d_name[0] != '.';
		pthread_mutex_unlock(&p->lock);
		metrics_value(m, "process_open_fds", "Number of open file descriptors.", count);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_value(m, "process_max_fds", "Maximum number of open file descriptors.",
		              limit.rlim_cur);
}

void process_metrics(struct process *p, struct metrics *m)
{
	struct timespec cpu;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
		metrics_family(m, "process_cpu_seconds_total", "counter",
		               "Total user and system CPU time spent in seconds.");
		metrics_seconds(m, NULL, (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec);
	}
	metrics_family(m, "process_start_time_seconds", "gauge",
	               "Start time of the process since unix epoch in seconds.");
	metrics_seconds(m, NULL, (uint64_t)p->start.tv_sec * NS_PER_S + (uint64_t)p->start.tv_nsec);
	memory(p, m);
	descriptors(p, m);
	metrics_value(m, "darkroom_config_last_reload_successful",
	              "Whether the last reload of the configuration succeeded.",
	              !atomic_load_explicit(&has_reload_failed, memory_order_relaxed));
	metrics_value(m, "darkroom_config_last_reload_success_timestamp_seconds",
	              "Time of the last successful reload, or of the start.",
	              atomic_load_explicit(&reload_s, memory_order_relaxed));
}

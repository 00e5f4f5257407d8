/* process.c - reads memory, CPU time and descriptors of this process. Any thread. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"
#include "metrics_text.h"

void process_open(struct process *p)
{
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

static void memory(struct process *p, struct text *t)
{
	char data[128];
	uint64_t size, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);
	ssize_t n = p->statm_fd < 0 ? -1 : pread(p->statm_fd, data, sizeof data - 1, 0);

	if (n <= 0)
		return;
	data[n] = '\0';
	if (sscanf(data, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return;
	metrics_gauge(t, "process_resident_memory_bytes", "Resident memory size in bytes.",
	              resident * page);
	metrics_gauge(t, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
	              size * page);
}

static void descriptors(struct process *p, struct text *t)
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
		metrics_gauge(t, "process_open_fds", "Number of open file descriptors.", count);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_gauge(t, "process_max_fds", "Maximum number of open file descriptors.",
		              limit.rlim_cur);
}

void process_metrics(struct process *p, struct text *t)
{
	struct timespec cpu;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
		metrics_family(t, "process_cpu_seconds_total", "counter",
		               "Total user and system CPU time spent in seconds.");
		metrics_seconds(t, "process_cpu_seconds_total", NULL,
		                (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec);
	}
	metrics_family(t, "process_start_time_seconds", "gauge",
	               "Start time of the process since unix epoch in seconds.");
	metrics_seconds(t, "process_start_time_seconds", NULL,
	                (uint64_t)p->start.tv_sec * NS_PER_S + (uint64_t)p->start.tv_nsec);
	memory(p, t);
	descriptors(p, t);
}

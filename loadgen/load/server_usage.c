/* server_usage.c - finds the server's processes in /proc and adds up their usage. */
#include "server_usage.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PROCESSES_MAX 4096
#define LISTEN_STATE 0x0A /* TCP_LISTEN in /proc/net/tcp */

/* ---- finding the server ---- */

struct inodes {
	unsigned long list[SERVER_ROOTS_MAX];
	unsigned count;
};

/* Adds the sockets that listen at the port, from /proc/net/tcp or /proc/net/tcp6. */
static void find_sockets(struct inodes *inodes, const char *path, unsigned port)
{
	/* number, local address, remote address, state, ..., inode */
	static const char format[] = " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x "
				     "%*x %*u %*u %lu";
	FILE *in = fopen(path, "re");
	char line[512];

	while (in && fgets(line, sizeof line, in)) {
		unsigned local_port, state;
		unsigned long inode;

		if (sscanf(line, format, &local_port, &state, &inode) == 3 && local_port == port &&
		    state == LISTEN_STATE && inodes->count < SERVER_ROOTS_MAX)
			inodes->list[inodes->count++] = inode;
	}
	if (in)
		fclose(in);
}

static bool holds_socket(const char *pid, const struct inodes *inodes)
{
	char path[300], target[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
		unsigned long inode;

		if (n < 0)
			continue;
		target[n] = '\0';
		if (sscanf(target, "socket:[%lu]", &inode) == 1)
			for (unsigned i = 0; i < inodes->count; i++)
				found |= inode == inodes->list[i];
	}
	if (dir)
		closedir(dir);
	return found;
}

static unsigned port_of(const struct url_address *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->address.ss_family == AF_INET) {
		memcpy(&v4, &address->address, sizeof v4);
		return ntohs(v4.sin_port);
	}
	memcpy(&v6, &address->address, sizeof v6);
	return ntohs(v6.sin6_port);
}

int server_usage_find(struct server_usage *s, pid_t pid, const struct url_address *address)
{
	struct inodes inodes = { .count = 0 };
	struct dirent *entry;
	DIR *dir;

	*s = (struct server_usage){ 0 };
	if (pid > 0) {
		s->roots[s->root_count++] = pid;
		return kill(pid, 0) == 0 || errno == EPERM ? 0 : -1;
	}
	if (!url_address_is_loopback(address))
		return 0;
	find_sockets(&inodes, "/proc/net/tcp", port_of(address));
	find_sockets(&inodes, "/proc/net/tcp6", port_of(address));
	dir = opendir("/proc");
	while (dir && inodes.count > 0 && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && s->root_count < SERVER_ROOTS_MAX &&
		    holds_socket(entry->d_name, &inodes))
			s->roots[s->root_count++] = (pid_t)atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return 0;
}

/* ---- measuring its usage ---- */

struct process {
	pid_t pid, parent;
	uint64_t reaped_ns; /* CPU time of its children that have ended */
	bool is_ours;
};

/* Reads /proc/PID/stat. The name in parentheses may contain anything, so the last parenthesis ends
 * it. */
static bool read_process(struct process *p, const char *pid)
{
	unsigned long long user, system;
	char path[300], line[1024];
	const char *end;
	FILE *in;
	size_t n;
	int parent;

	snprintf(path, sizeof path, "/proc/%s/stat", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	n = fread(line, 1, sizeof line - 1, in);
	fclose(in);
	line[n] = '\0';
	end = strrchr(line, ')');
	if (!end || sscanf(end, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
	                   &parent, &user, &system) != 3)
		return false;
	*p = (struct process){ .pid = (pid_t)atoi(pid),
		               .parent = parent,
		               .reaped_ns = (user + system) *
		                            (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)) };
	return true;
}

static size_t read_processes(struct process *list, size_t room)
{
	struct dirent *entry;
	size_t count = 0;
	DIR *dir = opendir("/proc");

	while (dir && count < room && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process(&list[count], entry->d_name))
			count++;
	if (dir)
		closedir(dir);
	return count;
}

/* Marks the roots and all of their descendants. */
static void mark_ours(const struct server_usage *s, struct process *list, size_t count)
{
	bool has_changed = true;

	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < s->root_count; k++)
			list[i].is_ours |= list[i].pid == s->roots[k];
	while (has_changed) {
		has_changed = false;
		for (size_t i = 0; i < count; i++)
			for (size_t k = 0; k < count && !list[i].is_ours; k++)
				if (list[k].is_ours && list[k].pid == list[i].parent)
					has_changed = list[i].is_ours = true;
	}
}

/* Returns the time of all threads, including ended ones. It counts nanoseconds; /proc counts
 * hundredths of a second. */
static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t peak_rss_bytes(pid_t pid)
{
	unsigned long long kib = 0;
	char path[64], line[256];
	FILE *in;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof line, in))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	if (in)
		fclose(in);
	return kib * 1024;
}

/* Returns the CPU time of all processes since they started, and in *rss the sum of their peaks. */
static uint64_t measure(const struct server_usage *s, uint64_t *rss)
{
	struct process *list = calloc(PROCESSES_MAX, sizeof *list);
	uint64_t cpu_ns = 0;
	size_t count;

	*rss = 0;
	if (!list)
		return 0;
	count = read_processes(list, PROCESSES_MAX);
	mark_ours(s, list, count);
	for (size_t i = 0; i < count; i++) {
		if (!list[i].is_ours)
			continue;
		cpu_ns += process_cpu_ns(list[i].pid) + list[i].reaped_ns;
		*rss += peak_rss_bytes(list[i].pid);
	}
	free(list);
	return cpu_ns;
}

void server_usage_start(struct server_usage *s)
{
	uint64_t rss;

	if (s->root_count == 0)
		return;
	s->cpu_start_ns = measure(s, &rss);
	s->peak_rss_bytes = rss;
}

void server_usage_sample(struct server_usage *s)
{
	uint64_t cpu_ns, rss;

	if (s->root_count == 0)
		return;
	cpu_ns = measure(s, &rss);
	/* less than before: a process has ended, and the last sample counts */
	if (cpu_ns > s->cpu_start_ns && cpu_ns - s->cpu_start_ns > s->cpu_ns)
		s->cpu_ns = cpu_ns - s->cpu_start_ns;
	if (rss > s->peak_rss_bytes)
		s->peak_rss_bytes = rss;
}

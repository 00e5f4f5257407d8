/*
 * jail.c - slots, the processes that decode into them, and what is believed of them: nothing.
 *
 * A slot is used again when a child is ready for it. The zygote starts that when the former one has
 * ended, so no two processes ever have the same slot.
 */
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd_message.h"
#include "log/log.h"

#define NAME "darkroom-decode"
#define START_MS 10000 /* until the program has loaded its libraries */
#define WAIT_MS 2      /* of a worker, which then looks at what else there is to do */
/* Of waiting in vain: for a process (another zygote takes 1 s), and for an answer without seeing it
 * at work. */
#define READY_MAX_MS 10000
#define SILENCE_MAX_MS 2000
#define ROWS_MAX 64 /* of a plane, read by one call */
/* This number of crashes within this time switches the format off for the same time. Something is
 * wrong with its library, or somebody looks for a way in. */
#define CRASHES_MAX 20
#define CRASHES_NS (60 * NS_PER_S)

struct jail_slot {
	int memfd;
	int ready;     /* socket of the next child; -1: none */
	int32_t pid;   /* of it */
	bool is_taken; /* by a job */
	bool is_dirty; /* to be wiped when its process has ended */
};

static struct {
	int control; /* -1: not started */
	_Atomic uint32_t formats;
	unsigned slot_count;
	pthread_mutex_t lock; /* of what follows */
	struct jail_slot slot[JAIL_SLOTS_MAX];
	struct {
		unsigned count;
		uint64_t begin_ns, off_until_ns;
	} crashes[FILE_FORMATS];
} jail = { .control = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the program ---- */

/* Makes a slot's memory. Its size is fixed, so that no process can cut it off under another. */
static int make_slot(struct jail_slot *s)
{
	*s = (struct jail_slot){ .ready = -1 };
	s->memfd = memfd_create("picture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->memfd < 0)
		return -errno;
	if (ftruncate(s->memfd, (off_t)JAIL_SLOT_BYTES) ||
	    fcntl(s->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int err = -errno;

		close(s->memfd);
		return err;
	}
	return 0;
}

/* In the child of fork(): leaves only the descriptors of jail_protocol.h open. */
_Noreturn static void execute(const char *program, int control)
{
	const int first = JAIL_CONTROL_FD + 1 + JAIL_SLOTS_MAX; /* beyond all that are set below */
	char slots[16], *environment[] = { NULL };
	int fds[1 + JAIL_SLOTS_MAX], null = open("/dev/null", O_RDWR);

	fds[0] = fcntl(control, F_DUPFD, first);
	for (unsigned k = 0; k < jail.slot_count; k++)
		fds[1 + k] = fcntl(jail.slot[k].memfd, F_DUPFD, first);
	for (int fd = 0; fd < JAIL_CONTROL_FD; fd++)
		if (dup2(null, fd) < 0)
			_exit(EXIT_FAILURE);
	for (unsigned k = 0; k <= jail.slot_count; k++)
		if (dup2(fds[k], JAIL_CONTROL_FD + (int)k) < 0)
			_exit(EXIT_FAILURE);
	closefrom(JAIL_CONTROL_FD + 1 + (int)jail.slot_count);
	snprintf(slots, sizeof slots, "%u", jail.slot_count);
	execle(program, NAME, slots, (char *)NULL, environment);
	_exit(EXIT_FAILURE);
}

/* Waits until the program tells what it can decode. Returns 0 or -errno. */
static int wait_for_program(uint32_t wanted)
{
	struct pollfd p = { .fd = jail.control, .events = POLLIN };
	struct jail_notice notice;
	int fd, err = poll(&p, 1, START_MS) == 1
	                      ? fd_message_receive(jail.control, &notice, sizeof notice,
	                                           MSG_DONTWAIT, &fd)
	                      : -ETIMEDOUT;

	if (err)
		return err;
	for (unsigned f = FILE_PNG; f < FILE_FORMATS; f++)
		if (wanted >> f & ~notice.formats >> f & 1)
			log_warning("input.formats: " NAME " cannot load the library of %s, which "
			            "is refused with 415",
			            file_format_name(f));
	atomic_store_explicit(&jail.formats, wanted & notice.formats, memory_order_relaxed);
	return 0;
}

/* Forks and executes it. Returns 0 or -errno. */
static int start_program(const char *program)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid_t pid = fork();

	if (pid == 0)
		execute(program, pair[1]);
	if (pid < 0)
		err = -errno;
	close(pair[1]);
	jail.control = pair[0];
	return err;
}

int jail_start(const char *program, uint32_t formats, unsigned slots)
{
	int err = 0;

	assert(jail.control < 0 && slots <= JAIL_SLOTS_MAX);
	if (!formats)
		return 0;
	for (jail.slot_count = 0; jail.slot_count < slots && !err;) {
		err = make_slot(&jail.slot[jail.slot_count]);
		jail.slot_count += !err;
	}
	if (!err)
		err = access(program, X_OK) ? -errno : start_program(program);
	if (!err)
		err = wait_for_program(formats);
	if (!err)
		return 0;
	log_error("%s: cannot start it: %s; only JPEGs are accepted", program, strerror(-err));
	jail_stop();
	return err;
}

void jail_stop(void)
{
	if (jail.control >= 0)
		close(jail.control);
	for (unsigned k = 0; k < jail.slot_count; k++) {
		if (jail.slot[k].ready >= 0)
			close(jail.slot[k].ready);
		close(jail.slot[k].memfd);
	}
	jail.control = -1;
	jail.slot_count = 0;
	atomic_store_explicit(&jail.formats, 0, memory_order_relaxed);
}

bool jail_can_decode(enum file_format format)
{
	return atomic_load_explicit(&jail.formats, memory_order_relaxed) >> format & 1;
}

/* ---- slots; the caller holds the lock ---- */

static void wipe(struct jail_slot *s)
{
	s->is_dirty = fallocate(s->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
	                        (off_t)JAIL_SLOT_BYTES) != 0;
}

/* Takes the news of the zygote: a child is ready, and the former one of its slot has ended. */
static void take_notices(void)
{
	struct jail_notice notice;
	int fd;

	while (fd_message_receive(jail.control, &notice, sizeof notice, MSG_DONTWAIT, &fd) == 0) {
		struct jail_slot *s = notice.slot >= 0 && (unsigned)notice.slot < jail.slot_count
		                              ? &jail.slot[notice.slot]
		                              : NULL;

		if (!s || fd < 0) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		if (s->ready >= 0)
			close(s->ready); /* of a zygote that has ended */
		s->ready = fd;
		s->pid = notice.pid;
		if (!s->is_taken && s->is_dirty) /* is_dirty is the taker's */
			wipe(s);
	}
}

/* A child that waits has nothing to say: what can be read is its end. */
static bool is_alive(struct jail_slot *s)
{
	char byte;

	if (recv(s->ready, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return true;
	close(s->ready);
	s->ready = -1;
	return false;
}

static struct jail_slot *find_slot(void)
{
	for (unsigned k = 0; k < jail.slot_count; k++) {
		struct jail_slot *s = &jail.slot[k];

		if (!s->is_taken && !s->is_dirty && s->ready >= 0 && is_alive(s))
			return s;
	}
	return NULL;
}

/* ---- crashes ---- */

static void count_crash(enum file_format format)
{
	uint64_t now = clock_ns();
	bool is_off = false;

	pthread_mutex_lock(&jail.lock);
	if (now - jail.crashes[format].begin_ns > CRASHES_NS) {
		jail.crashes[format].begin_ns = now;
		jail.crashes[format].count = 0;
	}
	if (++jail.crashes[format].count == CRASHES_MAX) {
		jail.crashes[format].off_until_ns = now + CRASHES_NS;
		is_off = true;
	}
	pthread_mutex_unlock(&jail.lock);
	if (is_off)
		log_error("%s: %d processes that decode it have crashed within a minute; it is "
		          "refused with 503 for a minute",
		          file_format_name(format), CRASHES_MAX);
}

/* The caller holds the lock. */
static bool is_switched_off(enum file_format format)
{
	return clock_ns() < jail.crashes[format].off_until_ns;
}

/* ---- a job ---- */

static enum jail_result fail_job(struct jail_job *job, enum jail_fault fault)
{
	job->fault = fault;
	return JAIL_JOB_FAILED;
}

static enum jail_result fail_process(struct jail_job *job, const char *what)
{
	enum file_format format = job->request.format;

	log_warning(NAME ": a process that decodes a %s %s; the picture is refused with 422",
	            file_format_name(format), what);
	count_crash(format);
	return fail_job(job, JAIL_FAULT_PROCESS);
}

/* Waits for a socket. Returns 1 when it can be read, 0 to wait again, or -1 after too long, or when
 * the program has ended. */
static int wait_for(struct jail_job *job, int fd, unsigned max_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) > 0) {
		job->waited_ms = 0;
		return fd == jail.control && p.revents & POLLHUP ? -1 : 1;
	}
	job->waited_ms += WAIT_MS;
	return job->waited_ms > max_ms ? -1 : 0;
}

/* Adds the CPU time of the process since the last call. */
static void charge(struct jail_job *job)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(job->pid, &clock) || clock_gettime(clock, &t))
		return;
	uint64_t ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;

	if (ns <= job->charged_ns)
		return;
	job->cpu_ns += ns - job->charged_ns;
	job->charged_ns = ns;
	job->waited_ms = 0;
}

/* Gives the file to a process. Returns whether it is there. */
static bool send_request(struct jail_job *job)
{
	size_t done = 0;

	while (done < job->request.source_bytes) {
		ssize_t n = pwrite(job->slot->memfd, job->source + done,
		                   job->request.source_bytes - done, (off_t)done);

		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return send(job->socket, &job->request, sizeof job->request, MSG_NOSIGNAL) ==
	       sizeof job->request;
}

/* Takes a slot with a process, or waits for one. */
static enum jail_result begin(struct jail_job *job)
{
	pthread_mutex_lock(&jail.lock);
	take_notices();
	bool is_off = is_switched_off(job->request.format);
	struct jail_slot *s = is_off ? NULL : find_slot();

	if (s) {
		s->is_taken = s->is_dirty = true;
		job->slot = s;
		job->socket = s->ready;
		job->pid = s->pid;
		s->ready = -1;
	}
	pthread_mutex_unlock(&jail.lock);
	if (s)
		return send_request(job) ? JAIL_JOB_MORE : fail_process(job, "is gone");
	if (!is_off && wait_for(job, jail.control, READY_MAX_MS) >= 0)
		return JAIL_JOB_MORE;
	if (!is_off)
		log_warning(NAME ": no process is ready to decode a %s; the picture is refused "
		                 "with 503",
		            file_format_name(job->request.format));
	return fail_job(job, JAIL_FAULT_BUSY);
}

/* The process has ended: nothing changes the planes any more. */
static enum jail_result finish(struct jail_job *job)
{
	const struct jail_request *q = &job->request;
	const struct jail_reply *r = &job->reply;

	job->has_ended = true;
	if (!job->has_reply)
		return fail_process(job, "has ended without an answer");
	if (r->status == JAIL_DAMAGED || r->status == JAIL_NO_MEMORY)
		return fail_job(job,
		                r->status == JAIL_DAMAGED ? JAIL_FAULT_FILE : JAIL_FAULT_MEMORY);
	if (r->status != JAIL_DECODED || r->width != q->width || r->height != q->height ||
	    r->plane_count != q->plane_count || r->icc_bytes > q->icc_max)
		return fail_process(job, "has not decoded what the header says");
	job->icc_bytes = r->icc_bytes;
	return JAIL_JOB_DONE;
}

static enum jail_result take_reply(struct jail_job *job, const struct jail_reply *r)
{
	charge(job);
	if (job->has_reply)
		return fail_process(job, "has answered twice");
	if (r->status == JAIL_MORE) {
		job->is_paused = true;
		job->turns++;
		return JAIL_JOB_MORE;
	}
	job->reply = *r;
	job->has_reply = true;
	shutdown(job->socket, SHUT_WR); /* it may end */
	return JAIL_JOB_MORE;
}

void jail_job_begin(struct jail_job *job)
{
	*job = (struct jail_job){ .request = job->request, .source = job->source };
}

enum jail_result jail_job_advance(struct jail_job *job)
{
	struct jail_reply r;

	if (!job->slot)
		return begin(job);
	if (job->is_paused) {
		job->is_paused = false;
		/* One that asks for turns and takes none must not stop the worker. */
		if (send(job->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			return errno == EAGAIN ? fail_process(job, "takes none of its turns")
			                       : finish(job);
	}
	int ready = wait_for(job, job->socket, SILENCE_MAX_MS);

	if (ready <= 0) {
		charge(job);
		/* What was seen at work has another while. */
		return ready < 0 && job->waited_ms ? fail_process(job, "does not answer")
		                                   : JAIL_JOB_MORE;
	}
	ssize_t n = recv(job->socket, &r, sizeof r, MSG_TRUNC | MSG_DONTWAIT);

	if (n == sizeof r)
		return take_reply(job, &r);
	charge(job);
	return n <= 0 ? finish(job) : fail_process(job, "has sent something else than an answer");
}

/* ---- results ---- */

static bool read_all(const struct jail_job *job, struct iovec *iov, int count, uint64_t at,
                     size_t bytes)
{
	return preadv2(job->slot->memfd, iov, count, (off_t)at, 0) == (ssize_t)bytes;
}

bool jail_job_read_plane(const struct jail_job *job, unsigned plane, uint8_t *to, ptrdiff_t stride)
{
	const struct jail_request *q = &job->request;
	size_t width = jail_plane_side(q->width, q->reduce),
	       height = jail_plane_side(q->height, q->reduce);
	uint64_t at = jail_planes_at(q) + (uint64_t)plane * width * height;
	struct iovec iov[ROWS_MAX];

	assert(job->has_ended && job->slot && plane < q->plane_count);
	for (size_t y = 0; y < height;) {
		int n = 0;

		for (; n < ROWS_MAX && y < height; n++, y++, to += stride)
			iov[n] = (struct iovec){ to, width };
		if (!read_all(job, iov, n, at, (size_t)n * width))
			return false;
		at += (uint64_t)n * width;
	}
	return true;
}

bool jail_job_read_icc(const struct jail_job *job, void *to)
{
	const struct jail_request *q = &job->request;
	struct iovec iov = { to, job->icc_bytes };

	assert(job->has_ended && job->slot);
	return read_all(job, &iov, 1, jail_planes_at(q) + jail_plane_bytes(q), job->icc_bytes);
}

/* A process that still computes ends at its next turn, or by its limit of CPU time. The slot waits
 * for that. */
void jail_job_end(struct jail_job *job)
{
	struct jail_slot *s = job->slot;

	job->slot = NULL;
	if (!s)
		return;
	close(job->socket);
	if (job->has_ended)
		wipe(s);
	pthread_mutex_lock(&jail.lock);
	take_notices();
	s->is_taken = false;
	if (s->is_dirty && s->ready >= 0) /* the process has ended meanwhile */
		wipe(s);
	pthread_mutex_unlock(&jail.lock);
}

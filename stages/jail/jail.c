/*
 * jail.c - slots, the processes that decode into them, and what is believed of them: nothing.
 *
 * When a job has ended, the zygote is told to end its child, to wipe the slot and to start the next
 * child. A slot whose child has ended by itself is wiped here: there may be no zygote. The slot is
 * used again when the socket of the former child has ended, so that no two processes ever write it,
 * and when it is empty.
 */
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd_message.h"
#include "log/log.h"
#include "telemetry/counter.h"

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
#define CRASHES_NS (JAIL_OFF_S * NS_PER_S)

struct jail_slot {
	int memfd;
	int ready;                 /* socket of the next child; -1: none */
	int former;                /* socket of the last one, which may not have ended; -1: none */
	bool is_taken;             /* by a job */
	struct jail_notice notice; /* the last one */
};

static struct {
	int control; /* -1: not started */
	_Atomic uint32_t formats;
	unsigned slot_count;
	unsigned decode_slots; /* the first ones; the others are of encodes */
	struct jail_counters counters[FILE_FORMATS];
	pthread_mutex_t lock; /* of what follows */
	struct jail_slot slot[JAIL_SLOTS_MAX];
	struct jail_crashes {
		unsigned count;
		uint64_t begin_ns, off_until_ns;
	} crashes[2 * FILE_FORMATS]; /* of decodes, then of encodes */
} jail = { .control = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- the program ---- */

/* Makes a slot's memory. Its size is fixed, so that no process can cut it off under another. */
static int make_slot(struct jail_slot *s)
{
	*s = (struct jail_slot){ .ready = -1, .former = -1 };
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
_Noreturn static void execute(const char *program, uint32_t formats, int control)
{
	const int first = JAIL_CONTROL_FD + 1 + JAIL_SLOTS_MAX; /* beyond all that are set below */
	char slots[16], wanted[16], *environment[] = { NULL };
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
	snprintf(wanted, sizeof wanted, "%" PRIu32, formats);
	execle(program, NAME, slots, wanted, (char *)NULL, environment);
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
	for (unsigned f = FILE_PNG; f < FILE_FORMATS; f++) {
		uint32_t lacks = wanted & ~notice.formats;

		if (lacks >> f & 1)
			log_warning("input.formats: " NAME " cannot load the library of %s, which "
			            "is refused with 415",
			            file_format_name(f));
		if (lacks & JAIL_ENCODES(f))
			log_warning("variant.NAME.formats: " NAME
			            " cannot load the library that makes %s %s; images do without",
			            file_format_article(f), file_format_name(f));
	}
	atomic_store_explicit(&jail.formats, wanted & notice.formats, memory_order_relaxed);
	return 0;
}

/* Forks and executes it. Returns 0 or -errno. */
static int start_program(const char *program, uint32_t formats)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid_t pid = fork();

	if (pid == 0)
		execute(program, formats, pair[1]);
	if (pid < 0)
		err = -errno;
	close(pair[1]);
	jail.control = pair[0];
	return err;
}

int jail_start(const char *program, uint32_t formats, unsigned slots)
{
	int err = 0;

	assert(jail.control < 0 && 2 * slots <= JAIL_SLOTS_MAX);
	if (!formats)
		return 0;
	jail.decode_slots = slots;
	if (formats >= JAIL_ENCODES(0))
		slots *= 2;
	for (jail.slot_count = 0; jail.slot_count < slots && !err;) {
		err = make_slot(&jail.slot[jail.slot_count]);
		jail.slot_count += !err;
	}
	if (!err)
		err = access(program, X_OK) ? -errno : start_program(program, formats);
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
		close_if_open(&jail.slot[k].ready);
		close_if_open(&jail.slot[k].former);
		close(jail.slot[k].memfd);
	}
	jail.control = -1;
	jail.slot_count = 0;
	atomic_store_explicit(&jail.formats, 0, memory_order_relaxed);
}

bool jail_can_encode(enum file_format format)
{
	return atomic_load_explicit(&jail.formats, memory_order_relaxed) & JAIL_ENCODES(format);
}

bool jail_can_decode(enum file_format format)
{
	return atomic_load_explicit(&jail.formats, memory_order_relaxed) >> format & 1;
}

/* ---- slots; the caller holds the lock ---- */

/* The zygote ignores the order if it has ended meanwhile: another one sends notices of all slots.
 */
static void send_order(const struct jail_slot *s, int32_t pid)
{
	const struct jail_order order = { (int32_t)(s - jail.slot), pid };

	(void)!send(jail.control, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Takes the news of the zygote: a child is ready, and the former one of its slot has ended. */
static void take_notices(void)
{
	struct jail_notice notice;
	int fd;

	while (fd_message_receive(jail.control, &notice, sizeof notice, MSG_DONTWAIT, &fd) == 0) {
		if (notice.slot < 0 && notice.formats)
			log_warning(
				NAME
				": the process that starts children has ended; it was started again");
		if (notice.slot < 0 || (unsigned)notice.slot >= jail.slot_count) {
			close_if_open(&fd);
			continue;
		}
		struct jail_slot *s = &jail.slot[notice.slot];

		close_if_open(&s->ready); /* of a zygote that has ended */
		s->ready = fd;
		s->notice = notice;
		if (fd < 0) /* there are too many descriptors */
			send_order(s, notice.pid);
	}
}

/* Returns whether the process at the other end of a socket has ended. Its memory is gone before its
 * descriptors are. */
static bool has_ended(int socket)
{
	struct pollfd p = { .fd = socket };

	return poll(&p, 1, 0) == 1;
}

/* Returns whether the slot has a process, and nothing of another picture. */
static bool is_fit(struct jail_slot *s)
{
	if (s->is_taken || s->ready < 0 || (s->former >= 0 && !has_ended(s->former)))
		return false;
	close_if_open(&s->former);
	if (!has_ended(s->ready) && lseek(s->memfd, 0, SEEK_DATA) < 0)
		return true;
	close_if_open(&s->ready);
	send_order(s, s->notice.pid);
	return false;
}

/* An encode waits for no decode: large pictures of other clients have their slots for long. Sets
 * whether jobs of the same kind are at work. */
static struct jail_slot *find_slot(const struct jail_request *q, bool *is_busy)
{
	unsigned k = q->effort ? jail.decode_slots : 0,
		 end = q->effort ? jail.slot_count : jail.decode_slots;

	for (; k < end && !is_fit(&jail.slot[k]); k++)
		*is_busy |= jail.slot[k].is_taken;
	return k < end ? &jail.slot[k] : NULL;
}

/* ---- crashes ---- */

static const char *verb(const struct jail_request *q)
{
	return q->effort ? "encode" : "decode";
}

static struct jail_crashes *crashes_of(const struct jail_request *q)
{
	return &jail.crashes[q->format + (q->effort ? FILE_FORMATS : 0)];
}

static void count_crash(const struct jail_request *q)
{
	struct jail_crashes *c = crashes_of(q);
	uint64_t now = clock_ns();
	bool is_off = false;

	pthread_mutex_lock(&jail.lock);
	if (now - c->begin_ns > CRASHES_NS) {
		c->begin_ns = now;
		c->count = 0;
	}
	if (++c->count == CRASHES_MAX) {
		c->off_until_ns = now + CRASHES_NS;
		is_off = true;
	}
	pthread_mutex_unlock(&jail.lock);
	if (is_off)
		log_error("%s: %d processes that %s it have crashed within a minute; it is %s for "
		          "a minute",
		          file_format_name(q->format), CRASHES_MAX, verb(q),
		          q->effort ? "left out" : "refused with 503");
}

/* The caller holds the lock. */
static bool is_switched_off(const struct jail_request *q)
{
	return clock_ns() < crashes_of(q)->off_until_ns;
}

/* ---- a job ---- */

static enum jail_result fail_job(struct jail_job *job, enum jail_status fault)
{
	job->fault = fault;
	counter_add_shared(&jail.counters[job->request.format].faults[fault]);
	return JAIL_JOB_FAILED;
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

/* Adds the CPU time of the process since the last call. The zygote does not wait for a process that
 * has ended before it is ordered to, so its clock can still be read. */
static void charge(struct jail_job *job)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(job->pid, &clock) || clock_gettime(clock, &t))
		return;
	uint64_t ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;

	if (ns <= job->charged_ns)
		return;
	atomic_fetch_add_explicit(&jail.counters[job->request.format].cpu_ns, ns - job->charged_ns,
	                          memory_order_relaxed);
	job->cpu_ns += ns - job->charged_ns;
	job->charged_ns = ns;
	job->waited_ms = 0;
}

/* ---- its failure ---- */

static const char ended[] = "has ended";

/* Why the process has ended is known when the zygote has waited for it. Then settle() fails the
 * job.
 */
static enum jail_result condemn(struct jail_job *job, const char *failure)
{
	charge(job);
	job->failure = failure;
	job->waited_ms = 0;
	pthread_mutex_lock(&jail.lock);
	if (job->slot->ready < 0)
		send_order(job->slot, job->pid);
	pthread_mutex_unlock(&jail.lock);
	return JAIL_JOB_MORE;
}

/* Fails the job. signal: that has ended the process; 0: none; -1: not known. */
static enum jail_result fail_process(struct jail_job *job, int signal)
{
	const struct jail_request *q = &job->request;
	bool has_only_ended = job->failure == ended,
	     is_ours = !has_only_ended || (signal >= 0 && signal != SIGKILL);
	const char *how = !has_only_ended ? ""
	                  : !is_ours      ? ", killed by somebody else"
	                  : signal        ? " by SIG"
	                                  : " without an answer";

	log_warning(NAME ": a process that %ss %s %s %s%s%s; %s", verb(q),
	            file_format_article(q->format), file_format_name(q->format), job->failure, how,
	            has_only_ended && is_ours && signal ? sigabbrev_np(signal) : "",
	            q->effort ? "the file is left out"
	            : is_ours ? "the picture is refused with 422"
	                      : "the picture is refused with 503");
	if (is_ours)
		count_crash(q);
	return fail_job(job, is_ours ? JAIL_CRASHED : JAIL_BUSY);
}

/* Waits for the end of a process that is condemned. Without a zygote nothing is known of it. */
static enum jail_result settle(struct jail_job *job)
{
	pthread_mutex_lock(&jail.lock);
	take_notices();
	bool is_over = job->slot->ready >= 0;
	struct jail_notice last = job->slot->notice;

	pthread_mutex_unlock(&jail.lock);
	if (!is_over && wait_for(job, jail.control, READY_MAX_MS) >= 0)
		return JAIL_JOB_MORE;
	if (!is_over || last.ended_pid != job->pid)
		return fail_process(job, -1);
	return fail_process(job, WIFSIGNALED(last.status) ? WTERMSIG(last.status) : 0);
}

/* ---- its steps ---- */

/* Gives the file to a process. Returns whether there was memory for it. */
static bool write_source(struct jail_job *job)
{
	size_t done = 0;

	while (done < job->request.source_bytes) {
		ssize_t n = pwrite(job->slot->memfd, job->source + done,
		                   job->request.source_bytes - done, (off_t)done);

		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Takes a slot with a process, or waits for one. */
static enum jail_result begin(struct jail_job *job)
{
	const struct jail_request *q = &job->request;

	pthread_mutex_lock(&jail.lock);
	take_notices();
	bool is_off = is_switched_off(q), is_busy = false;
	struct jail_slot *s = is_off ? NULL : find_slot(q, &is_busy);

	if (s) {
		s->is_taken = true;
		job->slot = s;
		job->socket = s->ready;
		job->pid = s->notice.pid;
		s->ready = -1;
	}
	pthread_mutex_unlock(&jail.lock);
	if (is_off)
		return fail_job(job, JAIL_OFF);
	if (s && !write_source(job))
		return fail_job(job, JAIL_BUSY);
	if (s)
		return send(job->socket, q, sizeof *q, MSG_NOSIGNAL) == sizeof *q
		               ? JAIL_JOB_MORE
		               : condemn(job, ended);
	if (is_busy) /* each of them ends */
		job->waited_ms = 0;
	if (wait_for(job, jail.control, READY_MAX_MS) >= 0)
		return JAIL_JOB_MORE;
	log_warning(NAME ": no process is ready to %s %s %s; %s", verb(q),
	            file_format_article(q->format), file_format_name(q->format),
	            q->effort ? "the file is left out" : "the picture is refused with 503");
	return fail_job(job, JAIL_BUSY);
}

/* The process has ended: nothing changes the planes any more. */
static enum jail_result finish(struct jail_job *job)
{
	const struct jail_request *q = &job->request;
	const struct jail_reply *r = &job->reply;

	job->has_ended = true;
	charge(job);
	if (!job->has_reply)
		return condemn(job, ended);
	if (r->status >= JAIL_DAMAGED && r->status <= JAIL_BUSY)
		return fail_job(job, r->status);
	if (r->status != JAIL_DECODED || r->width != q->width || r->height != q->height ||
	    r->plane_count != q->plane_count || r->extra_bytes > q->extra_max)
		return condemn(job, "has not done what it was asked for");
	job->extra_bytes = r->extra_bytes;
	return JAIL_JOB_DONE;
}

static enum jail_result take_reply(struct jail_job *job, const struct jail_reply *r)
{
	charge(job);
	if (job->has_reply)
		return condemn(job, "has answered twice");
	if (r->status == JAIL_MORE) {
		job->is_paused = true;
		job->turns++;
		return JAIL_JOB_MORE;
	}
	job->reply = *r;
	job->has_reply = true;
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
	if (job->failure)
		return settle(job);
	if (job->is_paused) {
		job->is_paused = false;
		/* One that asks for turns and takes none must not stop the worker. */
		if (send(job->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			return errno == EAGAIN ? condemn(job, "takes none of its turns")
			                       : finish(job);
	}
	int ready = wait_for(job, job->socket, SILENCE_MAX_MS);

	if (ready <= 0) {
		charge(job);
		/* What was seen at work has another while. */
		return ready < 0 && job->waited_ms ? condemn(job, "does not answer")
		                                   : JAIL_JOB_MORE;
	}
	ssize_t n = recv(job->socket, &r, sizeof r, MSG_TRUNC | MSG_DONTWAIT);

	if (n == sizeof r)
		return take_reply(job, &r);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return JAIL_JOB_MORE;
	return n <= 0 ? finish(job) : condemn(job, "has sent something else than an answer");
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

bool jail_job_read_extra(const struct jail_job *job, void *to)
{
	const struct jail_request *q = &job->request;
	struct iovec iov = { to, job->extra_bytes };

	assert(job->has_ended && job->slot);
	return read_all(job, &iov, 1, jail_planes_at(q) + jail_plane_bytes(q), job->extra_bytes);
}

void jail_job_end(struct jail_job *job)
{
	struct jail_slot *s = job->slot;

	job->slot = NULL;
	if (!s)
		return;
	if (job->has_ended) /* if it fails, is_fit() orders it again */
		(void)jail_wipe(s->memfd);
	pthread_mutex_lock(&jail.lock);
	s->former = job->socket;
	s->is_taken = false;
	if (!job->failure) /* else that has sent it */
		send_order(s, job->pid);
	pthread_mutex_unlock(&jail.lock);
}

const struct jail_counters *jail_counters(enum file_format format)
{
	return &jail.counters[format];
}

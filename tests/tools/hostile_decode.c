/*
 * hostile_decode.c - darkroom-decode after somebody has taken over a decoder with a picture.
 *
 * A file that ends with "ACT" and two digits does one thing that such a picture would try; other
 * files are decoded honestly. What is reached after an act is reported as a decoded picture.
 */
#define codec_run honest_run
#include "jail/decode/codec.c" /* NOLINT(bugprone-suspicious-include): to take its place */
#undef codec_run
enum jail_status codec_run(struct codec_job *job);

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static int deep(volatile char *p)
{
	volatile char room[4096];

	room[0] = p ? *p : 1;
	return room[0] ? deep(room) + room[0] : 0; /* for ever */
}

static void *nothing(void *p)
{
	return p;
}

static void send_reply(struct jail_reply r)
{
	if (write(0, &r, sizeof r) < 0)
		_exit(1);
}

static void answer(const struct codec_job *job, uint32_t width, uint64_t icc)
{
	const struct jail_request *q = job->request;

	send_reply((struct jail_reply){ JAIL_DECODED, width, q->height, q->plane_count, icc });
}

/* System calls that a decoder does not need: about files, sockets and processes. */
static void call(int act, const struct codec_job *job)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = 0x5000 };
	struct iovec here = { &to, sizeof to }, there = { (void *)(uintptr_t)job->source, 64 };
	pthread_t thread;
	char *const words[] = { NULL };

	if (act == 1)
		(void)!open("/etc/passwd", O_RDONLY);
	if (act == 2)
		(void)!connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
	if (act == 3)
		kill(1, SIGKILL);
	if (act == 4)
		ptrace(PTRACE_ATTACH, 1, 0, 0);
	if (act == 5)
		(void)!process_vm_readv(1, &here, 1, &there, 1, 0);
	if (act == 6)
		(void)!fork();
	if (act == 7)
		pthread_create(&thread, NULL, nothing, NULL);
	if (act == 8)
		execve("/bin/true", words, words);
	if (act == 9)
		syscall(SYS_io_uring_setup, 8, &to);
	if (act == 10)
		syscall(SYS_sendmsg, 0, &to, 0);
	if (act == 11)
		syscall(SYS_unlinkat, AT_FDCWD, "x", 0);
}

/* The same: about memory and signals, by other ways into the kernel, and the clock. */
static void call_more(int act, const struct codec_job *job)
{
	struct itimerval never = { 0 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	if (act == 12 &&
	    mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(1);
	if (act == 13)
		mprotect(job->sum, 4096, PROT_READ | PROT_EXEC);
	if (act == 14)
		sigaction(SIGPROF, &ignore, NULL);
	if (act == 15)
		setitimer(ITIMER_PROF, &never, NULL);
#if defined __x86_64__
	if (act == 16)
		syscall(0x40000000 | SYS_getpid); /* of x32 */
	if (act == 17)
		__asm__ volatile("int $0x80" : : "a"(20) : "memory"); /* of 32 bits */
	if (act == 18)
		__asm__ volatile("rdtsc" : : : "eax", "edx");
#else
	if (act >= 16 && act <= 18)
		_exit(1);
#endif
}

/* Memory that is not its own, and memory that is no code. */
static void touch(int act, struct codec_job *job)
{
	uint64_t used = jail_used_bytes(job->request) - jail_planes_at(job->request);

	if (act == 19)
		memset(job->planes, 1, used + (2U << 20)); /* beyond the planes */
	if (act == 20)
		memset((void *)(uintptr_t)job->source, 1, 1); /* the file */
	if (act == 21)
		memset(job->sum, 1, (size_t)1 << 30); /* more memory than reserved */
	if (act == 22)
		deep(NULL);
	if (act == 23) {
		void (*code)(void);
		void *data = job->sum;

		memcpy(&code, &data, sizeof code);
		code();
	}
}

/* Answers that are no answers, or late. */
static void lie(int act, const struct codec_job *job)
{
	uint32_t width = job->request->width, height = job->request->height,
		 planes = job->request->plane_count;

	if (act == 26)
		_exit(0);
	if (act == 27 && write(0, "x", 1))
		_exit(0);
	if (act == 28)
		for (;;)
			answer(job, width, 0);
	if (act == 29)
		answer(job, 1U << 31, 0);
	if (act == 30)
		answer(job, width, UINT64_MAX);
	if (act == 35)
		send_reply((struct jail_reply){ JAIL_DECODED, width, 1U << 31, planes, 0 });
	if (act == 36)
		send_reply((struct jail_reply){ JAIL_DECODED, width, height, 200, 0 });
	if (act == 29 || act == 30 || act == 35 || act == 36)
		_exit(0);
	for (int fd = 1; act == 31 && fd < 70; fd++)
		if (write(fd, "x", 1) > 0)
			answer(job, width, 0); /* a descriptor beside the socket */
	if (act == 31)
		_exit(0);
}

/* Time, and the pixels of others. */
static void linger(int act, const struct codec_job *job)
{
	uint64_t used = jail_used_bytes(job->request) - jail_planes_at(job->request);
	char byte;

	if (act == 24)
		for (volatile int i = 0;;)
			i = i + 1;
	if (act == 25 && read(0, &byte, 1)) /* nothing comes */
		_exit(0);
	for (uint64_t i = 0; act == 32 && i < used; i++)
		if (job->planes[i]) { /* of the picture before */
			answer(job, job->request->width, 0);
			break;
		}
	if (act == 32)
		_exit(0);
	const struct jail_reply more = { .status = JAIL_MORE };

	while (act == 34 && write(0, &more, sizeof more) > 0) /* and reads no turn */
		;
	if (act != 33)
		return;
	answer(job, job->request->width, 0);
	for (uint64_t i = 0;; i++) /* the pixels change after the answer, until the time is over */
		job->planes[i % used] = (uint8_t)i;
}

/* Files that are none, or not of the picture: acts of an encoder. */
static void forge(int act, struct codec_job *job)
{
	uint64_t room = job->request->extra_max;

	if (act < 37 || !job->request->effort)
		return;
	if (act == 37) /* as large as may be */
		answer(job, job->request->width, room);
	if (act == 38)
		answer(job, job->request->width, room + 1);
	if (act <= 38)
		_exit(0);
	honest_run(job);
	if (act == 39)
		__builtin_trap();
	if (act == 40)
		job->planes[0] ^= 1;
	if (act == 41)
		job->planes[4] ^= 0x10; /* another width */
	if (act == 42)
		job->planes[job->extra_bytes / 2] ^= 0x55;
	if (act >= 40)
		answer(job, job->request->width, job->extra_bytes);
	_exit(0);
}

enum jail_status codec_run(struct codec_job *job)
{
	const uint8_t *end = job->source + job->request->source_bytes;
	int act = memcmp(end - 5, "ACT", 3) == 0 ? (end[-2] - '0') * 10 + end[-1] - '0' : 0;

	if (!act)
		return honest_run(job);
	job->size_read[0] = job->request->width;
	job->size_read[1] = job->request->height;
	job->plane_count = job->request->plane_count;
	job->sum = malloc(8192);
	call(act, job);
	call_more(act, job);
	touch(act, job);
	lie(act, job);
	linger(act, job);
	forge(act, job);
	return JAIL_DECODED;
}

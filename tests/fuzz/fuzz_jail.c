/*
 * fuzz_jail.c - a decoder that lies: the input is its request's picture, its planes and its
 * answers.
 *
 * Whatever it says, a job ends, no memory beyond the picture is read, and its slot is wiped.
 */
#include "jail/jail.c" /* NOLINT(bugprone-suspicious-include): its slots are static */
#include "target.h"

const unsigned target_mutants = 300;

#define ANSWERS_MAX 64              /* of a child, which then ends */
#define TURNS_MAX (ANSWERS_MAX + 8) /* of a job, which waits no longer than its answers come */

static unsigned long jobs, decoded, replies;

void target_report(void)
{
	printf("jobs: %lu, of these decoded %lu; replies: %lu\n", jobs, decoded, replies);
}

struct input {
	struct jail_request request;
	uint32_t pieces; /* two bits for each message: how it is sent */
};

/* Makes a request that a header could ask for. */
static void make_sound(struct jail_request *q)
{
	q->format = FILE_PNG + q->format % (FILE_FORMATS - FILE_PNG);
	q->width = q->width % 100 + 1;
	q->height = q->height % 100 + 1;
	q->reduce = q->reduce % 64 + 1;
	q->plane_count = q->plane_count % 2 ? 1 : 3;
	q->extra_max = q->extra_max % 5000;
	q->source_bytes = q->source_bytes % 64 + 1;
}

static void reply(int child, const void *data, size_t size)
{
	replies += send(child, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Answers as the input says, one message for each turn, and ends with it. */
static void answer(int child, const struct input *in, const uint8_t *data, size_t size,
                   unsigned turn, bool *has_ended)
{
	struct jail_reply r = { .width = in->request.width,
		                .height = in->request.height,
		                .plane_count = in->request.plane_count };
	size_t at = turn * sizeof r, left = at < size ? size - at : 0;

	if (*has_ended)
		return;
	switch (in->pieces >> (2 * turn % 32) & 3) {
	case 0: /* anything */
		if (left > 0)
			reply(child, data + at, left < sizeof r ? left : sizeof r);
		break;
	case 1: /* another turn, or the truth but for the status and the profile */
	case 2:
		r.status = left > 0 ? data[at] % (JAIL_STATUSES + 1) : JAIL_DECODED;
		r.extra_bytes = left > 4 ? data[at + 4] * 50U : 0;
		reply(child, &r, sizeof r);
		break;
	default: /* it crashes */
		left = 0;
		break;
	}
	*has_ended = left <= sizeof r || turn + 1 == ANSWERS_MAX;
	if (*has_ended)
		shutdown(child, SHUT_RDWR);
}

static void read_result(const struct jail_job *job)
{
	const struct jail_request *q = &job->request;
	size_t width = jail_plane_side(q->width, q->reduce),
	       height = jail_plane_side(q->height, q->reduce);
	uint8_t *plane = malloc(width * height), *icc = malloc(job->extra_bytes + 1);

	assert(plane && icc && job->extra_bytes <= q->extra_max);
	for (unsigned c = 0; c < q->plane_count; c++)
		assert(jail_job_read_plane(job, c, plane, (ptrdiff_t)width));
	assert(job->extra_bytes == 0 || jail_job_read_extra(job, icc));
	free(plane);
	free(icc);
}

static void run_job(const struct input *in, const uint8_t *data, size_t size, int child)
{
	uint8_t source[64] = { 1 };
	struct jail_job job = { .request = in->request, .source = source };
	enum jail_result result = JAIL_JOB_MORE;
	bool has_ended = false;

	jail_job_begin(&job);
	for (unsigned turn = 0; turn < TURNS_MAX && result == JAIL_JOB_MORE; turn++) {
		result = jail_job_advance(&job);
		if (turn == 0) /* planes: what it answers */
			assert(pwrite(job.slot->memfd, data, size,
			              (off_t)jail_planes_at(&job.request)) >= 0);
		if (result == JAIL_JOB_MORE)
			answer(child, in, data, size, turn, &has_ended);
	}
	assert(result != JAIL_JOB_MORE);
	jobs++;
	decoded += result == JAIL_JOB_DONE;
	if (result == JAIL_JOB_DONE)
		read_result(&job);
	assert(result != JAIL_JOB_FAILED || job.fault);
	jail_job_end(&job);
}

/* A slot whose child is this program, and a zygote that has ended. */
static void begin_child(int *pair, bool is_encode)
{
	struct jail_slot *s = &jail.slot[0];
	int control[2];

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control) == 0);
	int err = make_slot(s);

	assert(err == 0);
	s->ready = pair[0];
	s->notice.pid = getpid();
	close(control[1]);
	jail.control = control[0];
	jail.slot_count = 1;
	jail.decode_slots = !is_encode;
	memset(jail.crashes, 0, sizeof jail.crashes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2];
	struct input in;

	if (size < sizeof in)
		return 0;
	memcpy(&in, data, sizeof in);
	make_sound(&in.request);
	log_set_level(0);
	begin_child(pair, in.request.effort);
	run_job(&in, data + sizeof in, size - sizeof in, pair[1]);
	assert(!jail.slot[0].is_taken);
	assert(!is_fit(&jail.slot[0])); /* not before the zygote has wiped it */
	close(pair[1]);
	jail_stop();
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	struct {
		struct input in;
		struct jail_reply reply[4];
	} seed = { .in = { .request = { .format = 1,
		                        .width = 31,
		                        .height = 17,
		                        .plane_count = 1,
		                        .extra_max = 600,
		                        .source_bytes = 9 } } };

	for (unsigned pieces = 0; pieces < 4; pieces++) {
		/* The same for all messages; or an answer, and the end. */
		seed.in.pieces = pieces ? pieces * 0x55555555U : 1 | 3 << 2;
		for (unsigned i = 0; i < 4; i++)
			seed.reply[i] = (struct jail_reply){ .status = i % 3 + 1,
				                             .width = 32,
				                             .height = 18,
				                             .plane_count = 1,
				                             .extra_bytes = 130 * i };
		emit(&seed, sizeof seed);
	}
}

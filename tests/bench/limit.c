/*
 * limit.c - the cost of the daemon's image work without a daemon.
 *
 * It decodes, scales, blurs and encodes files from memory to memory with the code of the daemon.
 * The additional cost of the daemon is sockets, HTTP, scheduling and storage.
 *
 * usage: limit [--libjpeg] CONFIGURATION THREADS REPEAT PATH...
 *        limit --compare CONFIGURATION PATH...
 * Prints one JSON object about REPEAT passes, after a pass that is not measured. With --libjpeg
 * libjpeg decodes alone. With --compare each file is decoded with both decoders, at
 * the size that the configuration needs and at its own. It fails at the first different plane.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "conf/conf.h"
#include "load/corpus.h"
#include "pixel/decoder.h"
#include "pixel/encoder.h"
#include "pixel/metadata.h"
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "plan/geometry.h"
#include "plan/memory_need.h"
#include "plan/plan.h"
#include "stage_ids.h"
#include "support/one_call.h"
#include "support/picture_compare.h"

#define ROWS_AT_ONCE 1024

struct limit {
	struct plan plan;
	bool uses_libjpeg;
	bool is_full_size; /* pictures are decoded without a reduction */
	struct corpus files;
	uint64_t total; /* files to process, with repeats */
	_Atomic uint64_t next;
	_Atomic uint64_t bytes; /* of the variants */
	_Atomic uint64_t failed;
	_Atomic uint64_t own; /* files that the own decoder has decoded */
};

/* State of one thread. */
struct work {
	struct limit *limit;
	struct resampler resampler;
	struct metadata metadata;
	int width, height; /* of the current image, as displayed */
};

static struct picture *decode(struct work *w, const uint8_t *jpeg, size_t size)
{
	struct decoder *d = decoder_new();
	struct memory_need_step need;
	enum decoder_result result;
	struct picture *picture = NULL;

	if (!d)
		return NULL;
	if (decoder_open(d, jpeg, size) != DECODER_FAILED) {
		if (w->limit->uses_libjpeg)
			decoder_use_libjpeg(d);
		metadata_read(&w->metadata, jpeg, size);
		w->width = (int)d->in.image_width;
		w->height = (int)d->in.image_height;
		orient_size(w->metadata.orientation, &w->width, &w->height);
		memory_need_root(&w->limit->plan, w->width, w->height, w->metadata.orientation,
		                 &need);
		if (w->limit->is_full_size) {
			need.width = need.chroma_width = (int)d->in.image_width;
			need.height = need.chroma_height = (int)d->in.image_height;
		}
		decoder_choose(d, need.width, need.height, need.chroma_width, need.chroma_height);
		result = decoder_start(d, 1000, false);
		while (result != DECODER_FAILED &&
		       (result = decoder_advance(d, ROWS_AT_ONCE)) == DECODER_MORE)
			continue;
		if (result == DECODER_DONE)
			picture = decoder_take(d);
		if (d->has_entropy)
			atomic_fetch_add_explicit(&w->limit->own, 1, memory_order_relaxed);
	}
	decoder_free(d);
	return picture;
}

/* Encodes without an ICC profile, unlike the daemon. Returns whether it succeeded. */
static bool encode(struct work *w, const struct plan_step *step, const struct picture *picture)
{
	uint8_t *data;
	size_t size;

	if (encoder_encode(&step->encoding, picture, NULL, 0, &data, &size))
		return false;
	atomic_fetch_add_explicit(&w->limit->bytes, size, memory_order_relaxed);
	pool_put(data);
	return true;
}

static struct picture *make(struct work *w, unsigned index, struct picture *input)
{
	const struct operation_image image = { w->width, w->height, w->metadata.orientation, NULL };
	struct picture_job *job = operation_begin(&w->limit->plan, index, input, &image);

	return picture_job_finish(job, &w->resampler);
}

/* Runs all steps with this input, depth first. Returns whether they succeeded. */
static bool follow(struct work *w, int parent, struct picture *input)
{
	const struct plan *plan = &w->limit->plan;
	bool is_good = true;

	for (unsigned i = 0; i < plan->step_count && is_good; i++) {
		if (plan->step[i].parent != parent)
			continue;
		if (plan->step[i].op.class == &operation_encode) {
			is_good = encode(w, &plan->step[i], input);
			continue;
		}
		struct picture *picture = make(w, i, input);

		is_good = picture && follow(w, (int)i, picture);
		picture_unref(picture);
	}
	return is_good;
}

static void *work_run(void *arg)
{
	struct limit *limit = arg;
	struct work *w = calloc(1, sizeof *w);
	uint64_t i;

	if (!w) {
		atomic_fetch_add(&limit->failed, 1);
		return NULL;
	}
	w->limit = limit;
	resampler_init(&w->resampler);
	while ((i = atomic_fetch_add_explicit(&limit->next, 1, memory_order_relaxed)) <
	       limit->total) {
		const struct corpus_file *file =
			&limit->files.list[limit->files.order[i % limit->files.count]];
		const struct iovec *jpeg = &file->parts[1];
		struct picture *picture = decode(w, jpeg->iov_base, jpeg->iov_len);

		if (!picture || !follow(w, PLAN_ROOT, picture))
			atomic_fetch_add_explicit(&limit->failed, 1, memory_order_relaxed);
		picture_unref(picture);
	}
	free(w);
	decoder_thread_fini();
	pool_thread_fini();
	return NULL;
}

/* Processes every file `repeat` times on `threads` threads. Returns 0 or -errno. */
static int pass(struct limit *limit, unsigned threads, uint64_t repeat)
{
	pthread_t thread[CONF_THREADS_MAX];
	unsigned started = 0;
	int err = 0;

	limit->total = repeat * limit->files.count;
	atomic_store(&limit->next, 0);
	atomic_store(&limit->bytes, 0);
	while (started < threads && !err) {
		err = -pthread_create(&thread[started], NULL, work_run, limit);
		started += !err;
	}
	while (started > 0)
		pthread_join(thread[--started], NULL);
	return err;
}

static double cpu_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       1e-6 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static int measure(struct limit *limit, unsigned threads, uint64_t repeat)
{
	struct rusage before, after;
	int err = pass(limit, threads, 1);

	getrusage(RUSAGE_SELF, &before);
	uint64_t start_ns = clock_ns();

	if (!err)
		err = pass(limit, threads, repeat);
	double seconds = 1e-9 * (double)(clock_ns() - start_ns);

	getrusage(RUSAGE_SELF, &after);
	if (err || atomic_load(&limit->failed)) {
		fprintf(stderr, "limit: %s\n",
		        err ? strerror(-err) : "cannot decode or encode a file");
		return EXIT_FAILURE;
	}
	printf("{\"images\":%" PRIu64
	       ",\"seconds\":%.6f,\"cpu_s\":%.6f,\"page_faults\":%ld,\"context_switches\":%ld,"
	       "\"output_bytes\":%" PRIu64 ",\"threads\":%u}\n",
	       limit->total, seconds, cpu_s(&after) - cpu_s(&before),
	       after.ru_minflt - before.ru_minflt,
	       after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
	       atomic_load(&limit->bytes), threads);
	return EXIT_SUCCESS;
}

/* ---- the same planes ---- */

/* Decodes a file with both decoders. Returns whether the planes are the same. */
static bool compare_file(struct work *w, const struct corpus_file *file)
{
	const struct iovec *jpeg = &file->parts[1];
	struct picture *picture[2];

	for (int i = 0; i < 2; i++) {
		w->limit->uses_libjpeg = i;
		picture[i] = decode(w, jpeg->iov_base, jpeg->iov_len);
	}
	bool same = picture[0] && is_same_picture(picture[0], picture[1]);

	picture_unref(picture[0]);
	picture_unref(picture[1]);
	return same;
}

static int compare(struct limit *limit)
{
	struct work *w = calloc(1, sizeof *w);
	bool same = w != NULL;

	for (size_t i = 0; i < 2 * limit->files.count && same; i++) {
		const struct corpus_file *file = &limit->files.list[i / 2];

		w->limit = limit;
		limit->is_full_size = i % 2;
		same = compare_file(w, file);
		if (!same)
			fprintf(stderr, "limit: file %zu of %zu, %zu bytes: different planes\n",
			        i / 2 + 1, limit->files.count, file->parts[1].iov_len);
	}
	printf("{\"files\":%zu,\"pictures\":%zu,\"by_own_decoder\":%" PRIu64 ",\"same\":%s}\n",
	       limit->files.count, 2 * limit->files.count, atomic_load(&limit->own),
	       same ? "true" : "false");
	free(w);
	decoder_thread_fini();
	pool_thread_fini();
	return same ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns 0, or -errno after reporting the error. */
static int configure(struct plan *plan, const char *path)
{
	static struct conf conf;
	char data[4096], plan_error[CONF_TEXT_MAX * 2] = "";
	struct text errors;
	unsigned variant;

	text_init(&errors, data, sizeof data);
	int err = conf_load(&conf, NULL, path, NULL, 0, &errors);

	if (!err)
		err = plan_build(plan, &conf, 0, &variant, plan_error, sizeof plan_error);
	if (err)
		fprintf(stderr, "limit: %s%s\n", data, plan_error);
	return err;
}

int main(int argc, char **argv)
{
	static struct limit limit;
	bool compares = argc > 1 && strcmp(argv[1], "--compare") == 0;

	limit.uses_libjpeg = argc > 1 && strcmp(argv[1], "--libjpeg") == 0;
	if (compares || limit.uses_libjpeg) {
		argv++;
		argc--;
	}
	const struct corpus_conf request = { .path = "/", .authority = "localhost", .seed = 1 };
	int paths = compares ? 2 : 4;
	unsigned threads = !compares && argc > 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	uint64_t repeat = !compares && argc > 4 ? strtoull(argv[3], NULL, 10) : 1;
	int status = EXIT_FAILURE;

	if (argc <= paths || threads < 1 || threads > CONF_THREADS_MAX || repeat < 1) {
		fprintf(stderr, "usage: limit [--libjpeg] CONFIGURATION THREADS REPEAT PATH...\n"
		                "       limit --compare CONFIGURATION PATH...\n");
		return 2;
	}
	pool_setup_malloc();
	if (!configure(&limit.plan, argv[1]) &&
	    !corpus_read(&limit.files, argv + paths, (size_t)(argc - paths), &request))
		status = compares ? compare(&limit) : measure(&limit, threads, repeat);
	corpus_fini(&limit.files);
	pool_fini();
	return status;
}

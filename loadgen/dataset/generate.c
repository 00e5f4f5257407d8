/*
 * generate.c - runs the threads, shows the progress and judges the result.
 *
 * Threads make the largest files first, so that no thread has a large one left at the end. The main
 * thread shows the progress.
 */
#include "generate.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "file_maker.h"
#include "output_dir.h"
#include "size_table.h"

#define TICK_NS (100 * NS_PER_MS)
/* The cost of a file other than its bytes, in bytes. Used to estimate the time left. */
#define FILE_COST (100u << 10)
#define BAR_SIZE 24

struct run {
	const struct generate_conf *conf; /* fixed after start */
	struct output_dir dir;
	struct texture_set textures;
	uint32_t count;
	uint32_t *sizes;       /* of good files; each written by the thread that made it */
	_Atomic uint32_t next; /* this and the rest: any thread, atomic */
	_Atomic uint32_t files_done, files_made;
	_Atomic uint64_t cost_done, cost_made; /* made: in this run */
	_Atomic uint32_t working;
	_Atomic int err; /* of the first thread that failed, -errno */
};

static _Atomic int is_stopped;

void generate_stop(void)
{
	atomic_store_explicit(&is_stopped, 1, memory_order_relaxed);
}

static uint64_t cost_of(const struct file_spec *file)
{
	return (uint64_t)file->bytes + FILE_COST;
}

/* Makes file number index unless it exists. Returns 0 or -errno. */
static int make_file(struct run *run, struct file_maker *maker, uint32_t index)
{
	struct iovec parts[FILE_PARTS];
	struct file_spec file;
	char name[FILE_NAME_SIZE];
	uint32_t size;
	int err;

	file_mix_spec(&run->conf->mix, index, &file);
	file_mix_name(&file, name);
	if (!output_dir_has(&run->dir, name, &size)) {
		err = file_maker_make(maker, &file, parts);
		if (!err)
			err = output_dir_write(&run->dir, name, parts, FILE_PARTS);
		if (err)
			return err;
		size = (uint32_t)(parts[0].iov_len + parts[1].iov_len + parts[2].iov_len);
		atomic_fetch_add_explicit(&run->files_made, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&run->cost_made, cost_of(&file), memory_order_relaxed);
	}
	if (file.kind == FILE_GOOD)
		run->sizes[index] = size;
	atomic_fetch_add_explicit(&run->files_done, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&run->cost_done, cost_of(&file), memory_order_relaxed);
	return 0;
}

static void *work(void *arg)
{
	struct run *run = arg;
	struct file_maker *maker = file_maker_new(&run->textures);
	int err = maker ? 0 : -ENOMEM, none = 0;
	uint32_t taken;

	while (!err && !atomic_load_explicit(&is_stopped, memory_order_relaxed) &&
	       !atomic_load_explicit(&run->err, memory_order_relaxed)) {
		taken = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
		if (taken >= run->count)
			break;
		err = make_file(run, maker, run->count - 1 - taken);
	}
	if (err)
		atomic_compare_exchange_strong_explicit(&run->err, &none, err, memory_order_relaxed,
		                                        memory_order_relaxed);
	file_maker_free(maker);
	atomic_fetch_sub_explicit(&run->working, 1, memory_order_relaxed);
	return NULL;
}

static void show_progress(const struct run *run, uint64_t cost_total, uint64_t start_ns)
{
	uint64_t done = atomic_load_explicit(&run->cost_done, memory_order_relaxed);
	uint64_t made = atomic_load_explicit(&run->cost_made, memory_order_relaxed);
	double share = (double)done / (double)cost_total,
	       elapsed_s = (double)(clock_ns() - start_ns) / (double)NS_PER_S;
	int filled = (int)(share * BAR_SIZE);

	fprintf(stderr, "\r\033[K[%.*s%*s] %3d %%  %" PRIu32 " of %" PRIu32 " files", filled,
	        "########################", BAR_SIZE - filled, "", (int)(share * 100),
	        atomic_load_explicit(&run->files_done, memory_order_relaxed), run->count);
	if (made > 0) {
		int left_s = (int)((double)(cost_total - done) / (double)made * elapsed_s + 0.5);

		fprintf(stderr, "  ETA %d:%02d", left_s / 60, left_s % 60);
	}
	fflush(stderr);
}

static void watch(struct run *run)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	bool is_shown = isatty(STDERR_FILENO);
	uint64_t start_ns = clock_ns(), cost_total = 0;
	struct file_spec file;
	uint32_t i;

	for (i = 0; i < run->count && is_shown; i++) {
		file_mix_spec(&run->conf->mix, i, &file);
		cost_total += cost_of(&file);
	}
	while (atomic_load_explicit(&run->working, memory_order_relaxed) > 0) {
		if (is_shown)
			show_progress(run, cost_total, start_ns);
		nanosleep(&tick, NULL);
	}
	if (is_shown)
		fputs("\r\033[K", stderr);
}

/* Runs the threads to their end. Returns 0, or -1 after reporting what is wrong. */
static int make_all(struct run *run)
{
	pthread_t threads[GENERATE_JOBS_MAX];
	unsigned started, i;
	int err = texture_set_init(&run->textures, run->conf->mix.seed);

	for (started = 0; started < run->conf->jobs && !err; started++) {
		atomic_fetch_add_explicit(&run->working, 1, memory_order_relaxed);
		err = -pthread_create(&threads[started], NULL, work, run);
		if (err)
			break;
	}
	if (err) {
		atomic_store_explicit(&run->err, err, memory_order_relaxed);
		atomic_store_explicit(&run->working, 0, memory_order_relaxed);
	}
	watch(run);
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	texture_set_fini(&run->textures);
	err = atomic_load_explicit(&run->err, memory_order_relaxed);
	if (err)
		fprintf(stderr, "darkroom-dataset: %s: %s\n", run->conf->path, strerror(-err));
	else if (run->files_done < run->count)
		fprintf(stderr,
		        "darkroom-dataset: interrupted after %" PRIu32 " of %" PRIu32
		        " files; the same command resumes\n",
		        run->files_done, run->count);
	return err || run->files_done < run->count ? -1 : 0;
}

static int report(const struct run *run, uint64_t start_ns)
{
	const uint32_t *count = run->conf->mix.count;
	struct size_table stats = size_table_make(run->sizes, count[FILE_GOOD]);
	bool is_right;

	printf("%s: %" PRIu32 " files made in %.1f s, %" PRIu32 " existed\n", run->conf->path,
	       run->files_made, (double)(clock_ns() - start_ns) / (double)NS_PER_S,
	       run->files_done - run->files_made);
	if (run->count > count[FILE_GOOD])
		printf("in addition: %" PRIu32 " truncated, %" PRIu32 " not JPEG, %" PRIu32
		       " empty\n",
		       count[FILE_TRUNCATED], count[FILE_NOT_JPEG], count[FILE_EMPTY]);
	is_right = size_table_print(&stats, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("darkroom-dataset: standard output");
		return -1;
	}
	if (!is_right)
		fputs("darkroom-dataset: a statistic is off by more than 2 %\n", stderr);
	return is_right ? 0 : -1;
}

int generate(const struct generate_conf *conf)
{
	const uint32_t *count = conf->mix.count;
	struct run run = { .conf = conf, .count = file_mix_count(&conf->mix) };
	uint64_t start_ns = clock_ns();
	char line[200];
	int err = -1;

	assert(conf->jobs >= 1 && conf->jobs <= GENERATE_JOBS_MAX);
	snprintf(line, sizeof line,
	         "darkroom-dataset 1: seed %" PRIu64 ", %" PRIu32 " pictures, %" PRIu32
	         " truncated, %" PRIu32 " not JPEG, %" PRIu32 " empty",
	         conf->mix.seed, count[FILE_GOOD], count[FILE_TRUNCATED], count[FILE_NOT_JPEG],
	         count[FILE_EMPTY]);
	if (output_dir_open(&run.dir, conf->path, line) < 0)
		return -1;
	run.sizes = calloc(count[FILE_GOOD], sizeof *run.sizes);
	if (run.sizes)
		err = make_all(&run);
	else
		fputs("darkroom-dataset: out of memory\n", stderr);
	if (!err)
		err = report(&run, start_ns);
	free(run.sizes);
	output_dir_close(&run.dir);
	return err;
}

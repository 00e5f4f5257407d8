/*
 * test_jail.c - what a process that decodes can do, and that its planes are those of the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <png.h>
#include <signal.h>
#include <sys/prctl.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "base/random.h"
#include "jail/jail.c"
#include "support/program_path.h"

#define WIDTH 203
#define HEIGHT 147
#define SAMPLES_MAX (WIDTH * HEIGHT * 4)
#define ACTS 36
#define ACT_READS_CLOCK 18
#define ACT_SPINS 24
#define ACT_WRITES_ON 33 /* its planes, after its answer: wrong pixels of its own picture */
#define FORMATS (1U << FILE_PNG | 1U << FILE_WEBP)

/* A file, and its samples. */
struct sample {
	uint8_t *file;
	size_t size;
	unsigned channels;
	uint8_t pixels[SAMPLES_MAX];
};

struct result {
	enum jail_result result;
	enum jail_status fault;
	uint64_t cpu_ns;
	unsigned plane_count;
	uint8_t *plane[3];
};

static void start(const char *name)
{
	assert_int_equal(jail_start(program_path(name), FORMATS, 2), 0);
	assert_true(jail_can_decode(FILE_PNG) && jail_can_decode(FILE_WEBP));
}

/* ---- files ---- */

/* Smooth colours with noise, so that lossy files are not trivial. */
static void paint(struct sample *s, unsigned channels)
{
	struct random random = { 1 };

	s->channels = channels;
	for (unsigned y = 0; y < HEIGHT; y++)
		for (unsigned i = 0; i < WIDTH * channels; i++)
			s->pixels[y * WIDTH * channels + i] =
				(uint8_t)(y + i / 3 + random_next(&random) % 16);
}

static void write_png(struct sample *s, unsigned channels)
{
	static const uint32_t formats[] = { 0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
		                            PNG_FORMAT_RGBA };
	png_image image = { .version = PNG_IMAGE_VERSION,
		            .width = WIDTH,
		            .height = HEIGHT,
		            .format = formats[channels] };
	png_alloc_size_t size = 1 << 20;

	paint(s, channels);
	s->file = malloc(size);
	assert_true(png_image_write_to_memory(&image, s->file, &size, 0, s->pixels, 0, NULL));
	s->size = size;
}

static void write_webp(struct sample *s, unsigned channels, bool is_lossy)
{
	paint(s, channels);
	if (channels == 4)
		s->size = WebPEncodeLosslessRGBA(s->pixels, WIDTH, HEIGHT, WIDTH * 4, &s->file);
	else if (is_lossy)
		s->size = WebPEncodeRGB(s->pixels, WIDTH, HEIGHT, WIDTH * 3, 75, &s->file);
	else
		s->size = WebPEncodeLosslessRGB(s->pixels, WIDTH, HEIGHT, WIDTH * 3, &s->file);
	assert_true(s->size > 0);
	if (is_lossy) { /* what the library itself makes of the file */
		int width, height;
		uint8_t *pixels = WebPDecodeRGB(s->file, s->size, &width, &height);

		assert_non_null(pixels);
		memcpy(s->pixels, pixels, WIDTH * HEIGHT * 3);
		WebPFree(pixels);
	}
}

static void append_act(struct sample *s, int act)
{
	char text[8];

	snprintf(text, sizeof text, "ACT%02d", act);
	memcpy(s->file + s->size, text, 5);
	s->size += 5;
}

/* ---- decoding ---- */

static struct jail_job job_of(const struct sample *s, unsigned reduce, uint32_t background)
{
	struct file_header h;

	file_header_read(&h, s->file, s->size);
	assert_int_equal(h.width, WIDTH);
	assert_int_equal(h.height, HEIGHT);
	return (struct jail_job){
		.source = s->file,
		.request = { .format = h.format,
		             .width = h.width,
		             .height = h.height,
		             .plane_count = h.is_grey ? 1 : 3,
		             .reduce = reduce,
		             .background = background,
		             .cpu_ms = 300,
		             .source_bytes = s->size,
		             .memory_bytes = file_header_memory(&h, jail_plane_side(WIDTH, reduce),
		                                                jail_plane_side(HEIGHT, reduce)) },
	};
}

static enum jail_result advance_to_end(struct jail_job *job)
{
	uint64_t end_ns = clock_ns() + 20 * NS_PER_S;
	enum jail_result result;

	while ((result = jail_job_advance(job)) == JAIL_JOB_MORE)
		assert_true(clock_ns() < end_ns);
	return result;
}

static struct result run(struct jail_job *job)
{
	struct result r = { .plane_count = job->request.plane_count };
	size_t width = jail_plane_side(WIDTH, job->request.reduce),
	       height = jail_plane_side(HEIGHT, job->request.reduce);

	jail_job_begin(job);
	r.result = advance_to_end(job);
	r.fault = job->fault;
	r.cpu_ns = job->cpu_ns;
	for (unsigned c = 0; r.result == JAIL_JOB_DONE && c < r.plane_count; c++) {
		uint8_t *again = malloc(width * height);

		r.plane[c] = malloc(width * height);
		assert_true(jail_job_read_plane(job, c, r.plane[c], (ptrdiff_t)width));
		assert_true(jail_job_read_plane(job, c, again, (ptrdiff_t)width));
		assert_memory_equal(r.plane[c], again, width * height); /* nobody writes it */
		free(again);
	}
	jail_job_end(job);
	return r;
}

static struct result decode(const struct sample *s, unsigned reduce, uint32_t background)
{
	struct jail_job job = job_of(s, reduce, background);

	return run(&job);
}

static void result_free(struct result *r)
{
	for (unsigned c = 0; c < 3; c++)
		free(r->plane[c]);
}

/* Returns the sample that a block of the picture becomes. */
static unsigned expected(const struct sample *s, unsigned reduce, unsigned x, unsigned y,
                         unsigned c, uint32_t background)
{
	unsigned sum = 0, n = 0, colors = s->channels < 3 ? 1 : 3;

	for (unsigned v = y * reduce; v < (y + 1) * reduce && v < HEIGHT; v++)
		for (unsigned u = x * reduce; u < (x + 1) * reduce && u < WIDTH; u++, n++) {
			const uint8_t *p = s->pixels + (v * WIDTH + u) * s->channels;
			unsigned alpha = s->channels > colors ? p[colors] : 255,
				 behind = background >> (16 - 8 * c) & 255;

			sum += (p[c] * alpha + behind * (255 - alpha) + 127) / 255;
		}
	return (sum + n / 2) / n;
}

static void assert_decoded(const struct sample *s, unsigned reduce, uint32_t background)
{
	struct result r = decode(s, reduce, background);
	unsigned width = jail_plane_side(WIDTH, reduce), height = jail_plane_side(HEIGHT, reduce);

	assert_int_equal(r.result, JAIL_JOB_DONE);
	assert_int_equal(r.plane_count, s->channels < 3 ? 1 : 3);
	assert_true(r.cpu_ns > 0);
	for (unsigned c = 0; c < r.plane_count; c++)
		for (unsigned y = 0; y < height; y++)
			for (unsigned x = 0; x < width; x++)
				assert_int_equal(r.plane[c][y * width + x],
				                 expected(s, reduce, x, y, c, background));
	result_free(&r);
}

static void test_planes_of_png(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	for (unsigned channels = 1; channels <= 4; channels++) {
		write_png(&s, channels);
		for (unsigned reduce = 1; reduce <= 64; reduce += reduce < 5 ? 1 : 59)
			assert_decoded(&s, reduce, channels == 2 ? 0x808080 : 0x2060a0);
		free(s.file);
	}
	jail_stop();
}

static void test_planes_of_webp(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	for (unsigned kind = 0; kind < 3; kind++) {
		write_webp(&s, kind == 2 ? 4 : 3, kind == 1);
		assert_decoded(&s, 1, 0xffffff);
		WebPFree(s.file);
	}
	jail_stop();
}

/* ---- files that are not sound ---- */

static void test_damage_is_a_fault_of_the_file(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	write_png(&s, 3);
	s.file[s.size / 2] ^= 0x55; /* its checksum is wrong */
	struct result damaged = decode(&s, 1, 0);

	s.file[s.size / 2] ^= 0x55;
	s.size /= 2;
	struct result cut = decode(&s, 1, 0);

	assert_int_equal(damaged.result, JAIL_JOB_FAILED);
	assert_int_equal(damaged.fault, JAIL_DAMAGED);
	assert_int_equal(cut.result, JAIL_JOB_FAILED);
	assert_int_equal(cut.fault, JAIL_DAMAGED);
	assert_int_equal(jail.crashes[FILE_PNG].count, 0);
	free(s.file);
	jail_stop();
}

static void test_memory_is_what_was_reserved(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	write_png(&s, 3);
	struct jail_job job = job_of(&s, 1, 0);

	job.request.memory_bytes = 16 << 10;
	struct result r = run(&job);

	assert_int_equal(r.result, JAIL_JOB_FAILED);
	assert_int_equal(r.fault, JAIL_NO_MEMORY);
	assert_decoded(&s, 1, 0);
	free(s.file);
	jail_stop();
}

/* ---- jobs that wait ---- */

/* Begins a job, and gives it a process. */
static void hold(struct jail_job *job)
{
	jail_job_begin(job);
	while (!job->slot)
		assert_int_equal(jail_job_advance(job), JAIL_JOB_MORE);
}

static void test_an_encode_waits_for_no_decode(void **state)
{
	static const uint8_t planes[16 * 16 * 3 / 2];
	static struct sample s;

	(void)state;
	assert_int_equal(
		jail_start(program_path("darkroom-decode"), FORMATS | JAIL_ENCODES(FILE_WEBP), 1),
		0);
	write_png(&s, 3);
	struct jail_job held = job_of(&s, 1, 0),
			encode = { .source = planes,
		                   .request = { .format = FILE_WEBP,
		                                .effort = JAIL_ENCODE_FAST,
		                                .width = 16,
		                                .height = 16,
		                                .plane_count = 3,
		                                .reduce = 1,
		                                .chroma_reduce = 2,
		                                .quality = 80,
		                                .cpu_ms = 300,
		                                .source_bytes = sizeof planes,
		                                .memory_bytes = 4 << 20,
		                                .extra_max = 4096 } };

	hold(&held);
	jail_job_begin(&encode);
	assert_int_equal(advance_to_end(&encode), JAIL_JOB_DONE);
	jail_job_end(&encode);
	jail_job_end(&held);
	free(s.file);
	jail_stop();
}

static void test_a_job_waits_while_others_are_at_work(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	write_png(&s, 3);
	struct jail_job held[2] = { job_of(&s, 1, 0), job_of(&s, 1, 0) }, waiting = held[0];

	hold(&held[0]);
	hold(&held[1]);
	jail_job_begin(&waiting);
	waiting.waited_ms = READY_MAX_MS; /* it has waited long */
	assert_int_equal(jail_job_advance(&waiting), JAIL_JOB_MORE);
	assert_null(waiting.slot);
	jail_job_end(&held[0]);
	assert_int_equal(advance_to_end(&waiting), JAIL_JOB_DONE);
	jail_job_end(&waiting);
	jail_job_end(&held[1]);
	free(s.file);
	jail_stop();
}

/* ---- a decoder that somebody has taken over ---- */

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Returns the number of slots that hold data. */
static unsigned slots_with_data(void)
{
	unsigned n = 0;

	for (unsigned k = 0; k < jail.slot_count; k++)
		n += lseek(jail.slot[k].memfd, 0, SEEK_DATA) >= 0;
	return n;
}

/* Waits until all slots have a process that is ready. */
static void wait_for_all(void)
{
	for (unsigned k = 0; k < jail.slot_count; k++)
		while (!is_fit(&jail.slot[k]))
			take_notices();
}

/* Returns whether a process can read the clock of the processor although it has given that up: on
 * some virtual machines. */
static bool is_clock_forced(void)
{
	int status = 1;
#if defined __x86_64__
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		__asm__ volatile("rdtsc" : : : "eax", "edx");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
#endif
	return status == 0;
}

static void test_hostile_acts(void **state)
{
	static struct sample honest, s;
	unsigned before;

	(void)state;
	start("tests/tools/hostile_decode");
	write_png(&honest, 3);
	assert_decoded(&honest, 1, 0);
	before = open_descriptors();
	for (int act = 1; act <= ACTS; act++) {
		if (act == ACT_READS_CLOCK && is_clock_forced())
			continue;
		write_png(&s, 3);
		append_act(&s, act);
		struct result r = decode(&s, 1, 0);

		if (act == ACT_WRITES_ON ? r.result != JAIL_JOB_DONE : r.fault != JAIL_CRASHED)
			fail_msg("act %d: result %d, fault %d", act, r.result, r.fault);
		/* One that never ends is charged for its 300 ms; the timer counts in ticks. */
		if (act == ACT_SPINS || act == ACT_WRITES_ON)
			assert_true(r.cpu_ns > 200 * NS_PER_MS);
		result_free(&r);
		free(s.file);
		assert_decoded(&honest, 1, 0);
		memset(jail.crashes, 0, sizeof jail.crashes);
	}
	wait_for_all();
	assert_true(open_descriptors() <= before + jail.slot_count);
	assert_int_equal(slots_with_data(), 0);
	free(honest.file);
	jail_stop();
}

static void test_many_crashes_switch_the_format_off(void **state)
{
	static struct sample honest, s, other;

	(void)state;
	start("tests/tools/hostile_decode");
	write_png(&honest, 1);
	write_webp(&other, 3, false);
	write_png(&s, 1);
	append_act(&s, 26);
	for (unsigned i = 0; i < CRASHES_MAX; i++)
		assert_int_equal(decode(&s, 1, 0).fault, JAIL_CRASHED);
	assert_int_equal(decode(&honest, 1, 0).fault, JAIL_OFF);
	assert_decoded(&other, 1, 0);
	jail.crashes[FILE_PNG].off_until_ns = 0; /* a minute later */
	assert_decoded(&honest, 1, 0);
	memset(jail.crashes, 0, sizeof jail.crashes);
	free(honest.file);
	free(s.file);
	WebPFree(other.file);
	jail_stop();
}

/* ---- processes that are killed ---- */

static pid_t zygote_of(pid_t child)
{
	char path[64], line[256];
	pid_t parent = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", child);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof line, file));
	fclose(file);
	assert_int_equal(sscanf(strrchr(line, ')') + 2, "%*c %d", &parent), 1);
	return parent;
}

/* Kills a process, and waits until all spare children that it takes along have ended. */
static void kill_and_wait(pid_t pid, unsigned children)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (unsigned k = 0; k < jail.slot_count && children > 0; k++) {
		struct pollfd p = { .fd = jail.slot[k].ready, .events = POLLIN };

		if (children == jail.slot_count || jail.slot[k].notice.pid == pid)
			assert_int_equal(poll(&p, 1, 5000), 1);
	}
}

static void test_processes_that_are_killed_come_back(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	write_png(&s, 3);
	assert_decoded(&s, 1, 0);
	for (unsigned round = 0; round < 3; round++) {
		wait_for_all();
		kill_and_wait(jail.slot[0].notice.pid, 1);
		assert_decoded(&s, 1, 0);
		wait_for_all();
		kill_and_wait(zygote_of(jail.slot[0].notice.pid), jail.slot_count);
		assert_decoded(&s, 1, 0);
	}
	assert_int_equal(jail.crashes[FILE_PNG].count, 0);
	memset(jail.crashes, 0, sizeof jail.crashes);
	free(s.file);
	jail_stop();
}

static void test_a_slot_is_wiped_without_a_zygote(void **state)
{
	static struct sample s;

	(void)state;
	start("darkroom-decode");
	write_png(&s, 3);
	struct jail_job job = job_of(&s, 1, 0);

	jail_job_begin(&job);
	assert_int_equal(advance_to_end(&job), JAIL_JOB_DONE);
	assert_int_equal(slots_with_data(), 1);
	pid_t zygote = zygote_of(job.pid);

	assert_int_equal(kill(zygote, SIGSTOP), 0); /* it follows no order */
	jail_job_end(&job);
	assert_int_equal(slots_with_data(), 0);
	assert_int_equal(kill(zygote, SIGCONT), 0);
	free(s.file);
	jail_stop();
}

static void test_nothing_is_started_for_no_format(void **state)
{
	(void)state;
	assert_int_equal(jail_start("/nowhere", 0, 2), 0);
	assert_int_equal(jail.control, -1);
	assert_false(jail_can_decode(FILE_PNG));
	assert_int_equal(jail_start("/nowhere", FORMATS, 2), -ENOENT);
	assert_false(jail_can_decode(FILE_PNG));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_planes_of_png),
		cmocka_unit_test(test_planes_of_webp),
		cmocka_unit_test(test_damage_is_a_fault_of_the_file),
		cmocka_unit_test(test_memory_is_what_was_reserved),
		cmocka_unit_test(test_an_encode_waits_for_no_decode),
		cmocka_unit_test(test_a_job_waits_while_others_are_at_work),
		cmocka_unit_test(test_hostile_acts),
		cmocka_unit_test(test_many_crashes_switch_the_format_off),
		cmocka_unit_test(test_processes_that_are_killed_come_back),
		cmocka_unit_test(test_a_slot_is_wiped_without_a_zygote),
		cmocka_unit_test(test_nothing_is_started_for_no_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

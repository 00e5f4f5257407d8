/*
 * planes.c - decodes files by darkroom-decode, and by the same code and library in this process.
 *
 * usage: planes PROGRAM <NAMES
 *
 * Prints a line for each file: "equal WIDTH HEIGHT PLANES", followed by the bytes of the planes;
 * "refused REASON"; or "differs", if the two ways do. The planes have the full size, on white.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/decode/codec.h"
#include "pixel/decoder.h"

#define FORMATS (1U << FILE_PNG | 1U << FILE_WEBP | 1U << FILE_AVIF)
#define FILE_BYTES_MAX ((size_t)64 << 20)
#define CPU_MS 60000
/* The defaults of limits.pixels and limits.pixels_progressive. */
#define PIXELS_MAX 200000000
#define PIXELS_WHOLE_MAX 64000000

/* Decodes without the jail, in a copy of this process: a codec frees nothing. Returns the planes,
 * or NULL. */
static uint8_t *decode_here(const struct decoder *d)
{
	const struct jail_request *q = &d->job.request;
	uint8_t *planes = mmap(NULL, jail_plane_bytes(q) + q->extra_max, PROT_READ | PROT_WRITE,
	                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct codec_job job = { .request = q, .source = d->source, .planes = planes };
	pid_t pid = planes == MAP_FAILED ? -1 : fork();
	int status;

	if (pid == 0)
		_exit(codec_run(&job) == JAIL_DECODED ? 0 : 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(1, "cannot decode");
	if (status == 0)
		return planes;
	munmap(planes, jail_plane_bytes(q) + q->extra_max);
	return NULL;
}

static bool is_equal(const struct picture *p, const uint8_t *planes)
{
	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->height; y++, planes += p->width)
			if (memcmp(p->plane[c].data + y * p->plane[c].stride, planes,
			           (size_t)p->width) != 0)
				return false;
	return true;
}

static void compare(struct decoder *d, enum decoder_result result)
{
	const struct jail_request *q = &d->job.request;
	uint8_t *here = NULL;

	if (d->job.request.width)
		here = decode_here(d);
	if (result == DECODER_FAILED) {
		printf(here ? "differs\n" : "refused %s\n", d->fault_text);
	} else {
		struct picture *p = decoder_take(d);

		if (here && is_equal(p, here)) {
			printf("equal %d %d %u\n", p->width, p->height, p->plane_count);
			fwrite(here, (size_t)p->width * (size_t)p->height, p->plane_count, stdout);
		} else {
			printf("differs\n");
		}
		picture_unref(p);
	}
	if (here)
		munmap(here, jail_plane_bytes(q) + q->extra_max);
}

static void decode(const uint8_t *file, size_t size)
{
	struct decoder *d = decoder_new();

	if (!d)
		errx(1, "no memory");
	d->background = 0xffffff;
	d->cpu_ms = CPU_MS;
	memset(&d->job, 0, sizeof d->job);
	enum decoder_result result = decoder_open(d, file, size);

	uint64_t width = d->in.image_width, height = d->in.image_height,
		 pixels_max = d->is_buffered ? PIXELS_WHOLE_MAX : PIXELS_MAX;

	if (result == DECODER_MORE && width * height > pixels_max) {
		printf("refused %s: too many pixels\n", file_format_name(d->header.format));
		decoder_free(d);
		return;
	}
	if (result == DECODER_MORE) {
		decoder_choose(d, (int)width, (int)height, (int)width, (int)height);
		result = decoder_start(d, 1, true);
	}
	while (result == DECODER_MORE)
		result = decoder_advance(d, 1);
	compare(d, result);
	decoder_free(d);
}

int main(int argc, char **argv)
{
	static uint8_t file[FILE_BYTES_MAX];
	char name[4096];

	if (argc != 2)
		errx(2, "usage: planes PROGRAM <NAMES");
	if (jail_start(argv[1], FORMATS, 2) || codec_load(FORMATS) != FORMATS)
		errx(1, "a library is missing");
	while (fgets(name, sizeof name, stdin)) {
		name[strcspn(name, "\n")] = '\0';
		FILE *in = fopen(name, "rb");

		if (!in)
			err(1, "%s", name);
		decode(file, fread(file, 1, FILE_BYTES_MAX, in));
		fclose(in);
		fflush(stdout);
	}
	jail_stop();
	decoder_thread_fini();
	return 0;
}

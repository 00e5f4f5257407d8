/*
 * damage.c - the share of damaged files that the decoder notices.
 *
 * Each file is damaged in the first half of its largest scan, in five ways and several places. The
 * picture is compared with the sound one.
 *
 * data/results/damage has the shares of 60 photographs.
 *
 * usage: damage [--libjpeg] PLACES FILE.jpg...
 * Prints a table, sequential and progressive files apart: noticed; unnoticed, but the picture has
 * at least 30 dB; unnoticed. Exits with 1 if a sound file is said to be damaged.
 * With --libjpeg libjpeg decodes alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "pixel/decoder.h"

#define SIDE 800 /* of the shipped configuration's largest variant */
#define SAME_DB 30.0

enum damage { RANDOM = 0, ZEROS, DOUBLED, BIT, CUT, DAMAGE_COUNT };
enum outcome { NOTICED = 0, SAME, UNNOTICED, OUTCOME_COUNT };

static const char *const damage_names[DAMAGE_COUNT] = { "512 bytes overwritten by random ones",
	                                                "512 bytes zeroed", "100 bytes doubled",
	                                                "one bit flipped", "1000 bytes cut out" };

struct file {
	uint8_t *data;
	size_t size;
	size_t begin, end; /* of the largest scan */
};

/* By is_buffered. */
static unsigned counts[2][DAMAGE_COUNT][OUTCOME_COUNT], files[2];
static unsigned refused;
static bool uses_libjpeg;

static bool read_file(struct file *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	long size;

	if (!in || fseek(in, 0, SEEK_END) || (size = ftell(in)) <= 0 || fseek(in, 0, SEEK_SET)) {
		perror(path);
		exit(2);
	}
	f->size = (size_t)size;
	f->data = malloc(f->size + 1000);
	if (!f->data || fread(f->data, 1, f->size, in) != f->size) {
		perror(path);
		exit(2);
	}
	fclose(in);
	return true;
}

/* Finds the largest scan. */
static void find_scan(struct file *f)
{
	const uint8_t *d = f->data;
	size_t at = 2;

	f->begin = f->end = 0;
	while (at + 4 <= f->size && d[at] == 0xff && d[at + 1] != 0xd9) {
		size_t next = at + 2 + ((size_t)d[at + 2] << 8 | d[at + 3]), begin = next;

		if (d[at + 1] == 0xda) {
			while (next + 1 < f->size && !(d[next] == 0xff && d[next + 1] != 0 &&
			                               (d[next + 1] & 0xf8) != 0xd0))
				next++;
			if (next - begin > f->end - f->begin) {
				f->begin = begin;
				f->end = next;
			}
		}
		at = next;
	}
}

/* Returns the picture, or NULL. *noticed: pixels are lost. */
static struct picture *decode(struct decoder *d, const uint8_t *data, size_t size, bool *noticed)
{
	enum decoder_result result = decoder_open(d, data, size);
	struct picture *p = NULL;

	if (uses_libjpeg)
		decoder_use_libjpeg(d);
	if (result != DECODER_FAILED) {
		double scale = SIDE / fmax(d->in.image_width, d->in.image_height);
		int w = (int)(d->in.image_width * fmin(scale, 1)),
		    h = (int)(d->in.image_height * fmin(scale, 1));

		decoder_choose(d, w, h, w / 2, h / 2);
		result = decoder_start(d, 100, false);
	}
	while (result == DECODER_MORE)
		result = decoder_advance(d, 1000);
	*noticed = result == DECODER_FAILED || d->has_lost;
	if (result == DECODER_DONE)
		p = decoder_take(d);
	decoder_close(d);
	return p;
}

/* Returns the PSNR of the first planes in dB. */
static double psnr(const struct picture *a, const struct picture *b)
{
	const struct plane *p = &a->plane[0], *q = &b->plane[0];
	double sum = 0;

	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++) {
			double e = p->data[y * p->stride + x] - q->data[y * q->stride + x];

			sum += e * e;
		}
	return sum > 0 ? 10 * log10(255. * 255 * p->width * p->height / sum) : INFINITY;
}

/* Returns the damaged copy's size. copy has room for 1000 bytes more than the file. */
static size_t damage(const struct file *f, enum damage kind, uint8_t *copy)
{
	size_t length = (f->end - f->begin) / 2, at = f->begin + (size_t)rand() % length;

	memcpy(copy, f->data, f->size);
	switch (kind) {
	case RANDOM:
		for (int i = 0; i < 512; i++)
			copy[at + (size_t)i] = (uint8_t)(rand() >> 8);
		return f->size;
	case ZEROS:
		memset(copy + at, 0, 512);
		return f->size;
	case DOUBLED:
		memcpy(copy + at + 100, f->data + at, f->size - at);
		return f->size + 100;
	case BIT:
		copy[at] ^= (uint8_t)(1 << rand() % 8);
		return f->size;
	default:
		memcpy(copy + at, f->data + at + 1000, f->size - at - 1000);
		return f->size - 1000;
	}
}

static void try_file(struct decoder *d, const char *path, unsigned places)
{
	struct file f;
	bool noticed;

	read_file(&f, path);
	struct picture *sound = decode(d, f.data, f.size, &noticed), *p;
	bool is_buffered = d->is_buffered;

	if (noticed) {
		fprintf(stderr, "%s: %s\n", path, sound ? "pixels are lost" : d->fault_text);
		refused++;
	}
	find_scan(&f);
	if (sound && !noticed && f.end - f.begin > 4096) {
		uint8_t *copy = malloc(f.size + 1000);

		files[is_buffered]++;
		for (unsigned i = 0; copy && i < places * DAMAGE_COUNT; i++) {
			enum outcome outcome = NOTICED;
			size_t n = damage(&f, i % DAMAGE_COUNT, copy);

			p = decode(d, copy, n, &noticed);
			if (!noticed)
				outcome = psnr(sound, p) >= SAME_DB ? SAME : UNNOTICED;
			counts[is_buffered][i % DAMAGE_COUNT][outcome]++;
			picture_unref(p);
		}
		free(copy);
	}
	picture_unref(sound);
	free(f.data);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "sequential", "progressive" };
	struct decoder *d = decoder_new();

	if (argc > 1 && strcmp(argv[1], "--libjpeg") == 0) {
		uses_libjpeg = true;
		argv++;
		argc--;
	}
	if (argc < 3 || !d) {
		fprintf(stderr, "usage: damage [--libjpeg] PLACES FILE.jpg...\n");
		return 2;
	}
	srand(1);
	for (int i = 2; i < argc; i++)
		try_file(d, argv[i], (unsigned)atoi(argv[1]));
	decoder_free(d);
	decoder_thread_fini();
	for (unsigned k = 0; k < 2; k++) {
		printf("%u %s files, in %s places each:\n", files[k], kinds[k], argv[1]);
		for (unsigned i = 0; i < DAMAGE_COUNT; i++) {
			const unsigned *c = counts[k][i];
			double all = fmax(c[NOTICED] + c[SAME] + c[UNNOTICED], 1);

			printf("  %-38s noticed %5.1f %%  same %5.1f %%  unnoticed %5.1f %%\n",
			       damage_names[i], 100 * c[NOTICED] / all, 100 * c[SAME] / all,
			       100 * c[UNNOTICED] / all);
		}
	}
	return refused > 0;
}

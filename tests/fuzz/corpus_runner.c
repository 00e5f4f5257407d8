/*
 * corpus_runner.c - runs a fuzz target without libFuzzer: its seeds, mutants of them, and files.
 *
 * The mutants are the same in each run. So every compiler and sanitizer checks each target in
 * `make check`. With libFuzzer (DARKROOM_FUZZER), this file only writes the seeds.
 *
 * usage: fuzz_NAME                runs the seeds and their mutants
 *        fuzz_NAME FILE...        runs the files
 *        fuzz_NAME --seeds DIR    writes the seeds to files
 *        fuzz_NAME --seconds N SEED    runs random mutants of the seeds
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "target.h"

static unsigned long count; /* of inputs */
static const char *directory;

/* ---- writing ---- */

static void write_seed(const void *data, size_t size)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/seed-%03lu", directory, count++);
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

/* Writes the seeds to the directory that the command line names, and exits. Returns if it has no
 * --seeds. */
static void write_seeds(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--seeds") != 0)
		return;
	directory = argv[2];
	target_seeds(write_seed);
	exit(EXIT_SUCCESS);
}

#ifdef DARKROOM_FUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	write_seeds(*argc, *argv);
	return 0;
}

#else

#define INPUT_MAX ((size_t)1 << 20)
#define EDITS_MAX 4

static uint8_t buffer[INPUT_MAX];
static uint32_t generator = 1;

#pragma weak LLVMFuzzerCustomMutator
#pragma weak target_report

/* ---- mutants ---- */

static size_t at_random(size_t limit)
{
	return limit ? target_random(&generator) % limit : 0;
}

/* Inserts a copy of a part of the input. */
static size_t duplicate(uint8_t *data, size_t size, size_t size_max)
{
	size_t from = at_random(size), length = 1 + at_random(size - from < 40 ? size - from : 40);
	size_t to = at_random(size + 1);
	uint8_t part[64];

	if (size == 0 || from + length > size || size + length > size_max)
		return size;
	memcpy(part, data + from, length);
	memmove(data + to + length, data + to, size - to);
	memcpy(data + to, part, length);
	return size + length;
}

static size_t cut_out(uint8_t *data, size_t size)
{
	size_t at = at_random(size), length = 1 + at_random(16);

	if (at + length >= size)
		return at; /* the end is missing */
	memmove(data + at, data + at + length, size - at - length);
	return size - length;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max)
{
	static const uint8_t special[] = { 0,   '\t', '\n', '\r', ' ',  '"', ',', '-', '0',
		                           ';', ':',  '=',  '[',  '\\', 127, 128, 255 };

	switch (at_random(5)) {
	case 0:
		if (size)
			data[at_random(size)] ^= (uint8_t)(1U << at_random(8));
		return size;
	case 1:
		if (size)
			data[at_random(size)] = special[at_random(sizeof special)];
		return size;
	case 2:
		if (size)
			data[at_random(size)] = (uint8_t)target_random(&generator);
		return size;
	case 3:
		return duplicate(data, size, size_max);
	default:
		return cut_out(data, size);
	}
}

/* ---- running ---- */

static void run(const void *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);

	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	count++;
}

static void run_mutant(const void *data, size_t size)
{
	assert(size <= INPUT_MAX);
	memcpy(buffer, data, size);
	for (size_t edits = 1 + at_random(EDITS_MAX); edits > 0; edits--)
		size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(buffer, size, INPUT_MAX,
		                                                         target_random(&generator))
		                               : LLVMFuzzerMutate(buffer, size, INPUT_MAX);
	run(buffer, size);
}

static void run_mutants(const void *data, size_t size)
{
	run(data, size);
	for (unsigned i = 0; i < target_mutants; i++)
		run_mutant(data, size);
}

/* ---- for a time ---- */

#define SEEDS_MAX 1024
#define AT_ONCE 256 /* inputs between looks at the clock */

static struct {
	void *data;
	size_t size;
} seeds[SEEDS_MAX];
static size_t seed_count;

static void keep_seed(const void *data, size_t size)
{
	assert(seed_count < SEEDS_MAX);
	seeds[seed_count].data = target_copy(data, size);
	seeds[seed_count++].size = size;
}

static void run_for(unsigned seconds, uint32_t seed)
{
	uint64_t end = clock_ns() + seconds * UINT64_C(1000000000);

	generator = seed * 2654435761U | 1;
	target_seeds(keep_seed);
	while (clock_ns() < end)
		for (int i = 0; i < AT_ONCE; i++) {
			size_t k = at_random(seed_count);

			run_mutant(seeds[k].data, seeds[k].size);
		}
	while (seed_count > 0)
		free(seeds[--seed_count].data);
}

static bool run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t size = f ? fread(buffer, 1, sizeof buffer, f) : 0;

	if (!f || ferror(f)) {
		perror(path);
		return false;
	}
	fclose(f);
	run(buffer, size);
	return true;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	write_seeds(argc, argv);
	if (argc == 4 && strcmp(argv[1], "--seconds") == 0)
		run_for((unsigned)strtoul(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
	else if (argc == 1)
		target_seeds(run_mutants);
	else
		for (int i = 1; i < argc; i++)
			if (!run_file(argv[i]))
				return EXIT_FAILURE;
	printf("[       OK ] %s: %lu inputs\n", name, count);
	if (target_report)
		target_report();
	return EXIT_SUCCESS;
}

#endif

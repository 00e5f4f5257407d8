/*
 * corpus_runner.c - runs a fuzz target without libFuzzer: its seeds, mutants of them, and files.
 *
 * The mutants are the same in each run. So every compiler and sanitizer checks each target in
 * `make check`. With libFuzzer (DARKROOM_FUZZER), this file only writes the seeds.
 *
 * usage: fuzz_NAME                runs the seeds and their mutants
 *        fuzz_NAME FILE...        runs the files
 *        fuzz_NAME --seeds DIR    writes the seeds to files
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

static unsigned count; /* of inputs */
static const char *directory;

/* ---- writing ---- */

static void write_seed(const void *data, size_t size)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/seed-%03u", directory, count++);
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

static void run_mutants(const void *data, size_t size)
{
	run(data, size);
	for (unsigned i = 0; i < target_mutants; i++) {
		size_t length = size;

		assert(size <= INPUT_MAX);
		memcpy(buffer, data, size);
		for (size_t edits = 1 + at_random(EDITS_MAX); edits > 0; edits--)
			length = LLVMFuzzerCustomMutator
			                 ? LLVMFuzzerCustomMutator(buffer, length, INPUT_MAX,
			                                           target_random(&generator))
			                 : LLVMFuzzerMutate(buffer, length, INPUT_MAX);
		run(buffer, length);
	}
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
	for (int i = 1; i < argc; i++)
		if (!run_file(argv[i]))
			return EXIT_FAILURE;
	if (argc == 1)
		target_seeds(run_mutants);
	printf("[       OK ] %s: %u inputs\n", name, count);
	return EXIT_SUCCESS;
}

#endif

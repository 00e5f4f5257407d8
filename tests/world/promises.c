/*
 * promises.c - the store on a disk in memory, with faults: lost power, killed processes, errors,
 * a full disk, short writes, bits that change.
 *
 * A seed draws what clients do and when faults happen. The program knows which states of each image
 * are allowed: acknowledged and not removed is there and equal; removed stays removed; the rest is
 * there as a whole, or not at all. It compares them while a process lives and after each end of
 * one. At last, without faults, nothing is left behind: no directory, no descriptor, no wrong
 * figure.
 *
 * A seed that fails is repeated without each of its faults, until all that are left are needed.
 *
 * usage: store [--seed N] [--count N] [--only MASK] [--loud]
 * MASK has a bit for each fault of the seed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "disk.h"
#include "images.h"
#include "lives.h"
#include "seam.h"
#include "store/directory.h"

#define STEPS 40
#define CALLS_PER_SEED 900 /* about what a run makes: faults happen before */
#define CALLS_OF_START 60

static void expect_empty(const char *directory)
{
	DIR *dir = directory_list(world.store.root_fd, directory);

	if (!dir && errno == ENOENT)
		return; /* no image ended */
	if (!dir)
		FAIL("%s cannot be listed: %s", directory, strerror(errno));
	const char *name = directory_next(dir);

	if (name)
		FAIL("%s/%s is left", directory, name);
	closedir(dir);
}

/* The faults have stopped: what they left goes. */
static void settle(void)
{
	disk.fault_count = 0;
	disk.full_until = 0;
	check_all(false);
	for (unsigned i = 0; i < 3; i++) {
		disk.now_ns += 2 * STORE_TIDY_NS;
		store_put(&world.store, NULL, 0); /* clears the trash */
	}
	disk.is_quiet = true;
	expect_empty(STORE_TRASH_DIRECTORY);
	disk.is_quiet = false;
	end_life();
	begin_life();
	expire_all();
	disk.is_quiet = true;
	expect_empty(STORE_EXPIRY_DIRECTORY);
	expect_empty(STORE_INCOMING_DIRECTORY);
	expect_empty(STORE_TRASH_DIRECTORY);
	disk.is_quiet = false;
	end_life();
}

/* ---- seeds ---- */

/* Power is often lost soon after another fault, above all after a kill: then a start has changed
 * what is not flushed. */
static void draw_faults(struct disk_fault *fault, unsigned *count)
{
	uint64_t at = 0;

	*count = (unsigned)draw(DISK_FAULTS_MAX);
	for (unsigned i = 0; i < *count; i++) {
		bool is_soon = i && draw(4) < (fault[i - 1].kind == DISK_KILL ? 2 : 1);

		at += 1 + draw(is_soon ? CALLS_OF_START : 2 * CALLS_PER_SEED / (*count + 1));
		fault[i] = (struct disk_fault){
			.at = at,
			.kind = is_soon ? DISK_POWER : (enum disk_fault_kind)draw(DISK_SHORT + 1),
			.seed = draw(UINT32_MAX),
		};
	}
}

/* Runs a seed with the faults of this mask. Returns whether all promises were kept. */
static bool run(uint64_t seed, unsigned mask)
{
	struct disk_fault fault[DISK_FAULTS_MAX];
	unsigned count;

	memset(&world, 0, sizeof world);
	world.random.state = seed;
	world.steps = STEPS;
	disk_begin(seed);
	draw_faults(fault, &count);
	for (unsigned i = 0; i < count; i++)
		if (mask >> i & 1)
			disk.fault[disk.fault_count++] = fault[i];
	if (setjmp(world.end) == 0) {
		if (setjmp(disk.life)) /* the memory of a process ends with it */
			usage_fini(&world.store.usage);
		begin_life();
		while (world.steps) {
			world.steps--;
			take_step();
		}
		settle();
	}
	disk_close_all();
	disk_end();
	return !world.fault[0];
}

static void print_faults(uint64_t seed, unsigned mask)
{
	static const char *const words[] = {
#define X(kind, word) word,
		DISK_FAULTS(X)
#undef X
	};
	struct disk_fault fault[DISK_FAULTS_MAX];
	unsigned count;

	world.random.state = seed;
	draw_faults(fault, &count);
	for (unsigned i = 0; i < count; i++)
		if (mask >> i & 1)
			printf("  fault %u: %s at call %" PRIu64 "\n", i, words[fault[i].kind],
			       fault[i].at);
}

/* Leaves out each fault without which the seed still fails. */
static void explain(uint64_t seed, unsigned mask)
{
	for (unsigned i = 0; i < DISK_FAULTS_MAX; i++)
		if (mask >> i & 1 && !run(seed, mask & ~(1U << i)))
			mask &= ~(1U << i);
	(void)run(seed, mask);
	printf("seed %" PRIu64 ": %s\n", seed, world.fault);
	print_faults(seed, mask);
	printf("repeat: build/plain/world/store --seed %" PRIu64 " --only %#x --loud\n", seed,
	       mask);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 1000, calls = 0;
	unsigned mask = (1U << DISK_FAULTS_MAX) - 1;

	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;

		if (strcmp(argv[i], "--loud") == 0)
			promises_are_loud = true;
		else if (has_value && strcmp(argv[i], "--count") == 0)
			count = strtoull(argv[++i], NULL, 10);
		else if (has_value && strcmp(argv[i], "--only") == 0)
			mask = (unsigned)strtoul(argv[++i], NULL, 0), count = 1;
		else if (has_value && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 10);
		else
			return fprintf(stderr, "usage: store [--seed N] [--count N] [--only MASK] "
			                       "[--loud]\n"),
			       2;
	}
	for (uint64_t end = seed + count; seed < end; seed++) {
		if (!run(seed, mask)) {
			explain(seed, mask);
			return 1;
		}
		calls += disk.calls;
	}
	printf("%" PRIu64 " seeds, %.1f calls each: all promises kept\n", count,
	       (double)calls / (double)count);
	for (const struct seam *s = seams; s; s = s->next)
		if (!s->calls)
			printf("seam %s was never called\n", s->name);
	return 0;
}

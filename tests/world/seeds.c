/* seeds.c - runs seeds, and leaves out faults. */
#include "seeds.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "seam.h"

#define SEAMS_MAX 256

bool seeds_are_loud;

/* What the process of a seed leaves behind. */
static struct {
	char broken[512];      /* the promise; "": none */
	uint64_t calls;        /* of this seed */
	bool seams[SEAMS_MAX]; /* whether some seed has called it, in the order of the list */
} * result;

_Noreturn static void leave(void)
{
	unsigned i = 0;

	result->calls = seed_program.calls();
	for (const struct seam *s = seams; s && i < SEAMS_MAX; s = s->next, i++)
		result->seams[i] |= s->calls != 0;
	_exit(0);
}

void promise_broken(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->broken, sizeof result->broken, format, args);
	va_end(args);
	leave();
}

void tell(const char *format, ...)
{
	va_list args;

	if (!seeds_are_loud)
		return;
	va_start(args, format);
	fprintf(stderr, "%s %" PRIu64 ", %.3f s: ", seed_program.call, seed_program.calls(),
	        (double)seed_program.now_ns(CLOCK_MONOTONIC) / NS_PER_S);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

/* Runs a seed with the faults of this mask. Returns whether all promises were kept. */
static bool run(uint64_t seed, unsigned mask)
{
	struct seed_fault fault[SEED_FAULTS_MAX];
	unsigned drawn = seed_program.draw(seed, fault), count = 0;
	int status = 0;

	for (unsigned i = 0; i < drawn; i++)
		if (mask >> i & 1)
			fault[count++] = fault[i];
	result->broken[0] = '\0';
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid == 0) {
		seed_program.run(seed, fault, count);
		leave();
	}
	if (waitpid(pid, &status, 0) != pid || (status && !result->broken[0]))
		snprintf(result->broken, sizeof result->broken, "the process has ended with %#x",
		         (unsigned)status);
	return !result->broken[0];
}

static void print_faults(uint64_t seed, unsigned mask)
{
	struct seed_fault fault[SEED_FAULTS_MAX];
	unsigned count = seed_program.draw(seed, fault);

	for (unsigned i = 0; i < count; i++)
		if (mask >> i & 1)
			printf("  fault %u: %s at %s %" PRIu64 "\n", i,
			       seed_program.words[fault[i].kind], seed_program.call, fault[i].at);
}

/* Leaves out each fault without which the seed still fails. */
static void explain(uint64_t seed, unsigned mask)
{
	for (unsigned i = 0; i < SEED_FAULTS_MAX; i++)
		if (mask >> i & 1 && !run(seed, mask & ~(1U << i)))
			mask &= ~(1U << i);
	(void)run(seed, mask);
	printf("seed %" PRIu64 ": %s\n", seed, result->broken);
	print_faults(seed, mask);
	printf("repeat: build/plain/world/%s --seed %" PRIu64 " --only %#x --loud\n",
	       seed_program.name, seed, mask);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 1000, calls = 0;
	unsigned mask = (1U << SEED_FAULTS_MAX) - 1, i = 0;

	result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (result == MAP_FAILED)
		return 1;
	for (int n = 1; n < argc; n++) {
		bool has_value = n + 1 < argc;

		if (strcmp(argv[n], "--loud") == 0)
			seeds_are_loud = true;
		else if (has_value && strcmp(argv[n], "--count") == 0)
			count = strtoull(argv[++n], NULL, 10);
		else if (has_value && strcmp(argv[n], "--only") == 0)
			mask = (unsigned)strtoul(argv[++n], NULL, 0), count = 1;
		else if (has_value && strcmp(argv[n], "--seed") == 0)
			seed = strtoull(argv[++n], NULL, 10);
		else
			return fprintf(stderr,
			               "usage: %s [--seed N] [--count N] [--only MASK] "
			               "[--loud]\n",
			               seed_program.name),
			       2;
	}
	for (uint64_t end = seed + count; seed < end; seed++) {
		if (!run(seed, mask)) {
			explain(seed, mask);
			return 1;
		}
		calls += result->calls;
	}
	printf("%" PRIu64 " seeds, %.1f %ss each: all promises kept\n", count,
	       (double)calls / (double)count, seed_program.call);
	for (const struct seam *s = seams; s && i < SEAMS_MAX; s = s->next, i++)
		if (!result->seams[i])
			printf("seam %s was never called\n", s->name);
	return 0;
}

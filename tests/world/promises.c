/*
 * promises.c - the store on a disk in memory, with faults: lost power, killed processes, errors,
 * a full disk, short writes, bits that change.
 *
 * A seed draws what clients do and when faults happen. The program knows which states of each image
 * are allowed: acknowledged and not removed is there and equal; removed stays removed; the rest is
 * there as a whole, or not at all. It compares them while a process lives and after each end of
 * one. At last, without faults, nothing is left behind: no directory, no descriptor, no wrong
 * figure.
 */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "disk.h"
#include "images.h"
#include "lives.h"
#include "seeds.h"
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
static unsigned draw_faults(uint64_t seed, struct seed_fault *fault)
{
	uint64_t at = 0;

	world.random.state = seed;
	unsigned count = (unsigned)draw(SEED_FAULTS_MAX);

	for (unsigned i = 0; i < count; i++) {
		bool is_soon = i && draw(4) < (fault[i - 1].kind == DISK_KILL ? 2 : 1);

		at += 1 + draw(is_soon ? CALLS_OF_START : 2 * CALLS_PER_SEED / (count + 1));
		fault[i] = (struct seed_fault){
			.at = at,
			.kind = is_soon ? DISK_POWER : (unsigned)draw(DISK_SHORT + 1),
			.seed = draw(UINT32_MAX),
		};
	}
	return count;
}

/* The numbers go on behind those of the faults. */
static void run(uint64_t seed, const struct seed_fault *fault, unsigned count)
{
	struct random random = world.random;

	memset(&world, 0, sizeof world);
	world.random = random;
	world.steps = STEPS;
	disk_begin(seed);
	memcpy(disk.fault, fault, count * sizeof *fault);
	disk.fault_count = count;
	if (setjmp(disk.life)) /* the memory of a process ends with it */
		usage_fini(&world.store.usage);
	begin_life();
	while (world.steps) {
		world.steps--;
		take_step();
	}
	settle();
}

static uint64_t now_ns(clockid_t id)
{
	(void)id;
	return disk.now_ns;
}

static struct random *chance(void)
{
	return &disk.chance;
}

const struct seed_program seed_program = {
	.name = "store",
	.call = "call",
	.words = disk_fault_words,
	.draw = draw_faults,
	.run = run,
	.calls = disk_calls,
	.now_ns = now_ns,
	.chance = chance,
};

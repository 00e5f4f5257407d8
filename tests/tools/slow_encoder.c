/*
 * slow_encoder.c - makes a program need more CPU time for each JPEG file that it makes.
 *
 * For LD_PRELOAD. The file DARKROOM_SLOW_ENCODER has a 32-bit number: the microseconds of CPU time
 * that each file takes in addition. It is mapped, so that another process can change it while the
 * program runs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

static const _Atomic uint32_t *extra_us;

__attribute__((constructor)) static void open_control(void)
{
	const char *path = getenv("DARKROOM_SLOW_ENCODER");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map =
		fd >= 0 ? mmap(NULL, sizeof *extra_us, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (map != MAP_FAILED)
		extra_us = map;
	if (fd >= 0)
		close(fd);
}

static uint64_t thread_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void jpeg_start_compress(j_compress_ptr out, boolean write_all_tables)
{
	uint64_t end = thread_us() + (extra_us ? atomic_load(extra_us) : 0);
	void (*wrapped)(j_compress_ptr, boolean) = (void (*)(j_compress_ptr, boolean))(
		uintptr_t)dlsym(RTLD_NEXT, "jpeg_start_compress");

	while (thread_us() < end)
		continue;
	if (!wrapped)
		abort();
	wrapped(out, write_all_tables);
}

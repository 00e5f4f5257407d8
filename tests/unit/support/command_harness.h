/*
 * command_harness.h - a command of darkroomd store beside its store: the images that it walks over,
 * and what it reports.
 *
 * For tests that include the command's .c file after this header.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_COMMAND_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_COMMAND_HARNESS_H

#include "text_streams.h"

#include <errno.h>
#include <stdbool.h>

#include "base/check.h"
#include "store/store_query.h"

#define WALK_MAX 80
#define WALK_FAILS 9 /* a status of the walk's own */
#define ID(n) walk_id[n]

static char walk_id[WALK_MAX][ULID_LENGTH + 1];
static unsigned walk_count, walk_at;
static int walk_status;
static struct store_query query;

/* A variable that the command does not set has no zeros. */
static __attribute__((noinline)) void dirty_stack(void)
{
	volatile unsigned char bytes[4096];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = 0x5a;
}

static inline int fake_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(err_stream, format, args);
	va_end(args);
	fputs("\n", err_stream);
	return QUERY_EXIT_USAGE;
}

static inline int fake_fail(const char *what, int err)
{
	fprintf(err_stream, "%s: error %d\n", what, -err);
	return EXIT_FAILURE;
}

static inline int fake_each(struct store_query *q,
                            int (*each)(struct store_query *q, const char *id, void *arg),
                            void *arg)
{
	assert_ptr_equal(q, &query);
	for (walk_at = 0; walk_at < walk_count; walk_at++) {
		dirty_stack();
		int status = each(q, walk_id[walk_at], arg);

		if (status)
			return status;
	}
	return walk_status;
}

/* Begins with an empty query and as many images, one a millisecond since 2026-11-22. */
static inline void begin_command(unsigned images)
{
	open_streams();
	query = (struct store_query){ .limit = UINT64_MAX };
	walk_count = images;
	walk_status = 0;
	for (unsigned i = 0; i < images; i++)
		ulid_bound(UINT64_C(1795305600000) + i, 'A', walk_id[i]);
}

#define store_query_usage fake_usage
#define store_query_fail fake_fail
#define store_query_each fake_each

#endif

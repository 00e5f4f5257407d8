/* usage_harness.h - usage.c with a store, a day of the test, and pages of three images. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_USAGE_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_USAGE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stored_fixture.h"

static time_t fake_time;

static inline time_t time_fake(time_t *to)
{
	assert_null(to);
	return fake_time;
}

#include "access/tokens.h"
#include "store/usage.h"

#undef USAGE_PAGE_MAX
#define USAGE_PAGE_MAX 3
#define time time_fake
#include "store/usage.c"

#define TODAY (INT64_C(20415) * USAGE_DAY_S)

static char root[64];
static struct store store;
static struct usage *const usage = &store.usage;

static inline int setup(void **state)
{
	unsigned cleared;

	(void)state;
	fake_time = TODAY + 100;
	snprintf(root, sizeof root, "/tmp/darkroom-usage-XXXXXX");
	return !mkdtemp(root) || store_open(&store, root, false, &cleared) ? -1 : 0;
}

static inline int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

/* Stores an image that was made at that time of TODAY. */
static inline const char *put_at(int64_t seconds, const char *token, size_t bytes)
{
	char id[ULID_LENGTH + 1];

	ulid_bound((uint64_t)(TODAY + seconds) * 1000, 'A', id);
	return stored_put(&store, id, token, bytes, 0);
}

static inline void switch_on_and_count(void)
{
	usage_switch(usage, &store, true);
	assert_int_equal(usage_count(usage, &store, 1000), 1);
}

static inline void check_all(uint64_t images, uint64_t bytes, bool is_complete)
{
	struct usage_total total = usage_total(usage);

	assert_int_equal(total.all.images, images);
	assert_int_equal(total.all.bytes, bytes);
	assert_int_equal(total.is_complete, is_complete);
}

static inline void check_token(const char *name, uint64_t images, uint64_t bytes, uint64_t uploads)
{
	const struct usage_token *of = find_token(usage, name);

	assert_non_null(of);
	assert_string_equal(of->name, name);
	assert_int_equal(of->stored.images, images);
	assert_int_equal(of->stored.bytes, bytes);
	assert_int_equal(of->uploads, uploads);
}

#endif

/* pool_fixture.h - the end of tests that use pool buffers: all were given back, and none is kept
 * for the next. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_POOL_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_POOL_FIXTURE_H

#include "base/pool.h"

/* After cmocka.h. Main thread, when all others have ended. */
static inline void pool_forget(void)
{
	uint64_t used, kept;

	pool_thread_fini();
	pool_fini();
	pool_usage(&used, &kept);
	assert_int_equal(used, 0);
	assert_int_equal(kept, 0);
}

#endif

/* pool_fixture.c - the end of tests that use pool buffers. */
#include "pool_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"

void pool_forget(void)
{
	uint64_t used, kept;

	pool_thread_fini();
	pool_fini();
	pool_usage(&used, &kept);
	assert_int_equal(used, 0);
	assert_int_equal(kept, 0);
}

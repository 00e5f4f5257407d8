/*
 * mechanisms.c - the table of mechanisms.
 *
 * The only file that includes all of them.
 */
#include "mechanisms.h"

#include "base/check.h"
#include "mechanism_color.h"
#include "mechanism_poll.h"
#include "mechanism_pool.h"
#include "mechanism_thread_per_connection.h"

const struct mechanism *mechanism_of(enum policy_mechanism id)
{
	static const struct mechanism *const mechanisms[] = {
		[POLICY_POLL] = &mechanism_poll,
		[POLICY_COLOR] = &mechanism_color,
		[POLICY_POOL] = &mechanism_pool,
		[POLICY_THREAD_PER_CONNECTION] = &mechanism_thread_per_connection,
	};

	assert(id > 0 && id < COUNT_OF(mechanisms));
	return mechanisms[id];
}

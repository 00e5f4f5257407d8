/* test_s3_lease.c - contents of leases. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "s3/s3_lease.h"

#define NODE "0123456789abcdef"

static void a_lease_is_read_as_it_was_written(void **state)
{
	static const enum s3_lease_state states[] = { S3_LEASE_HELD, S3_LEASE_REMOVED,
		                                      S3_LEASE_QUARANTINED };
	char data[S3_LEASE_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(states); i++) {
		struct s3_lease lease = { .state = states[i],
			                  .node = NODE,
			                  .expires_ms = 1234567890123,
			                  .note = "2\nlake.jpg\0site\0" };
		struct s3_lease got;

		lease.note_length = sizeof "2\nlake.jpg\0site";
		memset(&got, 'x', sizeof got);
		size_t length = s3_lease_write(data, &lease);

		assert_int_equal(s3_lease_parse(&got, data, length), 0);
		assert_int_equal(got.state, states[i]);
		assert_string_equal(got.node, NODE);
		assert_int_equal(got.expires_ms, 1234567890123);
		assert_int_equal(got.note_length, lease.note_length);
		assert_memory_equal(got.note, lease.note, lease.note_length + 1);
	}
}

static void the_longest_note_fits(void **state)
{
	struct s3_lease lease = { .state = S3_LEASE_QUARANTINED,
		                  .node = NODE,
		                  .expires_ms = UINT64_MAX,
		                  .note_length = SPOOL_NOTE_MAX - 1 };
	struct s3_lease got;
	char data[S3_LEASE_MAX];

	(void)state;
	memset(lease.note, 'n', lease.note_length);
	size_t length = s3_lease_write(data, &lease);

	assert_int_equal(s3_lease_parse(&got, data, length), 0);
	assert_int_equal(got.expires_ms, UINT64_MAX);
	assert_int_equal(got.note_length, lease.note_length);
}

static void other_contents_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"\n0\n",
		"held " NODE " 1",
		"held " NODE " 1\n",
		"held " NODE " 1\n0",
		"held " NODE " \n0\na",
		"held " NODE " 1x\n0\na",
		"held " NODE " -1\n0\na",
		"held " NODE "0 1\n0\na",
		"held node 1\n0\na",
		"lost " NODE " 1\n0\na",
		"held " NODE " 1                                                          1\n0\na",
	};
	struct s3_lease lease;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (s3_lease_parse(&lease, wrong[i], strlen(wrong[i])) != -EINVAL)
			fail_msg("'%s'", wrong[i]);
}

static void keys_stand_side_by_side(void **state)
{
	char key[S3_KEY_MAX];

	(void)state;
	s3_original_key(key, "01K0000000000000000000000A");
	assert_string_equal(key, "spool/01K0000000000000000000000A");
	s3_lease_key(key, "01K0000000000000000000000A");
	assert_string_equal(key, "spool/01K0000000000000000000000A.lease");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_is_read_as_it_was_written),
		cmocka_unit_test(the_longest_note_fits),
		cmocka_unit_test(other_contents_are_refused),
		cmocka_unit_test(keys_stand_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

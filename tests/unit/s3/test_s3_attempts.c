/* test_s3_attempts.c - when an operation is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_client.c"

static struct client client;
static struct transfer transfer = { .client = &client };
static unsigned ends;

static void note_end(struct s3_op *op)
{
	ends++;
	text_fini(&op->body);
}

/* Without memory for its headers an attempt ends as soon as it has begun. */
static struct curl_slist *append_nothing(struct curl_slist *list, const char *line)
{
	(void)list, (void)line;
	return NULL;
}

static void free_nothing(struct curl_slist *list)
{
	assert_null(list);
}

static CURLMcode remove_nothing(CURLM *multi, CURL *easy)
{
	(void)multi, (void)easy;
	return CURLM_OK;
}

static int set_up(void **state)
{
	(void)state;
	curl.slist_append = append_nothing;
	curl.slist_free_all = free_nothing;
	curl.multi_remove_handle = remove_nothing;
	pthread_mutex_init(&client.lock, NULL);
	client.end = &client.first;
	client.resolver_fd = -1;
	client.transfer = &transfer;
	client.transfer_count = 1;
	client.random = random_stream(1, 1);
	return 0;
}

/* Returns an operation whose first attempt has failed. */
static struct s3_op failed_once(uint64_t end_ns)
{
	return (struct s3_op){ .verb = S3_GET,
		               .key = "a",
		               .done = note_end,
		               .err = S3_DAMAGED,
		               .attempts = 1,
		               .end_ns = end_ns };
}

/* It was planned in time, and then waited for a handle. */
static void no_repetition_begins_after_its_end(void **state)
{
	struct s3_op late = failed_once(1), in_time = failed_once(UINT64_MAX);

	(void)state;
	ends = 0;
	assert_int_equal(enqueue(&client, &late, 2), 0);
	assert_int_equal(enqueue(&client, &in_time, 2), 0);
	start_due(&client);
	assert_int_equal(ends, 2);
	assert_int_equal(late.attempts, 1);
	assert_int_equal(late.err, S3_DAMAGED);
	assert_int_equal(in_time.attempts, 2);
	assert_int_equal(counter_read(&client.shared.counters.retried), 1);
}

static void no_repetition_is_planned_after_its_end(void **state)
{
	struct s3_op late = failed_once(clock_ns() + 1), in_time = failed_once(UINT64_MAX);

	(void)state;
	ends = 0;
	try_later(&client, &late);
	assert_int_equal(ends, 1);
	try_later(&client, &in_time);
	assert_int_equal(ends, 1);
	assert_ptr_equal(client.first, &in_time);
	assert_ptr_equal(take_due(&client, UINT64_MAX, &(uint64_t){ 0 }), &in_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_repetition_begins_after_its_end),
		cmocka_unit_test(no_repetition_is_planned_after_its_end),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

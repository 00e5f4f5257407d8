/* test_store_remake.c - remake fills the daemon's queue, waits until it is empty, and counts. */
#include "support/command_harness.h"

#include "base/clock.h"
#include "base/text.h"
#include "store/remake_plan.h"
#include "store/store_progress.h"

#define ENDLESS 100000 /* calls */

/* What the fakes answer, and what they have seen. */
static struct {
	enum remake_state before[WALK_MAX], after[WALK_MAX]; /* an image was queued */
	bool is_queued[WALK_MAX];
	unsigned queued, put, leave; /* images that leave the queue in 10 ms */
	int put_error, open_status, sum_status;
	uint64_t now_ns, asked_ns[9], all;
	unsigned asks, failing_ask; /* the n-th fails */
	unsigned damaged, absent;   /* of the sum */
	unsigned sleeps, looks_at_queue, shows, last_shows, sums;
	uint64_t ended; /* of the last line of progress */
} fake;

static unsigned number_of(const char *id)
{
	unsigned n = 0;

	while (n < walk_count && strcmp(id, walk_id[n]) != 0)
		n++;
	assert_true(n < walk_count);
	return n;
}

static int fake_open(struct remake_plan *p, struct store_query *q)
{
	assert_ptr_equal(q, &query);
	*p = (struct remake_plan){ .remade = walk_count };
	snprintf(p->entry.names, sizeof p->entry.names, "small");
	dirty_stack();
	return fake.open_status;
}

static int fake_sum(struct remake_plan *p, struct store_query *q)
{
	assert_ptr_equal(q, &query);
	assert_int_equal(fake.asks, 1);
	assert_int_equal(p->remade, walk_count);
	fake.sums++;
	p->without_original = 7;
	p->damaged = fake.damaged;
	p->absent = fake.absent;
	return fake.sum_status;
}

static enum remake_state fake_look(struct remake_plan *p, struct store_query *q, const char *id,
                                   struct stored_lack *lack)
{
	unsigned n = number_of(id);

	assert_true(p && q == &query && lack);
	assert_false(fake.is_queued[n]);
	return n < fake.put ? fake.after[n] : fake.before[n];
}

static bool fake_has(struct store *s, const char *id)
{
	assert_ptr_equal(s, &query.store);
	assert_true(++fake.looks_at_queue < ENDLESS);
	return fake.is_queued[number_of(id)];
}

static int fake_put(struct store *s, const char *id, const struct remake_entry *entry)
{
	unsigned n = number_of(id);

	assert_ptr_equal(s, &query.store);
	assert_string_equal(entry->names, "small");
	assert_int_equal(n, walk_at);
	fake.is_queued[n] = true;
	fake.put = n + 1;
	assert_true(++fake.queued <= 64);
	return fake.put_error;
}

static void fake_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all };
	fake.all = all;
}

static void fake_show(struct store_progress *p, bool is_last)
{
	assert_int_equal(fake.last_shows, 0);
	fake.last_shows += is_last;
	fake.shows++;
	fake.ended = p->ended;
}

static uint64_t fake_clock(void)
{
	return fake.now_ns;
}

/* The newest images leave the queue first. */
static int fake_sleep(const struct timespec *time, struct timespec *left)
{
	assert_true(!left && time->tv_sec == 0 && time->tv_nsec == 10000000);
	assert_true(++fake.sleeps < ENDLESS);
	fake.now_ns += (uint64_t)time->tv_nsec;
	for (unsigned n = WALK_MAX, i = fake.leave; n > 0 && i > 0; n--) {
		i -= fake.is_queued[n - 1];
		fake.queued -= fake.is_queued[n - 1];
		fake.is_queued[n - 1] = false;
	}
	return 0;
}

static int fake_ask(const struct conf *conf, const char *line, struct text *answer)
{
	assert_ptr_equal(conf, query.conf);
	assert_string_equal(line, "remake");
	assert_int_equal(answer->length, 0);
	text_printf(answer, "%0999d", 0);
	assert_int_equal(answer->overflowed, false);
	fake.asked_ns[fake.asks++] = fake.now_ns;
	return fake.asks == fake.failing_ask ? -1 : 0;
}

#define remake_plan_open fake_open
#define remake_plan_sum fake_sum
#define remake_plan_look fake_look
#define remake_queue_has fake_has
#define remake_queue_put fake_put
#define store_progress_start fake_start
#define store_progress_show fake_show
#define clock_ns fake_clock
#define nanosleep fake_sleep
#include "store/store_remake.c"

#define SUMS(made, failed, gone)                                                                \
	"darkroomd store: " made " images remade, " failed " not, " gone " removed meanwhile; " \
	"7 have no original\n"
#define NO_SUMS "darkroomd store: 0 images remade, 0 not, 0 removed meanwhile; 0 have no original\n"
#define NO_ANSWER                                                                             \
	"darkroomd store: the daemon does not answer: start it; remake continues when it is " \
	"run again\n"

static struct conf conf;

static void begin(unsigned images)
{
	begin_command(images);
	query.conf = &conf;
	query.ask = fake_ask;
	memset(&fake, 0, sizeof fake);
	fake.now_ns = 100 * NS_PER_S;
	fake.leave = 1;
	for (unsigned i = 0; i < WALK_MAX; i++) {
		fake.before[i] = REMAKE_POSSIBLE;
		fake.after[i] = REMAKE_COMPLETE;
	}
}

static int setup(void **state)
{
	(void)state;
	begin(3);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

static void images_are_queued_and_awaited(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) { /* the second one counts from 0 */
		assert_int_equal(store_remake(&query), EXIT_SUCCESS);
		check_written("", SUMS("3", "0", "0"));
		assert_int_equal(fake.put, 3);
		assert_int_equal(fake.queued, 0);
		assert_int_equal(fake.sleeps, 3);
		assert_int_equal(fake.all, 3);
		assert_int_equal(fake.ended, 3);
		assert_int_equal(fake.shows, 3 + 4 + 1); /* each image, each look, the end */
		assert_int_equal(fake.last_shows, 1);
		assert_int_equal(fake.asks, 1);
		assert_int_equal(fake.sums, 1);
		close_streams();
		begin(3);
	}
}

static void only_what_can_be_remade_is_queued(void **state)
{
	(void)state;
	fake.before[0] = REMAKE_COMPLETE;
	fake.before[1] = REMAKE_IMPOSSIBLE;
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	check_written("", SUMS("1", "0", "0"));
	assert_int_equal(fake.sleeps, 1);
}

static void what_became_of_an_image_is_counted(void **state)
{
	char err[512];

	(void)state;
	fake.after[0] = REMAKE_ABSENT;
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	check_written("", SUMS("2", "0", "1"));
	close_streams();
	begin(3);
	fake.after[0] = REMAKE_POSSIBLE;
	fake.after[2] = REMAKE_DAMAGED;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	snprintf(err, sizeof err,
	         "darkroomd store: %s: not remade; the daemon's log has the cause\n"
	         "darkroomd store: %s: not remade; the daemon's log has the cause\n" SUMS("1", "2",
	                                                                                  "0"),
	         ID(2), ID(0));
	check_written("", err);
	assert_int_equal(fake.ended, 3);
}

static void an_image_that_cannot_be_read_is_a_failure(void **state)
{
	(void)state;
	fake.damaged = 1;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	check_written("", SUMS("3", "0", "0"));
	close_streams();
	begin(3);
	fake.absent = 1;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	check_written("", SUMS("3", "0", "0"));
}

static void the_queue_holds_some_at_a_time(void **state)
{
	(void)state;
	close_streams();
	begin(WALK_MAX);
	fake.leave = 3;
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	check_written("", SUMS("80", "0", "0"));
	assert_int_equal(fake.sleeps, (80 + 2) / 3);
	close_streams();
	begin(64);
	fake.leave = 64;
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	/* There is room for all: nobody waits or looks until they are in the queue. */
	assert_int_equal(fake.sleeps, 1);
	assert_int_equal(fake.looks_at_queue, 64 + 64);
}

static void the_daemon_is_called_each_second(void **state)
{
	(void)state;
	fake.leave = 0;
	fake.failing_ask = 4;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	check_written("", NO_ANSWER SUMS("0", "0", "0"));
	assert_int_equal(fake.asks, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fake.asked_ns[i], (100 + i) * NS_PER_S);
	assert_int_equal(fake.sleeps, 301);
}

static void the_command_needs_a_daemon(void **state)
{
	(void)state;
	fake.failing_ask = 1;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	check_written("", NO_ANSWER NO_SUMS);
	assert_int_equal(fake.put + fake.sums, 0);
}

static void a_dry_run_prints_the_ids(void **state)
{
	char out[128];

	(void)state;
	query.is_dry = true;
	fake.before[1] = REMAKE_IMPOSSIBLE;
	snprintf(out, sizeof out, "%s\n%s\n", ID(0), ID(2));
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	check_written(out, "");
	walk_status = WALK_FAILS;
	assert_int_equal(store_remake(&query), WALK_FAILS);
	assert_int_equal(fake.put + fake.asks + fake.sums + fake.shows, 0);
}

static void a_failure_ends_the_command(void **state)
{
	char err[256];

	(void)state;
	fake.open_status = QUERY_EXIT_USAGE;
	assert_int_equal(store_remake(&query), QUERY_EXIT_USAGE);
	check_written("", "");
	assert_int_equal(fake.asks + fake.shows, 0);
	fake.open_status = 0;
	fake.sum_status = 5;
	assert_int_equal(store_remake(&query), 5);
	check_written("", SUMS("0", "0", "0"));
	assert_int_equal(fake.put, 0);
	close_streams();
	begin(3);
	fake.put_error = -ENOSPC;
	assert_int_equal(store_remake(&query), EXIT_FAILURE);
	snprintf(err, sizeof err, "%s: error %d\n" SUMS("0", "0", "0"), ID(0), ENOSPC);
	check_written("", err);
	assert_int_equal(fake.put, 1);
	assert_int_equal(fake.sleeps, 0);
	close_streams();
	begin(3);
	walk_status = WALK_FAILS; /* without a word to those that wait */
	assert_int_equal(store_remake(&query), WALK_FAILS);
	assert_int_equal(fake.sleeps, 0);
}

static void ids_are_read_twice(void **state)
{
	(void)state;
	query.ids_path = "-";
	assert_int_equal(store_remake(&query), QUERY_EXIT_USAGE);
	check_written("", "--ids -: expected a file, which can be read twice\n");
	assert_int_equal(fake.asks, 0);
	query.ids_path = "file";
	assert_int_equal(store_remake(&query), EXIT_SUCCESS);
	check_written("", SUMS("3", "0", "0"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(images_are_queued_and_awaited),
		TEST(only_what_can_be_remade_is_queued),
		TEST(what_became_of_an_image_is_counted),
		TEST(an_image_that_cannot_be_read_is_a_failure),
		TEST(the_queue_holds_some_at_a_time),
		TEST(the_daemon_is_called_each_second),
		TEST(the_command_needs_a_daemon),
		TEST(a_dry_run_prints_the_ids),
		TEST(a_failure_ends_the_command),
		TEST(ids_are_read_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

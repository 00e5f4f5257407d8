/* test_usage.c - figures of tokens, pages of the count, days, and quotas. */
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

#include "support/stored_fixture.h"

static time_t fake_time;

static time_t time_fake(time_t *to)
{
	assert_null(to);
	return fake_time;
}

#include "store/usage.h"
#undef USAGE_PAGE_MAX
#define USAGE_PAGE_MAX 3
#define time time_fake
#include "store/usage.c"

#define TODAY (INT64_C(20415) * DAY_S)

static char root[64];
static struct store store;
static struct usage *const usage = &store.usage;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	fake_time = TODAY + 100;
	snprintf(root, sizeof root, "/tmp/darkroom-usage-XXXXXX");
	return !mkdtemp(root) || store_open(&store, root, false, &cleared) ? -1 : 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

/* Stores an image that was made at that time of TODAY. */
static const char *put_at(int64_t seconds, const char *token, size_t bytes)
{
	char id[ULID_LENGTH + 1];

	ulid_bound((uint64_t)(TODAY + seconds) * 1000, 'A', id);
	return stored_put(&store, id, token, bytes, 0);
}

static void switch_on_and_count(void)
{
	usage_switch(usage, &store, true);
	assert_int_equal(usage_count(usage, &store, 1000), 1);
}

static void check_all(uint64_t images, uint64_t bytes, bool is_complete)
{
	struct usage_total total = usage_total(usage);

	assert_int_equal(total.all.images, images);
	assert_int_equal(total.all.bytes, bytes);
	assert_int_equal(total.is_complete, is_complete);
}

static void check_token(const char *name, uint64_t images, uint64_t bytes, uint64_t uploads)
{
	const struct usage_token *of = usage_token(usage, name);

	assert_non_null(of);
	assert_string_equal(of->name, name);
	assert_int_equal(of->stored.images, images);
	assert_int_equal(of->stored.bytes, bytes);
	assert_int_equal(of->uploads, uploads);
}

/* ---- tokens ---- */

static void figures_begin_empty_and_off(void **state)
{
	struct usage u;

	(void)state;
	memset(&u, 0xff, sizeof u);
	usage_init(&u);
	struct usage_total total = usage_total(&u);

	assert_false(total.is_on || total.is_complete);
	assert_int_equal(total.all.images + total.all.bytes + u.count + u.room, 0);
	assert_null(u.token);
	assert_null(u.page);
	assert_int_equal(u.page_end[0], 0);
	usage_stored(&u, "01K0000000000000000000000A", "site", 1);
	usage_removed(&u, "01K0000000000000000000000A", "site", 1);
	assert_int_equal(u.count + u.all.images, 0);
	usage_fini(&u);
}

static void check_order(const struct usage_token *token, void *arg)
{
	char *last = arg;

	assert_true(strcmp(last, token->name) < 0);
	strcpy(last, token->name);
}

static void tokens_are_found_by_name(void **state)
{
	static const unsigned step = 3571; /* has no factor of USAGE_TOKENS_MAX */
	char name[USAGE_NAME_MAX], last[USAGE_NAME_MAX] = "";

	(void)state;
	assert_null(usage_token(usage, ""));
	for (unsigned i = 0; i < USAGE_TOKENS_MAX; i++) {
		snprintf(name, sizeof name, "%u", i * step % USAGE_TOKENS_MAX);
		struct usage_token *of = usage_token(usage, name);

		assert_non_null(of);
		assert_int_equal(of->uploads + of->stored.images + of->reserved.bytes, 0);
		of->uploads = i;
		assert_int_equal(usage->count, i + 1);
	}
	for (unsigned i = 0; i < USAGE_TOKENS_MAX; i++) {
		snprintf(name, sizeof name, "%u", i * step % USAGE_TOKENS_MAX);
		check_token(name, 0, 0, i);
	}
	assert_null(usage_token(usage, "one more"));
	assert_int_equal(usage->count, USAGE_TOKENS_MAX);
	usage->day = (uint64_t)TODAY / DAY_S;
	usage_each(usage, check_order, last);
	assert_string_equal(last, "999");
}

static void the_longest_name_is_kept_whole(void **state)
{
	char name[USAGE_NAME_MAX];

	(void)state;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_string_equal(usage_token(usage, name)->name, name);
	assert_ptr_equal(usage_token(usage, name), usage_token(usage, name));
	assert_int_equal(usage->count, 1);
}

static void figures_do_not_fall_below_zero(void **state)
{
	const char *id = "01K0000000000000000000000A";

	(void)state;
	switch_on_and_count();
	usage_stored(usage, id, "site", 10);
	usage_stored(usage, id, NULL, 5); /* without a token */
	check_all(2, 15, true);
	check_token("site", 1, 10, 0);
	usage_removed(usage, id, "", 4);
	check_all(1, 11, true);
	check_token("site", 1, 10, 0);
	usage_removed(usage, id, "site", 10);
	check_all(0, 1, true);
	check_token("site", 0, 0, 0);
	usage_removed(usage, id, "site", 10);
	check_all(0, 0, true);
	check_token("site", 0, 0, 0);
}

/* ---- the count ---- */

/* Seven images in pages of three. */
static void images_are_counted_page_by_page(void **state)
{
	static const unsigned counted[] = { 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 7 };
	char id[7][ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		strcpy(id[i], put_at(i, "site", 1));
	usage_switch(usage, &store, true);
	for (unsigned i = 0; i < COUNT_OF(counted); i++) {
		bool is_complete = i == COUNT_OF(counted) - 1;

		assert_int_equal(usage_count(usage, &store, 1), is_complete);
		check_all(counted[i], counted[i], is_complete);
		if (i != 3) /* the end of a page */
			continue;
		assert_string_equal(usage->page_end, id[2]);
		/* One that was counted, the last one included, is taken off. */
		usage_removed(usage, id[2], "site", 1);
		check_all(2, 2, false);
		usage_stored(usage, id[2], "site", 1);
		check_all(3, 3, false);
		/* One behind it is not. */
		usage_removed(usage, id[3], "site", 1);
		usage_stored(usage, id[3], "site", 1);
		check_all(3, 3, false);
	}
	assert_int_equal(usage_count(usage, &store, 5), 1);
	check_all(7, 7, true);
	check_token("site", 7, 7, 7);
	assert_null(usage->page);
	assert_int_equal(usage->page_count + usage->page_at, 0);
}

static void the_rest_of_a_page_is_not_counted_twice(void **state)
{
	char id[3][ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		strcpy(id[i], put_at(i, "site", 1));
	usage_switch(usage, &store, true);
	assert_int_equal(usage_count(usage, &store, 2), 0); /* lists and counts one */
	for (unsigned i = 0; i < 3; i++) {
		usage_removed(usage, id[i], "site", 1);
		check_all(i == 0 ? 0 : 1, i == 0 ? 0 : 1, false);
		usage_stored(usage, id[i], "site", 1);
		check_all(1, 1, false);
	}
	assert_int_equal(usage_count(usage, &store, 2), 0);
	check_all(3, 3, false);
}

static void damaged_images_are_not_counted(void **state)
{
	char path[160];

	(void)state;
	put_at(1, "site", 5);
	const char *id = put_at(2, "site", 7);

	snprintf(path, sizeof path, "%s/%.4s/%.2s/%s/image.json", root, id, id + 4, id);
	assert_int_equal(truncate(path, 10), 0);
	switch_on_and_count();
	check_all(1, 5, true);
}

static void a_root_that_is_not_a_directory_is_an_error(void **state)
{
	int root_fd = store.root_fd;

	(void)state;
	usage_switch(usage, &store, true);
	store.root_fd = -1;
	assert_int_equal(usage_count(usage, &store, 9), -EBADF);
	store.root_fd = root_fd;
	assert_int_equal(usage_count(usage, &store, 9), 1);
}

/* Only images of the day that were there before the count began: later ones reserve their place. */
static void uploads_of_the_day_are_counted(void **state)
{
	char late[ULID_LENGTH + 1];

	(void)state;
	put_at(-1, "site", 1);
	put_at(0, "site", 1);
	put_at(DAY_S - 1, "site", 1);
	put_at(DAY_S, "site", 1);
	put_at(1, "", 1);
	usage_switch(usage, &store, true);
	assert_true(ulid_is_valid(usage->since, ULID_LENGTH));
	ulid_bound((uint64_t)(TODAY + DAY_S) * 1000, 'Z', usage->since);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_token("site", 4, 4, 2);
	usage_switch(usage, &store, false);
	strcpy(late, put_at(50, "site", 1));
	usage_switch(usage, &store, true);
	strcpy(usage->since, late);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_token("site", 5, 5, 1);
	check_all(6, 6, true);
}

static void nothing_each(const struct usage_token *token, void *arg)
{
	(void)token;
	(void)arg;
}

static void a_day_ends_at_midnight(void **state)
{
	const struct usage_limits limits = { .uploads = 2 };
	uint64_t used;

	(void)state;
	switch_on_and_count();
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(
				usage_reserve(usage, i ? "a" : "b", &limits, 1, 1, &used), 0);
	fake_time = TODAY + DAY_S - 1;
	assert_int_equal(usage_day_left(), 1);
	usage_each(usage, nothing_each, NULL);
	check_token("a", 0, 0, 2);
	check_token("b", 0, 0, 2);
	fake_time++;
	assert_int_equal(usage_day_left(), DAY_S);
	usage_each(usage, nothing_each, NULL);
	check_token("a", 0, 0, 0);
	check_token("b", 0, 0, 0);
	assert_int_equal(usage_reserve(usage, "a", &limits, 1, 1, &used), 0);
	fake_time += DAY_S;
	assert_int_equal(usage_count(usage, &store, 1), 1);
	check_token("a", 0, 0, 0);
}

/* ---- on and off ---- */

static bool has_file(const char *name)
{
	return faccessat(store.root_fd, name, F_OK, 0) == 0;
}

static void figures_are_saved_when_they_are_complete(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	usage_save(usage, &store);
	assert_false(has_file(USAGE_FILE));
	usage_switch(usage, &store, true);
	usage_save(usage, &store);
	assert_false(has_file(USAGE_FILE));
	assert_int_equal(usage_count(usage, &store, 100), 1);
	usage_save(usage, &store);
	assert_true(has_file(USAGE_FILE));
	usage_switch(usage, &store, true); /* is on already: the file is not read */
	assert_true(has_file(USAGE_FILE));
	check_all(1, 9, true);
	usage_switch(usage, &store, false);
	assert_false(has_file(USAGE_FILE));
	check_all(0, 0, false);
	assert_false(usage_total(usage).is_on);
	assert_int_equal(usage->count + usage->room, 0);
	assert_string_equal(usage->page_end, "");
	assert_null(usage->token);
	usage_switch(usage, &store, false);
	assert_false(usage_total(usage).is_on);
}

static void saved_figures_need_no_count(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	switch_on_and_count();
	usage_save(usage, &store);
	forget(usage);
	usage->is_on = false;
	usage_switch(usage, &store, true);
	check_all(1, 9, true);
	assert_string_equal(usage->page_end, LAST_ID);
	assert_int_equal(usage_count(usage, &store, 1), 1);
	const char *id = put_at(2, "site", 3); /* is counted at once */

	check_all(2, 12, true);
	usage_removed(usage, id, "site", 3);
	check_all(1, 9, true);
}

static void another_process_makes_it_count_again(void **state)
{
	(void)state;
	usage_check_recount(usage, &store);
	put_at(1, "site", 9);
	put_at(2, "other", 1);
	switch_on_and_count();
	usage_check_recount(usage, &store);
	check_all(2, 10, true);
	usage_demand_recount(&store);
	assert_true(has_file(USAGE_RECOUNT_FILE));
	usage_check_recount(usage, &store);
	assert_false(has_file(USAGE_RECOUNT_FILE));
	check_all(0, 0, false);
	check_token("site", 0, 0, 1); /* the day's uploads are known */
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_all(2, 10, true);
	check_token("site", 1, 9, 1);
	check_token("other", 1, 1, 1);
	/* Within a page. */
	usage_demand_recount(&store);
	usage_check_recount(usage, &store);
	assert_int_equal(usage_count(usage, &store, 2), 0);
	check_all(1, 9, false);
	usage_demand_recount(&store);
	usage_check_recount(usage, &store);
	check_all(0, 0, false);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_all(2, 10, true);
}

static void a_root_that_was_made_again_is_counted(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	switch_on_and_count();
	atomic_fetch_add(&store.openings, 1);
	usage_check_recount(usage, &store);
	check_all(0, 0, false);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	usage_check_recount(usage, &store);
	check_all(1, 9, true);
	/* Not while figures are off, nor for what happened then. */
	usage_switch(usage, &store, false);
	atomic_fetch_add(&store.openings, 1);
	usage_check_recount(usage, &store);
	switch_on_and_count();
	usage_check_recount(usage, &store);
	check_all(1, 9, true);
}

/* ---- quotas ---- */

static void each_quota_has_its_limit(void **state)
{
	static const struct {
		struct usage_limits limits;
		enum usage_verdict verdict;
		uint64_t used;
	} cases[] = {
		{ { 0, 0, 0 }, USAGE_GRANTED, 0 },    { { 6, 0, 0 }, USAGE_GRANTED, 0 },
		{ { 5, 0, 0 }, USAGE_IMAGES, 4 },     { { 0, 60, 0 }, USAGE_GRANTED, 0 },
		{ { 0, 59, 0 }, USAGE_BYTES, 40 },    { { 0, 0, 5 }, USAGE_GRANTED, 0 },
		{ { 0, 0, 4 }, USAGE_UPLOADS, 3 },    { { 5, 59, 4 }, USAGE_IMAGES, 4 },
		{ { 6, 59, 4 }, USAGE_BYTES, 40 },    { { 6, 60, 4 }, USAGE_UPLOADS, 3 },
		{ { 6, 60, 5 }, USAGE_GRANTED, 0 },
	};
	const struct usage_limits none = { .images = 0 };

	(void)state;
	usage_switch(usage, &store, true);
	assert_int_equal(usage_reserve(usage, "", &none, 1, 1, NULL), USAGE_GRANTED);
	assert_int_equal(usage->count, 0);
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		struct usage_token *of = usage_token(usage, "site");
		uint64_t used = 0;

		*of = (struct usage_token){ .name = "site",
			                    .stored = { 3, 30 },
			                    .reserved = { 1, 10 },
			                    .uploads = 3 };
		assert_int_equal(usage_reserve(usage, "site", &cases[i].limits, 2, 20, &used),
		                 cases[i].verdict);
		assert_int_equal(used, cases[i].used);
		bool is_granted = cases[i].verdict == USAGE_GRANTED;

		assert_int_equal(of->reserved.images, is_granted ? 3 : 1);
		assert_int_equal(of->reserved.bytes, is_granted ? 30 : 10);
		assert_int_equal(of->uploads, is_granted ? 5 : 3);
	}
	struct usage_token *of = usage_token(usage, "site");

	usage_release(usage, "", 1, 1, 1);
	usage_release(usage, "site", 1, 10, 2);
	assert_int_equal(of->reserved.images, 2);
	assert_int_equal(of->reserved.bytes, 20);
	assert_int_equal(of->uploads, 3);
	usage_release(usage, "site", 9, 99, 9);
	assert_int_equal(of->reserved.images + of->reserved.bytes + of->uploads, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(figures_begin_empty_and_off),
		TEST(tokens_are_found_by_name),
		TEST(the_longest_name_is_kept_whole),
		TEST(figures_do_not_fall_below_zero),
		TEST(images_are_counted_page_by_page),
		TEST(the_rest_of_a_page_is_not_counted_twice),
		TEST(damaged_images_are_not_counted),
		TEST(a_root_that_is_not_a_directory_is_an_error),
		TEST(uploads_of_the_day_are_counted),
		TEST(a_day_ends_at_midnight),
		TEST(figures_are_saved_when_they_are_complete),
		TEST(saved_figures_need_no_count),
		TEST(another_process_makes_it_count_again),
		TEST(a_root_that_was_made_again_is_counted),
		TEST(each_quota_has_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

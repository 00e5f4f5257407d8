/* test_usage_tokens.c - figures of tokens, days, and quotas. */
#include "support/usage_harness.h"

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

static unsigned seen; /* tokens */

static void check_order(const struct usage_token *token, void *arg)
{
	char *last = arg;

	assert_true(strcmp(last, token->name) < 0);
	strcpy(last, token->name);
	seen++;
}

static void tokens_are_found_by_name(void **state)
{
	static const unsigned step = 3571; /* has no factor of USAGE_TOKENS_MAX */
	char name[USAGE_NAME_MAX], last[USAGE_NAME_MAX] = "";

	(void)state;
	assert_null(find_token(usage, ""));
	for (unsigned i = 0; i < USAGE_TOKENS_MAX; i++) {
		snprintf(name, sizeof name, "%u", i * step % USAGE_TOKENS_MAX);
		struct usage_token *of = find_token(usage, name);

		assert_non_null(of);
		assert_int_equal(of->uploads + of->stored.images + of->reserved.bytes, 0);
		of->uploads = i + 1;
		assert_int_equal(usage->count, i + 1);
	}
	for (unsigned i = 0; i < USAGE_TOKENS_MAX; i++) {
		snprintf(name, sizeof name, "%u", i * step % USAGE_TOKENS_MAX);
		check_token(name, 0, 0, i + 1);
	}
	assert_null(find_token(usage, "one more"));
	assert_int_equal(usage->count, USAGE_TOKENS_MAX);
	usage->day = (uint64_t)TODAY / USAGE_DAY_S;
	seen = 0;
	usage_each(usage, check_order, last);
	assert_int_equal(seen, USAGE_TOKENS_MAX);
	assert_string_equal(last, "999");
}

static void a_name_without_figures_makes_room(void **state)
{
	const struct token_quota limits = { .images = 1 };
	char name[USAGE_NAME_MAX];
	uint64_t used;

	(void)state;
	for (unsigned i = 0; i < USAGE_TOKENS_MAX; i++) {
		snprintf(name, sizeof name, "%u", i);
		find_token(usage, name)->stored.images = i != 7;
	}
	assert_int_equal(usage_reserve(usage, "new", &limits, 1, 1, &used), USAGE_GRANTED);
	assert_int_equal(usage_reserve(usage, "new", &limits, 1, 1, &used), USAGE_IMAGES);
	assert_int_equal(usage->count, USAGE_TOKENS_MAX);
	check_token("8", 1, 0, 0);
	assert_null(find_token(usage, "7"));
}

static void the_longest_name_is_kept_whole(void **state)
{
	char name[USAGE_NAME_MAX];

	(void)state;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_string_equal(find_token(usage, name)->name, name);
	assert_ptr_equal(find_token(usage, name), find_token(usage, name));
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

static void nothing_each(const struct usage_token *token, void *arg)
{
	(void)token;
	(void)arg;
}

static void a_day_ends_at_midnight(void **state)
{
	const struct token_quota limits = { .uploads = 2 };
	uint64_t used;

	(void)state;
	switch_on_and_count();
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(usage_reserve(usage, i ? "a" : "b", &limits, 1, 1, &used),
			                 0);
	fake_time = TODAY + USAGE_DAY_S - 1;
	assert_int_equal(usage_day_left(), 1);
	usage_each(usage, nothing_each, NULL);
	check_token("a", 0, 0, 2);
	check_token("b", 0, 0, 2);
	fake_time++;
	assert_int_equal(usage_day_left(), USAGE_DAY_S);
	usage_each(usage, nothing_each, NULL);
	check_token("a", 0, 0, 0);
	check_token("b", 0, 0, 0);
	assert_int_equal(usage_reserve(usage, "a", &limits, 1, 1, &used), 0);
	assert_int_equal(usage_reserve(usage, "a", &limits, 1, 1, &used), 0);
	fake_time += USAGE_DAY_S; /* the next reservation sees it */
	assert_int_equal(usage_reserve(usage, "a", &limits, 2, 1, &used), 0);
	check_token("a", 0, 0, 2);
	fake_time += USAGE_DAY_S;
	assert_int_equal(usage_count(usage, &store, 1), 1);
	check_token("a", 0, 0, 0);
}

/* ---- quotas ---- */

static void each_quota_has_its_limit(void **state)
{
	static const struct {
		struct token_quota limits;
		enum usage_verdict verdict;
		uint64_t used;
	} cases[] = {
		{ { 0, 0, 0 }, USAGE_GRANTED, 0 },  { { 6, 0, 0 }, USAGE_GRANTED, 0 },
		{ { 5, 0, 0 }, USAGE_IMAGES, 4 },   { { 0, 60, 0 }, USAGE_GRANTED, 0 },
		{ { 0, 59, 0 }, USAGE_BYTES, 40 },  { { 0, 0, 5 }, USAGE_GRANTED, 0 },
		{ { 0, 0, 4 }, USAGE_UPLOADS, 3 },  { { 5, 59, 4 }, USAGE_IMAGES, 4 },
		{ { 6, 59, 4 }, USAGE_BYTES, 40 },  { { 6, 60, 4 }, USAGE_UPLOADS, 3 },
		{ { 6, 60, 5 }, USAGE_GRANTED, 0 },
	};
	const struct token_quota none = { .images = 0 };

	(void)state;
	usage_switch(usage, &store, true);
	assert_int_equal(usage_reserve(usage, "", &none, 1, 1, NULL), USAGE_GRANTED);
	assert_int_equal(usage->count, 0);
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		struct usage_token *of = find_token(usage, "site");
		uint64_t used = 0;

		*of = (struct usage_token){
			.name = "site", .stored = { 3, 30 }, .reserved = { 1, 10 }, .uploads = 3
		};
		assert_int_equal(usage_reserve(usage, "site", &cases[i].limits, 2, 20, &used),
		                 cases[i].verdict);
		assert_int_equal(used, cases[i].used);
		bool is_granted = cases[i].verdict == USAGE_GRANTED;

		assert_int_equal(of->reserved.images, is_granted ? 3 : 1);
		assert_int_equal(of->reserved.bytes, is_granted ? 30 : 10);
		assert_int_equal(of->uploads, is_granted ? 5 : 3);
	}
	struct usage_token *of = find_token(usage, "site");

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
		TEST(a_day_ends_at_midnight),
		TEST(each_quota_has_its_limit),
		TEST(a_name_without_figures_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

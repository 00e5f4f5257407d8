/* test_store_progress.c - the line of progress: its text, its pace, and where it is written. */
#include "support/text_streams.h"

#include <stdbool.h>

#include "base/clock.h"

static uint64_t now_ns = NS_PER_S;
static int terminal = 1; /* isatty() of it */

static uint64_t fake_clock(void)
{
	return now_ns;
}

static int fake_isatty(int fd)
{
	assert_int_equal(fd, 2);
	return terminal;
}

#define clock_ns fake_clock
#define isatty fake_isatty
#include "store/store_progress.c"

static struct store_progress progress;

static int setup(void **state)
{
	(void)state;
	open_streams();
	now_ns = 5 * NS_PER_S;
	terminal = 1;
	memset(&progress, 0xff, sizeof progress);
	store_progress_start(&progress, 1000);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

static void a_start_has_no_images(void **state)
{
	(void)state;
	assert_int_equal(progress.all, 1000);
	assert_int_equal(progress.ended + progress.shown_ns, 0);
	assert_int_equal(progress.start_ns, now_ns);
}

static void the_line_has_rate_and_time_left(void **state)
{
	(void)state;
	store_progress_show(&progress, false); /* no time has passed */
	check_written("", "\r0 of 1000 images, 0 in a second, 0 min 00 s left  ");
	now_ns += 2 * NS_PER_S;
	progress.ended = 8; /* 4 in a second: 992 in 248 s */
	store_progress_show(&progress, false);
	check_written("", "\r8 of 1000 images, 4 in a second, 4 min 08 s left  ");
	now_ns += 498 * NS_PER_S;
	progress.ended = 1000;
	store_progress_show(&progress, true);
	check_written("", "\r1000 of 1000 images, 2 in a second, 0 min 00 s left  \n");
	progress.ended = 1001; /* more came than were counted */
	store_progress_show(&progress, true);
	check_written("", "\r1001 of 1000 images, 2 in a second, 0 min 00 s left  \n");
}

static void minutes_are_whole(void **state)
{
	(void)state;
	store_progress_start(&progress, 8 + 4 * 7199);
	now_ns += 2 * NS_PER_S;
	progress.ended = 8;
	store_progress_show(&progress, true);
	check_written("", "\r8 of 28804 images, 4 in a second, 119 min 59 s left  \n");
	store_progress_start(&progress, 3); /* slower than one in a second */
	now_ns += 4 * NS_PER_S;
	progress.ended = 2;
	store_progress_show(&progress, true);
	check_written("", "\r2 of 3 images, 0 in a second, 0 min 02 s left  \n");
}

static void an_unknown_number_is_not_shown(void **state)
{
	(void)state;
	store_progress_start(&progress, 0);
	now_ns += NS_PER_S;
	progress.ended = 7;
	store_progress_show(&progress, false);
	check_written("", "\r7 images, 7 in a second  ");
}

static void the_line_is_written_once_a_second(void **state)
{
	(void)state;
	store_progress_show(&progress, false);
	check_written("", "\r0 of 1000 images, 0 in a second, 0 min 00 s left  ");
	now_ns += NS_PER_S - 1;
	store_progress_show(&progress, false);
	check_written("", "");
	store_progress_show(&progress, true); /* the last one in any case */
	check_written("", "\r0 of 1000 images, 0 in a second, 0 min 00 s left  \n");
	now_ns += NS_PER_S;
	store_progress_show(&progress, false);
	check_written("", "\r0 of 1000 images, 0 in a second, 0 min 00 s left  ");
}

static void only_a_terminal_gets_the_line(void **state)
{
	(void)state;
	terminal = 0;
	store_progress_show(&progress, false);
	store_progress_show(&progress, true);
	check_written("", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_start_has_no_images),
		TEST(the_line_has_rate_and_time_left),
		TEST(minutes_are_whole),
		TEST(an_unknown_number_is_not_shown),
		TEST(the_line_is_written_once_a_second),
		TEST(only_a_terminal_gets_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

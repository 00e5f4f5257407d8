/* test_audit_report.c - problems that are printed and counted, the pace, and what is kept of the
 * progress. */
#include "support/store_faults.h"
#include "support/text_streams.h"

#include <time.h>

#include "store/directory.h"
#include "store/store_find.h"
#include "store/store_query.h"
#include "store/store_strays.h"

#define ID "01K0000000000000000000000A"
#define LINE(images, files, bytes, problems)                             \
	"darkroomd store: " images " images, " files " files and " bytes \
	" bytes checked; " problems " problems\n"

static unsigned sleeps, strays, usage_reports;
static struct timespec slept;
static bool has_directory;

static int fake_nanosleep(const struct timespec *time, struct timespec *left)
{
	assert_null(left);
	assert_in_range(time->tv_nsec, 0, NS_PER_S - 1);
	sleeps++;
	slept = *time;
	fake_now += (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
	return 0;
}

static int fake_open_directory(struct store *s, const char *id)
{
	assert_non_null(s);
	assert_string_equal(id, ID);
	return has_directory ? openat(s->root_fd, "image", O_RDONLY | O_DIRECTORY) : -ENOENT;
}

static uint64_t fake_strays(int root_fd)
{
	assert_true(root_fd >= 0);
	return strays;
}

static int fake_usage(const char *format, ...)
{
	assert_non_null(strstr(format, "check: --token and --newest"));
	usage_reports++;
	return QUERY_EXIT_USAGE;
}

#define nanosleep fake_nanosleep
#define store_open_directory fake_open_directory
#define store_strays fake_strays
#define store_query_usage fake_usage
#include "store/audit_report.c"

static struct audit_report report;
static struct store_query query;
static unsigned descriptors;

static int open_in_root(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", test_root, name);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int setup(void **state)
{
	(void)state;
	no_fault();
	open_streams();
	fake_now = 100 * NS_PER_S;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-audit-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	shell("mkdir image quarantine");
	memset(&report, 0, sizeof report);
	query = (struct store_query){ .limit = UINT64_MAX };
	query.store.root_fd = open_in_root(".");
	query.store.quarantine_fd = open_in_root("quarantine");
	sleeps = strays = usage_reports = 0;
	has_directory = true;
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(query.store.root_fd);
	close(query.store.quarantine_fd);
	remove_test_root();
	close_streams();
	return 0;
}

static void all_images_are_checked_from_the_first(void **state)
{
	(void)state;
	assert_int_equal(audit_report_start(&report, &query), 0);
	assert_true(report.is_whole);
	assert_int_equal(report.rate, 32 << 20);
	assert_int_equal(report.start_ns, 100 * NS_PER_S);
	assert_int_equal(report.saved_ns, 100 * NS_PER_S);
	assert_string_equal(query.after, "");
	query.rate = 5;
	assert_int_equal(audit_report_start(&report, &query), 0);
	assert_int_equal(report.rate, 5);
	check_written("", "");
}

static void tokens_and_orders_select_nothing(void **state)
{
	(void)state;
	query.token = "camera";
	assert_int_equal(audit_report_start(&report, &query), QUERY_EXIT_USAGE);
	query.token = NULL;
	query.is_newest_first = true;
	assert_int_equal(audit_report_start(&report, &query), QUERY_EXIT_USAGE);
	assert_int_equal(usage_reports, 2);
}

/* Returns whether the check goes on behind an image. */
static bool continues(void)
{
	query.after[0] = '\0';
	assert_int_equal(audit_report_start(&report, &query), 0);
	assert_int_equal(open_descriptors(), descriptors);
	assert_true(!query.after[0] || strcmp(query.after, ID) == 0);
	check_written("", query.after[0] ? "darkroomd store: continuing behind " ID "\n" : "");
	return query.after[0];
}

static void a_check_continues_behind_the_last_image(void **state)
{
	(void)state;
	assert_false(continues());
	shell("printf " ID " >.check");
	assert_true(continues());
	query.restarts = true;
	assert_false(continues());
	assert_true(report.is_whole);
	query.restarts = false;
	fail_call(CALL_READ, 1, EIO);
	assert_false(continues());
	no_fault();
	shell("printf 01K0000000 >.check");
	assert_false(continues());
	shell("printf 01K0000000000000000000000! >.check");
	assert_false(continues());
	shell("printf " ID " >other && ln -sf other .check");
	assert_false(continues());
}

static void a_part_of_the_store_has_no_progress(void **state)
{
	static char ids_path[] = "ids";
	const struct store_query whole = query;

	(void)state;
	shell("printf " ID " >.check");
	for (unsigned i = 0; i < 5; i++) {
		query = whole;
		query.word_count = i == 0;
		query.ids_path = i == 1 ? ids_path : NULL;
		snprintf(query.before, sizeof query.before, "%s", i == 2 ? "0" : "");
		snprintf(query.after, sizeof query.after, "%s", i == 3 ? "0" : "");
		query.limit = i == 4 ? UINT64_MAX - 1 : UINT64_MAX;
		assert_int_equal(audit_report_start(&report, &query), 0);
		assert_false(report.is_whole);
		assert_string_not_equal(query.after, ID);
		fake_now += 10 * NS_PER_S;
		audit_report_begin(&report, "01K0000000000000000000000C");
		assert_int_equal(audit_report_end(&report, &query, true), 0);
		assert_int_equal(audit_report_finish(&report, &query, AUDIT_INTERRUPTED), 0);
		strays = 1;
		assert_int_equal(audit_report_finish(&report, &query, 0), EXIT_SUCCESS);
	}
	shell("test $(cat .check) = " ID);
}

static void an_image_begins_without_problems(void **state)
{
	(void)state;
	audit_report_problem(&report, "a", "rotten");
	audit_report_begin(&report, ID);
	assert_string_equal(report.id, ID);
	assert_int_equal(report.problem_count, 0);
	audit_report_begin(&report, ID);
	assert_int_equal(report.images, 2);
}

static void files_are_read_at_the_pace(void **state)
{
	(void)state;
	query.rate = 1000;
	fake_now += NS_PER_S / 10;
	assert_int_equal(audit_report_start(&report, &query), 0);
	audit_report_file(&report, 1500);
	assert_int_equal(slept.tv_sec, 1);
	assert_int_equal(slept.tv_nsec, NS_PER_S / 2);
	audit_report_file(&report, 250);
	assert_int_equal(slept.tv_sec, 0);
	assert_int_equal(slept.tv_nsec, NS_PER_S / 4);
	assert_int_equal(sleeps, 2);
	audit_report_file(&report, 0); /* it is due now */
	fake_now += 10 * NS_PER_S;
	audit_report_file(&report, 250);
	assert_int_equal(sleeps, 2);
	assert_int_equal(report.files, 4);
	assert_int_equal(report.bytes, 2000);
}

static void problems_of_an_image_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < AUDIT_PROBLEMS_MAX + 2; i++)
		audit_report_problem(&report, i == 1 ? "b.jpg" : "a.jpg", "rotten");
	assert_int_equal(report.problem_count, AUDIT_PROBLEMS_MAX);
	assert_string_equal(report.problem[0].file, "a.jpg");
	assert_string_equal(report.problem[1].file, "b.jpg");
	assert_string_equal(report.problem[AUDIT_PROBLEMS_MAX - 1].kind, "rotten");
}

static void begin_with_problems(void)
{
	audit_report_begin(&report, ID);
	audit_report_problem(&report, "", "missing");
	audit_report_problem(&report, "a.jpg", "rotten");
	audit_report_problem(&report, "b.jpg", "missing");
}

static void problems_are_printed(void **state)
{
	(void)state;
	begin_with_problems();
	assert_int_equal(audit_report_end(&report, &query, false), 0); /* removed meanwhile */
	assert_int_equal(report.problems, 0);
	check_written("", "");
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	assert_int_equal(report.problems, 3);
	check_written(ID ": missing\n" ID "/a.jpg: rotten\n" ID "/b.jpg: missing\n", "");
	query.is_json = true;
	report.problem_count = 2;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	check_written("{\"id\":\"" ID "\",\"file\":\"\",\"problem\":\"missing\","
	              "\"quarantined\":false}\n"
	              "{\"id\":\"" ID "\",\"file\":\"a.jpg\",\"problem\":\"rotten\","
	              "\"quarantined\":false}\n",
	              "");
	assert_false(exists("quarantine/" ID));
}

static void damaged_files_are_moved_away(void **state)
{
	(void)state;
	query.repairs = true;
	shell("touch image/x image/a.jpg image/b.jpg");
	audit_report_begin(&report, ID);
	audit_report_problem(&report, "x", "stray");
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	check_written(ID "/x: stray, now in .quarantine\n", "");
	begin_with_problems();
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	check_written(ID ": missing\n" ID "/a.jpg: rotten, now in .quarantine\n" ID
	                 "/b.jpg: missing\n",
	              "");
	assert_true(exists("quarantine/" ID "/a.jpg") && !exists("image/a.jpg"));
	assert_true(exists("image/b.jpg"));
	query.is_json = true;
	shell("touch image/a.jpg");
	begin_with_problems();
	report.problem[0] = report.problem[1];
	report.problem_count = 1;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	check_written("{\"id\":\"" ID "\",\"file\":\"a.jpg\",\"problem\":\"rotten\","
	              "\"quarantined\":true}\n",
	              "");
}

static void a_file_that_cannot_be_moved_stays(void **state)
{
	(void)state;
	shell("touch image/a.jpg");
	has_directory = false;
	assert_false(quarantine(&query, ID, "a.jpg"));
	has_directory = true;
	fail_call(CALL_RENAMEAT, 1, EXDEV);
	assert_false(quarantine(&query, ID, "a.jpg"));
	no_fault();
	shell("rmdir quarantine/" ID " && touch quarantine/" ID);
	assert_false(quarantine(&query, ID, "a.jpg"));
	assert_true(exists("image/a.jpg"));
}

static void the_progress_is_saved_every_five_seconds(void **state)
{
	(void)state;
	assert_int_equal(audit_report_start(&report, &query), 0);
	audit_report_begin(&report, ID);
	fake_now += 5 * NS_PER_S - 1;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	assert_false(exists(".check"));
	fake_now++;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	assert_int_equal(report.saved_ns, fake_now);
	shell("test $(cat .check) = " ID " && test ! -e .check.new && rm .check");
	fake_now++;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	assert_false(exists(".check"));
}

static void progress_that_is_not_written_is_not_kept(void **state)
{
	(void)state;
	assert_int_equal(audit_report_start(&report, &query), 0);
	audit_report_begin(&report, ID);
	fail_call(CALL_OPENAT, 1, ENOSPC);
	fake_now += 5 * NS_PER_S;
	assert_int_equal(audit_report_end(&report, &query, true), 0);
	assert_int_equal(report.saved_ns, fake_now); /* it does not try again at once */
	assert_int_equal(calls[CALL_WRITE] + calls[CALL_RENAMEAT], 0);
	no_fault();
	write_most = 5;
	save(&report, &query);
	assert_true(exists(".check.new") && !exists(".check"));
}

static void the_end_of_a_check_is_reported(void **state)
{
	(void)state;
	assert_int_equal(audit_report_start(&report, &query), 0);
	assert_int_equal(audit_report_finish(&report, &query, 1), 1);
	check_written("", "");
	shell("printf " ID " >.check");
	audit_report_begin(&report, ID);
	audit_report_file(&report, 0);
	assert_int_equal(audit_report_finish(&report, &query, 0), EXIT_SUCCESS);
	check_written("", LINE("1", "1", "0", "0"));
	assert_false(exists(".check"));
	strays = 2;
	report.bytes = 12;
	report.problems = 1;
	report.unverified = 3;
	assert_int_equal(audit_report_finish(&report, &query, 0), EXIT_FAILURE);
	check_written("", LINE("1", "1", "12", "3") "darkroomd store: 3 files have no checksum: an "
	                                            "earlier version stored them\n");
}

static void an_interrupted_check_keeps_its_progress(void **state)
{
	(void)state;
	strays = 2;
	assert_int_equal(audit_report_start(&report, &query), 0);
	audit_report_begin(&report, ID);
	assert_int_equal(audit_report_finish(&report, &query, AUDIT_INTERRUPTED), EXIT_SUCCESS);
	check_written("", "darkroomd store: interrupted: 1 images, 0 files and 0 bytes checked; 0 "
	                  "problems\n");
	shell("test $(cat .check) = " ID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_images_are_checked_from_the_first),
		TEST(tokens_and_orders_select_nothing),
		TEST(a_check_continues_behind_the_last_image),
		TEST(a_part_of_the_store_has_no_progress),
		TEST(an_image_begins_without_problems),
		TEST(files_are_read_at_the_pace),
		TEST(problems_of_an_image_are_bounded),
		TEST(problems_are_printed),
		TEST(damaged_files_are_moved_away),
		TEST(a_file_that_cannot_be_moved_stays),
		TEST(the_progress_is_saved_every_five_seconds),
		TEST(progress_that_is_not_written_is_not_kept),
		TEST(the_end_of_a_check_is_reported),
		TEST(an_interrupted_check_keeps_its_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

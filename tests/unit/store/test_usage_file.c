/* test_usage_file.c - the file of figures: its text, and system calls that fail. */
#include "support/store_faults.h"

static bool fails_fdopen, fails_fsync, fails_fflush, fails_fclose;
static unsigned syncs;

static FILE *fault_fdopen(int fd, const char *mode)
{
	if (!fails_fdopen)
		return fdopen(fd, mode);
	errno = ENOMEM;
	return NULL;
}

static int fault_fsync(int fd)
{
	assert_true(fcntl(fd, F_GETFD) >= 0);
	syncs++;
	return fails_fsync ? -1 : 0;
}

static int fault_fflush(FILE *f)
{
	int result = fflush(f);

	return fails_fflush ? -1 : result;
}

static int fault_fclose(FILE *f)
{
	int result = fclose(f);

	return fails_fclose ? -1 : result;
}

static FILE *messages; /* of the program */
static char *said;
static size_t said_size;

#undef stderr
#define stderr messages
#define fdopen fault_fdopen
#define fsync fault_fsync
#define fflush fault_fflush
#define fclose fault_fclose
#include "store/usage_file.c"
#undef fclose

#define TODAY 20415

static struct usage usage;
static int root_fd;
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	fails_fdopen = fails_fsync = fails_fflush = fails_fclose = false;
	syncs = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-usage-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	messages = open_memstream(&said, &said_size);
	usage_init(&usage);
	usage.day = TODAY;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	usage_fini(&usage);
	close(root_fd);
	assert_int_equal(fclose(messages), 0);
	free(said);
	remove_test_root();
	return 0;
}

static void write_text(const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/" USAGE_FILE, test_root);
	FILE *f = fopen(path, "w");

	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_text(const char *text)
{
	char path[128], data[1024] = "";

	snprintf(path, sizeof path, "%s/" USAGE_FILE, test_root);
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	data[fread(data, 1, sizeof data - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(data, text);
}

static void check_token(const char *name, uint64_t images, uint64_t bytes, uint64_t uploads)
{
	unsigned count = usage.count;
	const struct usage_token *of = usage_token(&usage, name);

	assert_int_equal(usage.count, count); /* it was there */
	assert_int_equal(of->stored.images, images);
	assert_int_equal(of->stored.bytes, bytes);
	assert_int_equal(of->uploads, uploads);
}

#define LONG_NAME "n23456789012345678901234567890123456789012345678901234567890123"
#define TEXT                                   \
	"darkroom-usage 1 20415\n12 345 0 =\n" \
	"1 2 3 =" LONG_NAME "\n"               \
	"18446744073709551615 18446744073709551614 18446744073709551613 =site\n"

static void what_was_written_is_read(void **state)
{
	(void)state;
	usage.all = (struct usage_sum){ 12, 345 };
	struct usage_token *of = usage_token(&usage, LONG_NAME);

	of->stored = (struct usage_sum){ 1, 2 };
	of->reserved = (struct usage_sum){ 8, 9 };
	of->uploads = 3;
	of = usage_token(&usage, "site");
	of->stored = (struct usage_sum){ UINT64_MAX, UINT64_MAX - 1 };
	of->uploads = UINT64_MAX - 2;
	usage_file_write(&usage, root_fd);
	assert_int_equal(syncs, 1);
	check_text(TEXT);
	assert_false(exists(TEMPORARY));

	usage.count = 0;
	usage.all = (struct usage_sum){ 0 };
	assert_true(usage_file_read(&usage, root_fd));
	assert_int_equal(syncs, 2);
	assert_false(exists(USAGE_FILE));
	assert_int_equal(usage.all.images, 12);
	assert_int_equal(usage.all.bytes, 345);
	assert_int_equal(usage.count, 2);
	check_token(LONG_NAME, 1, 2, 3);
	check_token("site", UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2);
}

static void a_short_file_is_whole(void **state)
{
	(void)state;
	write_text("darkroom-usage 1 20415\n1 2 0 =\n");
	assert_true(usage_file_read(&usage, root_fd));
	assert_int_equal(usage.all.images, 1);
	assert_int_equal(usage.all.bytes, 2);
	assert_int_equal(usage.count, 0);
}

static void a_name_may_have_one_byte(void **state)
{
	(void)state;
	write_text("darkroom-usage 1 20415\n10 20 0 =\n1 2 3 =s\n");
	assert_true(usage_file_read(&usage, root_fd));
	assert_int_equal(usage.all.images, 10);
	assert_int_equal(usage.all.bytes, 20);
	check_token("s", 1, 2, 3);
}

static void uploads_of_another_day_are_forgotten(void **state)
{
	(void)state;
	write_text("darkroom-usage 1 20414\n1 2 0 =\n1 2 3 =site\n");
	assert_true(usage_file_read(&usage, root_fd));
	check_token("site", 1, 2, 0);
}

static void check_unread(void)
{
	assert_false(usage_file_read(&usage, root_fd));
	assert_int_equal(usage.count + usage.all.images + usage.all.bytes, 0);
	assert_int_equal(open_descriptors(), descriptors);
}

static void a_damaged_file_is_not_read(void **state)
{
	static const char *const texts[] = {
		"darkroom-usage 2 20415\n1 2 0 =\n",
		"darkroom-usage 1 \n1 2 0 =\n",
		"darkroom-usage 1 20415\n1 2 0 =\n1 2 x =site\n",
		"darkroom-usage 1 20415\n1 2 0 =\n1 2 3 =site",
		"darkroom-usage 1 20415\n",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_text(texts[i]);
		check_unread();
		assert_false(exists(USAGE_FILE));
	}
	check_unread(); /* there is none */
}

static void names_without_a_place_are_an_error(void **state)
{
	(void)state;
	write_text("darkroom-usage 1 20415\n1 2 0 =\n1 2 3 =s\n");
	struct usage_token *const token = usage.token;

	usage.count = USAGE_TOKENS_MAX; /* all are in use */
	usage.token = calloc(USAGE_TOKENS_MAX, sizeof *token);
	assert_non_null(usage.token);
	check_unread();
	free(usage.token);
	usage.token = token;
}

static void a_file_that_may_return_is_not_read(void **state)
{
	(void)state;
	write_text(TEXT);
	fail_call(CALL_UNLINKAT, 2, EROFS); /* the first is of the demand */
	check_unread();
	fails_fsync = true;
	check_unread();
	fails_fsync = false;
	write_text(TEXT);
	fails_fdopen = true;
	check_unread();
	assert_false(exists(USAGE_FILE));
}

static void a_demand_to_count_is_met_once(void **state)
{
	(void)state;
	write_text(TEXT);
	usage_file_demand_recount(root_fd);
	assert_true(exists(USAGE_RECOUNT_FILE));
	check_unread();
	assert_false(exists(USAGE_RECOUNT_FILE));
	assert_false(exists(USAGE_FILE));
	write_text(TEXT);
	assert_true(usage_file_read(&usage, root_fd));
	assert_false(usage_file_take_recount(root_fd));
	usage_file_demand_recount(root_fd);
	usage_file_demand_recount(root_fd);
	assert_true(usage_file_take_recount(root_fd));
	assert_false(usage_file_take_recount(root_fd));
	fail_call(CALL_OPENAT, 1, EROFS);
	usage_file_demand_recount(root_fd);
	fflush(messages);
	assert_string_equal(said,
	                    "darkroomd store: cannot write .recount: Read-only file system\n");
	assert_false(exists(USAGE_RECOUNT_FILE));
}

static void check_unwritten(void)
{
	usage_file_write(&usage, root_fd);
	assert_false(exists(USAGE_FILE));
	assert_false(exists(TEMPORARY));
	assert_int_equal(open_descriptors(), descriptors);
}

static void a_file_that_is_not_written_leaves_nothing(void **state)
{
	bool *const faults[] = { &fails_fdopen, &fails_fflush, &fails_fsync, &fails_fclose };

	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		*faults[i] = true;
		check_unwritten();
		*faults[i] = false;
	}
	fail_call(CALL_OPENAT, 1, EROFS);
	check_unwritten();
	fail_call(CALL_RENAMEAT, 1, EIO);
	check_unwritten();
	no_fault();
	usage_file_write(&usage, root_fd);
	check_text("darkroom-usage 1 20415\n0 0 0 =\n");
	usage_file_remove(root_fd);
	assert_false(exists(USAGE_FILE));
	usage_file_remove(root_fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read),
		TEST(a_short_file_is_whole),
		TEST(a_name_may_have_one_byte),
		TEST(uploads_of_another_day_are_forgotten),
		TEST(a_damaged_file_is_not_read),
		TEST(names_without_a_place_are_an_error),
		TEST(a_file_that_may_return_is_not_read),
		TEST(a_demand_to_count_is_met_once),
		TEST(a_file_that_is_not_written_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_remake_queue.c - entries of the queue: their text, damaged ones, and calls that fail. */
#include "support/store_faults.h"

#include "store/directory.c"
#include "store/remake_queue.c"

#include "base/check.h"

#define ID "01K0000000000000000000000A"
#define DIRECTORY REMAKE_QUEUE_DIRECTORY
#define PATH DIRECTORY "/" ID
#define PATH_NEW DIRECTORY "/" ID ".new"

static struct store store;
static struct remake_entry entry;
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-remake-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	store.root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	assert_int_equal(remake_queue_make(&store), 0);
	assert_int_equal(open_descriptors(), descriptors);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(store.root_fd);
	remove_test_root();
	return 0;
}

static void write_entry(const char *text)
{
	char path[160];

	snprintf(path, sizeof path, "%s/" PATH, test_root);
	FILE *f = fopen(path, "w");

	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_text(const char *text)
{
	char path[160], data[CONTENT_MAX] = "";

	snprintf(path, sizeof path, "%s/" PATH, test_root);
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	data[fread(data, 1, sizeof data - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(data, text);
}

static void check_entry(unsigned attempts, bool only_missing, const char *names)
{
	memset(&entry, 0xff, sizeof entry);
	assert_int_equal(remake_queue_get(&store, ID, &entry), 0);
	assert_int_equal(entry.attempts, attempts);
	assert_int_equal(entry.only_missing, only_missing);
	assert_string_equal(entry.names, names);
}

static void entries_are_read_as_they_were_written(void **state)
{
	(void)state;
	for (unsigned attempts = 0; attempts < 12; attempts++) {
		struct remake_entry e = { .attempts = attempts, .only_missing = attempts % 2 };

		snprintf(e.names, sizeof e.names, "%s", attempts % 3 ? "small big" : "");
		assert_int_equal(remake_queue_put(&store, ID, &e), 0);
		check_entry(attempts < 9 ? attempts : 9, e.only_missing, e.names);
		assert_int_equal(entries(DIRECTORY), 1);
	}
	check_text("9m\nsmall big");
	assert_int_equal(remake_queue_put(&store, ID, &(struct remake_entry){ .attempts = 0 }), 0);
	check_text("0a\n");
}

static void what_is_not_an_entry_is_refused(void **state)
{
	static const char *const texts[] = { "",         "0",        "0a",      "0ax",
		                             "/a\nname", ":a\nname", "0a name", "\na\n" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		write_entry(texts[i]);
		assert_int_equal(remake_queue_get(&store, ID, &entry), -EINVAL);
	}
	write_entry("0a\n");
	check_entry(0, false, "");
	write_entry("9m\nx");
	check_entry(9, true, "x");
	shell("rm " PATH " && ln -s /dev/zero " PATH);
	assert_int_equal(remake_queue_get(&store, ID, &entry), -EINVAL);
	assert_true(remake_queue_has(&store, ID)); /* drop removes it */
	assert_int_equal(remake_queue_drop(&store, ID), 0);
	assert_false(remake_queue_has(&store, ID));
	assert_int_equal(remake_queue_drop(&store, ID), -ENOENT);
	assert_int_equal(remake_queue_get(&store, ID, &entry), -ENOENT);
}

static void an_entry_that_is_not_written_leaves_nothing(void **state)
{
	static const struct {
		enum call call;
		int error, result;
	} cases[] = {
		{ CALL_OPENAT, EACCES, -EACCES },
		{ CALL_WRITE, ENOSPC, -ENOSPC },
		{ CALL_WRITE, 0, -EIO }, /* writes nothing */
		{ CALL_RENAMEAT, EIO, -EIO },
	};
	const struct remake_entry e = { .attempts = 2 }, other = { .attempts = 7 };

	(void)state;
	assert_int_equal(remake_queue_put(&store, ID, &e), 0);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		fail_call(cases[i].call, 1, cases[i].error);
		assert_int_equal(remake_queue_put(&store, ID, &other), cases[i].result);
		assert_int_equal(open_descriptors(), descriptors);
		assert_false(exists(PATH_NEW));
		check_entry(2, false, "");
	}
	fail_call(CALL_PREAD, 1, EIO);
	assert_int_equal(remake_queue_get(&store, ID, &entry), -EIO);
	assert_int_equal(open_descriptors(), descriptors);
	no_fault();
	shell("rm -r " DIRECTORY);
	assert_int_equal(remake_queue_put(&store, ID, &e), -ENOENT);
	shell("touch " DIRECTORY);
	assert_int_equal(remake_queue_make(&store), -ENOTDIR);
}

static void an_entry_wants_the_names_that_it_has(void **state)
{
	static struct conf conf = { .variant_count = 2, .variant = { { .name = "none" } } };
	static const struct {
		const char *names, *variant;
		bool wants;
	} cases[] = {
		{ "", "a", true },           { "a", "a", true },         { "a", "b", false },
		{ "ab", "a", false },        { "a", "ab", false },       { "a b", "b", true },
		{ "a  b ", "b", true },      { "aa bb cc", "bb", true }, { "aa bb cc", "cc", true },
		{ "aa bb cc", "dd", false }, { "aa bb cc", "a", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		snprintf(entry.names, sizeof entry.names, "%s", cases[i].names);
		snprintf(conf.variant[1].name, sizeof conf.variant[1].name, "%s", cases[i].variant);
		assert_int_equal(remake_entry_wanted(&entry, &conf) >> 1, cases[i].wants);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_are_read_as_they_were_written),
		TEST(what_is_not_an_entry_is_refused),
		TEST(an_entry_that_is_not_written_leaves_nothing),
		TEST(an_entry_wants_the_names_that_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

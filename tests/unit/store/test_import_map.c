/* test_import_map.c - lines of paths and ids: read again, cut off, damaged, and calls that fail. */
#include "support/store_faults.h"

static bool fails_fdopen, fails_ftruncate, fails_fsync, fails_dup, fails_read, fails_asprintf;

static int io_error(void)
{
	errno = EIO;
	return -1;
}

static int fault_dup(int fd)
{
	return fails_dup ? io_error() : dup(fd);
}

static FILE *fault_fdopen(int fd, const char *mode)
{
	if (!fails_fdopen)
		return fdopen(fd, mode);
	io_error();
	return NULL;
}

static int fault_ftruncate(int fd, off_t size)
{

	return fails_ftruncate ? io_error() : ftruncate(fd, size);
}

static int fault_fsync(int fd)
{
	assert_true(fcntl(fd, F_GETFD) >= 0);
	return fails_fsync ? io_error() : 0;
}

#define dup fault_dup
/* A failing asprintf() may leave in *text what is not memory. */
#define asprintf(text, ...) \
	(fails_asprintf ? *(text) = (char *)UINTPTR_MAX, -1 : asprintf(text, __VA_ARGS__))
#undef ferror
#define ferror(f) (fails_read || (ferror)(f))
#define fdopen fault_fdopen
#define ftruncate fault_ftruncate
#define fsync fault_fsync
#include "store/import_map.c"

#define ID "01K0000000000000000000000A"
#define ID2 "01K0000000000000000000000B"

static struct import_map map;
static char path[128], begun_path[160];
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	fails_fdopen = fails_ftruncate = fails_fsync = fails_dup = fails_read = fails_asprintf =
		false;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-map-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	snprintf(path, sizeof path, "%s/map", test_root);
	snprintf(begun_path, sizeof begun_path, "%s.begun", path);
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	remove_test_root();
	return 0;
}

static void write_text(const char *to, const char *text)
{
	FILE *f = fopen(to, "w");

	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_text(const char *of, const char *text)
{
	char data[4096] = "";
	FILE *f = fopen(of, "r");

	assert_non_null(f);
	data[fread(data, 1, sizeof data - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(data, text);
}

static void check_found(const char *name, const char *id, bool is_stored)
{
	const struct import_known *known = import_map_find(&map, name);

	if (!id) {
		assert_null(known);
		return;
	}
	assert_non_null(known);
	assert_string_equal(known->id, id);
	assert_int_equal(known->is_stored, is_stored);
}

static void open_map(void)
{
	memset(&map, 0xff, sizeof map);
	assert_int_equal(import_map_open(&map, path), 0);
	assert_ptr_equal(map.path, path);
	assert_string_equal(map.begun_path, begun_path);
}

static void a_new_map_is_empty(void **state)
{
	(void)state;
	open_map();
	check_found("a.jpg", NULL, false);
	assert_int_equal(map.count, 0);
	assert_true(exists("map") && exists("map.begun"));
	assert_int_equal(import_map_close(&map, false), 0);
	assert_true(exists("map") && exists("map.begun"));
	open_map();
	assert_int_equal(import_map_close(&map, true), 0);
	assert_true(exists("map") && !exists("map.begun"));
}

static void lines_are_found_by_path(void **state)
{
	(void)state;
	open_map();
	assert_int_equal(import_map_begin(&map, "a\"\xc3\xa4\n.jpg", ID), 0);
	assert_int_equal(import_map_flush(&map), 0);
	assert_int_equal(import_map_begin(&map, "b.jpg", ID2), 0);
	assert_int_equal(import_map_stored(&map, "b.jpg", ID2), 0);
	check_found("b.jpg", NULL, false); /* lines that were added do not count */
	assert_int_equal(import_map_close(&map, false), 0);
	check_text(path, "{\"path\":\"b.jpg\",\"id\":\"" ID2 "\"}\n");
	open_map();
	check_found("a\"\xc3\xa4\n.jpg", ID, false);
	check_found("b.jpg", ID2, true); /* in both files */
	check_found("c.jpg", NULL, false);
	check_found("", NULL, false);
	assert_int_equal(map.count, 3);
	assert_int_equal(import_map_stored(&map, "c.jpg", ID), 0);
	assert_int_equal(import_map_close(&map, true), 0);
	check_text(path, "{\"path\":\"b.jpg\",\"id\":\"" ID2 "\"}\n"
	                 "{\"path\":\"c.jpg\",\"id\":\"" ID "\"}\n");
}

static void two_lines_are_found_in_any_order(void **state)
{
	static const char *const names[] = { "a", "b" }, *const ids[] = { ID, ID2 };

	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		open_map();
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(import_map_stored(&map, names[i ^ first], ids[i ^ first]),
			                 0);
		assert_int_equal(import_map_close(&map, false), 0);
		open_map();
		for (unsigned i = 0; i < 2; i++)
			check_found(names[i], ids[i], true);
		assert_int_equal(import_map_close(&map, true), 0);
		assert_int_equal(unlink(path), 0);
	}
}

static void others_can_read_the_map(void **state)
{
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	open_map();
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(import_map_close(&map, true), 0);
}

static void many_lines_are_found(void **state)
{
	enum { COUNT = 3000 };
	char name[32], id[ULID_LENGTH + 1];

	(void)state;
	open_map();
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "%u.jpg", i);
		snprintf(id, sizeof id, "01K%023u", i);
		assert_int_equal(import_map_stored(&map, name, id), 0);
	}
	assert_int_equal(import_map_close(&map, false), 0);
	open_map();
	assert_int_equal(map.count, COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "%u.jpg", i);
		snprintf(id, sizeof id, "01K%023u", i);
		check_found(name, id, true);
	}
	check_found("3000.jpg", NULL, false);
	assert_int_equal(import_map_close(&map, true), 0);
}

static void an_incomplete_last_line_is_cut_off(void **state)
{
	static const char first[] = "{\"path\":\"a\",\"id\":\"" ID "\"}\n";
	char text[256];

	(void)state;
	for (unsigned cut = 1; cut < sizeof first - 1; cut++) {
		snprintf(text, sizeof text, "%s%.*s", first, (int)cut, first);
		write_text(path, text);
		open_map();
		assert_int_equal(map.count, 1);
		check_found("a", ID, true);
		assert_int_equal(import_map_stored(&map, "b", ID2), 0); /* behind the cut */
		assert_int_equal(import_map_close(&map, true), 0);
		snprintf(text, sizeof text, "%s{\"path\":\"b\",\"id\":\"" ID2 "\"}\n", first);
		check_text(path, text);
	}
}

/* The files are open after a failure, too: the caller closes the map. */
static void check_status(int status)
{
	assert_int_equal(import_map_open(&map, path), status);
	import_map_close(&map, false);
	assert_int_equal(open_descriptors(), descriptors);
}

static void other_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"\n",
		"{\"path\":\"a\",\"id\":\"" ID "\"} \n",
		"{\"path\":\"a\",\"id\":\"01K0000000000000000000000U\"}\n",
		"{\"path\":\"a\",\"jd\":\"" ID "\"}\n",
		"{\"pazh\":\"a\",\"id\":\"" ID "\"}\n",
		"{\"path\";\"a\",\"id\":\"" ID "\"}\n",
		"{\"path\":\"a\",\"id\":'" ID "\"}\n",
		"{\"path\":,\"id\":\"" ID "\"\n",
		"\"path\":,\"id\":\"" ID "\"}\n",
		"{\"path\":\"a\",\"id\":\"" ID "\"}\n#\n",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
		write_text(path, lines[i]);
		check_status(QUERY_EXIT_USAGE);
		check_text(path, lines[i]); /* it is as it was */
		write_text(path, "");
		write_text(begun_path, lines[i]);
		check_status(QUERY_EXIT_USAGE);
		write_text(begun_path, "");
	}
	/* The shortest line: the path itself is not looked at. */
	write_text(path, "{\"path\":,\"id\":\"" ID "\"}\n");
	open_map();
	assert_int_equal(map.count, 1);
	assert_int_equal(import_map_close(&map, true), 0);
}

static void each_failing_call_is_reported(void **state)
{
	bool *const faults[] = { &fails_fdopen, &fails_ftruncate, &fails_dup, &fails_read,
		                 &fails_asprintf };
	char here[128];

	(void)state;
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
		*faults[i] = true;
		check_status(EXIT_FAILURE);
		*faults[i] = false;
	}
	/* Lines that cannot be read stay. */
	write_text(path, "{\"path\":\"a\"");
	fails_read = true;
	check_status(EXIT_FAILURE);
	fails_read = false;
	check_text(path, "{\"path\":\"a\"");
	strcpy(here, path);
	strcpy(path, test_root); /* a directory */
	check_status(EXIT_FAILURE);
	strcpy(path, here);
	shell("mkdir map.begun");
	check_status(EXIT_FAILURE);
	shell("rmdir map.begun");
}

static void lines_that_are_not_written_are_errors(void **state)
{
	static char name[IMPORT_LINE_MAX + 1];

	(void)state;
	open_map();
	fail_call(CALL_WRITE, 1, EDQUOT);
	assert_int_equal(import_map_begin(&map, "a", ID), -EDQUOT);
	fail_call(CALL_WRITE, 1, EDQUOT);
	assert_int_equal(import_map_stored(&map, "a", ID), -EDQUOT);
	fail_call(CALL_WRITE, 1, 0); /* writes nothing */
	assert_int_equal(import_map_stored(&map, "a", ID), -ENOSPC);
	no_fault();
	write_most = 5;
	assert_int_equal(import_map_stored(&map, "a", ID), -ENOSPC);
	no_fault();
	memset(name, 'n', sizeof name - 1);
	assert_int_equal(import_map_stored(&map, name, ID), -ENAMETOOLONG);
	memset(name, '\n', IMPORT_PATH_MAX - 1); /* the longest line */
	name[IMPORT_PATH_MAX - 1] = '\0';
	assert_int_equal(import_map_begin(&map, name, ID), 0);
	fail_call(CALL_FDATASYNC, 1, EIO);
	assert_int_equal(import_map_flush(&map), -EIO);
	fails_fsync = true;
	assert_int_equal(import_map_close(&map, true), -EIO);
	assert_true(exists("map.begun")); /* the next import reads it */
	fails_fsync = false;
	open_map();
	check_found(name, ID, false);
	shell("rm map.begun");
	assert_int_equal(import_map_close(&map, true), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_map_is_empty),
		TEST(lines_are_found_by_path),
		TEST(two_lines_are_found_in_any_order),
		TEST(others_can_read_the_map),
		TEST(many_lines_are_found),
		TEST(an_incomplete_last_line_is_cut_off),
		TEST(other_lines_are_refused),
		TEST(each_failing_call_is_reported),
		TEST(lines_that_are_not_written_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

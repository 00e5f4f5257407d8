/* test_store_strays.c - what lies beside the images is listed, and nothing of the store is. */
#include "base/check.h"
#include "support/store_faults.h"

static FILE *list;

#define printf(...) fprintf(list, __VA_ARGS__)
#include "store/store_strays.c"
#undef printf

#include <sys/socket.h>
#include <sys/un.h>

#define ID "01K0000000000000000000000A"

static char *listed;
static size_t listed_size;
static int root_fd;
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-strays-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	return root_fd < 0;
}

/* All descriptors that were opened must be closed. */
static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(root_fd);
	remove_test_root();
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Checks the number of strays, and the sorted lines. */
static void check_strays(const char *const *expected, size_t count)
{
	char *line[32];
	size_t n = 0;

	list = open_memstream(&listed, &listed_size);
	assert_int_equal(store_strays(root_fd), count);
	fclose(list);
	for (char *at = listed, *next; (next = strchr(at, '\n')); at = next + 1) {
		assert_true(n < COUNT_OF(line));
		*next = '\0';
		line[n++] = at;
	}
	qsort(line, n, sizeof line[0], compare);
	assert_int_equal(n, count);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(line[i], expected[i]);
	free(listed);
}

static void images_of_both_layouts_are_no_strays(void **state)
{
	(void)state;
	check_strays(NULL, 0);
	shell("mkdir -p 01K0/00/" ID " 0A/" ID " 01K1/ZZ .spool/x lost+found && touch .usage");
	check_strays(NULL, 0);
}

static void each_kind_of_stray_is_listed(void **state)
{
	static const char *const expected[] = {
		"01K0/00/" ID ".old: stray",
		"01K0/00/01K0000000000000000000000B: stray", /* a file */
		"01K0/00/01K0010000000000000000000A: stray", /* of another directory */
		"01K0/01: stray",                            /* a file */
		"01K0/0: stray",
		"01K0/ab: stray",
		"01KI: stray", /* no letter of an id */
		"01K2: stray", /* a link */
		"0A/01K0000000000000000000000B: stray",
		"0B: stray", /* a file */
		"0I: stray",
		"01K: stray",
		"readme: stray",
	};
	const char *sorted[COUNT_OF(expected)];

	(void)state;
	shell("mkdir -p 01K0/00/" ID " 01K0/00/" ID ".old 01K0/00/01K0010000000000000000000A "
	      "01K0/ab 01K0/0 01KI 01K 0I 0A/" ID " 0A/01K0000000000000000000000B && "
	      "touch 01K0/00/01K0000000000000000000000B 01K0/01 0B readme && ln -s 01K0 01K2");
	memcpy(sorted, expected, sizeof expected);
	qsort(sorted, COUNT_OF(sorted), sizeof sorted[0], compare);
	check_strays(sorted, COUNT_OF(sorted));
}

static void a_socket_of_the_root_is_no_stray(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/ctl", test_root);

	(void)state;
	assert_true(length > 0 && (size_t)length < sizeof address.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	check_strays(NULL, 0);
}

static void an_entry_that_has_gone_is_no_stray(void **state)
{
	(void)state;
	list = open_memstream(&listed, &listed_size);
	assert_int_equal(stray(root_fd, "", "gone"), 0);
	shell("mkdir d && touch d/file");
	/* One that cannot be looked at is listed. */
	assert_int_equal(stray(root_fd, "d", "d/file/below"), 1);
	fclose(list);
	assert_string_equal(listed, "d/d/file/below: stray\n");
	free(listed);
}

static void a_directory_that_cannot_be_read_is_left_out(void **state)
{
	static const char *const expected[] = { "readme: stray" };

	(void)state;
	shell("touch readme");
	fail_call(CALL_OPENAT, 1, EACCES);
	check_strays(NULL, 0);
	fail_call(CALL_FDOPENDIR, 1, ENOMEM);
	check_strays(NULL, 0);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(calls[CALL_CLOSE], 1);
	no_fault();
	check_strays(expected, 1);
	assert_int_equal(calls[CALL_CLOSE], 0); /* closedir() does it */
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_ROOT(images_of_both_layouts_are_no_strays),
		WITH_ROOT(each_kind_of_stray_is_listed),
		WITH_ROOT(a_socket_of_the_root_is_no_stray),
		WITH_ROOT(an_entry_that_has_gone_is_no_stray),
		WITH_ROOT(a_directory_that_cannot_be_read_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

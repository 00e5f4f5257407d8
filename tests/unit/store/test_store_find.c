/* test_store_find.c - looking for files of images, with and without waiting for the disk. */
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "support/store_faults.h"

/* The cached way: cached[n] is the result of the n-th call, 0 for the real one. during[n] runs
 * before it. */
static int cached[5];
static const char *during[5];
static unsigned cached_calls;

static int access_meanwhile(int at, const char *path, int mode, int flags);
static ssize_t fake_fgetxattr(int fd, const char *name, void *value, size_t size);

#define cached_open fake_cached_open
#undef faccessat
#define faccessat access_meanwhile
#define fgetxattr fake_fgetxattr
#include "store/directory.c"
#include "store/store_find.c"
#undef cached_open
#undef fgetxattr

#include "base/check.h"

static const char id[] = "01K0000000000000000000000A";
static struct store store;
static struct store_found found;
static unsigned descriptors, cleared;

int fake_cached_open(int at, const char *path)
{
	unsigned n = cached_calls++;

	assert_true(n < COUNT_OF(cached));
	if (during[n])
		shell(during[n]);
	if (cached[n])
		return cached[n];
	int fd = (int)syscall(SYS_openat, at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Runs after the look into the spool. */
static const char *after_access;

static int access_meanwhile(int at, const char *path, int mode, int flags)
{
	int result = fault_faccessat(at, path, mode, flags), error = errno;

	assert_int_equal(mode, F_OK);
	if (after_access)
		shell(after_access);
	errno = error;
	return result;
}

/* The attribute of each file; NULL: the file system has none. */
static const char *attribute;

static ssize_t fake_fgetxattr(int fd, const char *name, void *value, size_t size)
{
	size_t length = attribute ? strlen(attribute) : 0;

	(void)fd;
	assert_string_equal(name, STORE_TAG_ATTRIBUTE);
	assert_int_equal(size, STORE_TAG_MAX - 1); /* a zero follows */
	errno = !attribute ? ENODATA : ERANGE;
	if (!attribute || length > size)
		return -1;
	memcpy(value, attribute, length);
	return (ssize_t)length;
}

static int setup(void **state)
{
	(void)state;
	no_fault();
	after_access = attribute = NULL;
	memset(cached, 0, sizeof cached);
	memset(during, 0, sizeof during);
	memset(&found, 0xff, sizeof found);
	cached_calls = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-find-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, false, &cleared))
		return -1;
	descriptors = open_descriptors();
	return 0;
}

/* All descriptors that were opened must be closed. */
static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

#define MAKE_IN(directory)                                      \
	"mkdir -p " directory "/01K0000000000000000000000A && " \
	"printf abc >" directory "/01K0000000000000000000000A/a.jpg"
#define MAKE MAKE_IN("01K0/00")
#define MAKE_OLD MAKE_IN("0A") /* as earlier versions did */
#define LINKED "01K0000000000000000000000B"
#define SPOOL_IT "mkdir -p .spool/01K0000000000000000000000A"

static void assert_file(void)
{
	assert_true(found.fd >= 0);
	assert_int_equal(found.size, 3);
	assert_false(found.is_spooled);
	close(found.fd);
}

static void assert_absent(bool is_spooled)
{
	assert_int_equal(found.fd, -ENOENT);
	assert_int_equal(found.is_spooled, is_spooled);
}

static void a_file_is_found_in_both_ways(void **state)
{
	(void)state;
	shell(MAKE);
	found.is_spooled = true;
	store_find(&store, id, "a.jpg", &found);
	assert_file();
	assert_int_equal(cached_calls, 0);
	found.is_spooled = true;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
	assert_int_equal(cached_calls, 1);
}

static void a_file_of_an_earlier_version_is_found_in_both_ways(void **state)
{
	(void)state;
	shell(MAKE_OLD);
	store_find(&store, id, "a.jpg", &found);
	assert_file();
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
	assert_int_equal(cached_calls, 2);
}

static void a_missing_file_is_missing_in_both_ways(void **state)
{
	(void)state;
	store_find(&store, id, "a.jpg", &found);
	assert_absent(false);
	found.is_spooled = true;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(false);
	shell(SPOOL_IT);
	store_find(&store, id, "a.jpg", &found);
	assert_absent(true);
	cached_calls = 0;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(true);
	assert_int_equal(cached_calls, 3);
}

static void a_file_that_is_stored_meanwhile_is_found(void **state)
{
	(void)state;
	during[3] = MAKE; /* it had left the spool before */
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
}

static void what_the_kernel_does_not_know_is_not_waited_for(void **state)
{
	(void)state;
	for (unsigned n = 0; n < COUNT_OF(cached); n++) {
		cached_calls = 0;
		memset(cached, 0, sizeof cached);
		cached[n] = -EAGAIN;
		fail_call(CALL_OPENAT, 1, EIO);
		assert_false(store_find_cached(&store, id, "a.jpg", &found));
		assert_int_equal(cached_calls, n + 1);
		assert_int_equal(calls[CALL_OPENAT] + calls[CALL_FACCESSAT], 0);
		no_fault();
	}
}

static void errors_are_reported_and_leave_no_descriptor(void **state)
{
	(void)state;
	shell(MAKE);
	cached[0] = -EMFILE;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_int_equal(found.fd, -EMFILE);
	cached_calls = 0;
	cached[0] = 0;
	fail_call(CALL_FSTAT, 1, EIO);
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_int_equal(found.fd, -EIO);
	no_fault();
	fail_call(CALL_OPENAT, 1, EACCES);
	store_find(&store, id, "a.jpg", &found);
	assert_int_equal(found.fd, -EACCES);
	assert_false(found.is_spooled);
}

static void an_unknown_error_counts_as_spooled(void **state)
{
	(void)state;
	cached[2] = -EIO;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(true);
	fail_call(CALL_FACCESSAT, 1, EIO);
	store_find(&store, id, "a.jpg", &found);
	assert_absent(true);
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	shell(MAKE " && ln -s nowhere .spool/" LINKED " && cd 01K0/00/* && ln -s a.jpg b.jpg");
	store_find(&store, id, "b.jpg", &found);
	assert_int_equal(found.fd, -ENOENT);
	errno = ENOENT; /* of an earlier call */
	assert_true(store_is_spooled(&store, LINKED));
}

static void the_last_look_finds_what_was_stored_meanwhile(void **state)
{
	(void)state;
	after_access = MAKE; /* it had left the spool before */
	store_find(&store, id, "a.jpg", &found);
	assert_file();
}

/* The daemon holds the old one open. */
static void a_root_that_was_made_again_is_opened_again(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof command, "mv %s %s.old && mkdir -m 700 %s", test_root, test_root,
	         test_root);
	assert_int_equal(system(command), 0);
	shell(MAKE);
	store_find(&store, id, "a.jpg", &found);
	assert_file();
	snprintf(command, sizeof command, "rm -r %s.old", test_root);
	assert_int_equal(system(command), 0);
	assert_int_equal(store.openings, 1);
}

static void a_directory_is_opened_in_either_layout(void **state)
{
	static const char *const layouts[] = { MAKE, "rm -r 01K0 && " MAKE_OLD };

	(void)state;
	assert_int_equal(store_open_directory(&store, id), -ENOENT);
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		shell(layouts[i]);
		int fd = store_open_directory(&store, id);

		assert_true(fd >= 0);
		assert_int_equal(faccessat(fd, "a.jpg", F_OK, 0), 0);
		close(fd);
	}
	assert_int_equal(cached_calls, 0);
	assert_true(store_has_file(&store, id, "image.json") == false);
	shell("cd 0A/* && touch image.json");
	assert_true(store_has_file(&store, id, "image.json"));
}

#define SUM "0123456789abcdef0123456789abcdef"

/* Returns the tag of a file with that attribute. */
static const char *tag_with(const char *text, uint64_t *expires)
{
	static char tag[STORE_TAG_MAX];

	attribute = text;
	memset(tag, '7', sizeof tag);
	store_find(&store, id, "a.jpg", &found);
	assert_true(found.fd >= 0);
	*expires = store_tag(found.fd, tag);
	close(found.fd);
	return tag;
}

static void a_tag_is_the_checksum_with_an_end(void **state)
{
	uint64_t expires;

	(void)state;
	shell(MAKE);
	assert_string_equal(tag_with(SUM, &expires), SUM);
	assert_int_equal(expires, 0);
	assert_string_equal(tag_with(SUM ".4102444801", &expires), SUM);
	assert_int_equal(expires, UINT64_C(4102444801));
}

static void another_attribute_is_not_a_tag(void **state)
{
	static const char *const attributes[] = {
		NULL,
		"",
		"0123456789abcdef0123456789abcde",
		SUM "0",
		SUM ".410244480",
		SUM ".41024448010",
		"G123456789abcdef0123456789abcdef",
		"0123456789abcdef0123456789abcdeg.4102444801",
	};
	uint64_t expires;

	(void)state;
	shell(MAKE " && touch -d @255.000000017 01K0/00/*/a.jpg");
	for (size_t i = 0; i < COUNT_OF(attributes); i++) {
		assert_string_equal(tag_with(attributes[i], &expires), "3-ff.11");
		assert_int_equal(expires, 0);
	}
	char tag[STORE_TAG_MAX];

	fail_call(CALL_FSTAT, 1, EIO);
	assert_int_equal(store_tag(-1, tag), 0);
	assert_string_equal(tag, "0-0.0");
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_file_is_found_in_both_ways),
		WITH_STORE(a_file_of_an_earlier_version_is_found_in_both_ways),
		WITH_STORE(a_missing_file_is_missing_in_both_ways),
		WITH_STORE(a_file_that_is_stored_meanwhile_is_found),
		WITH_STORE(what_the_kernel_does_not_know_is_not_waited_for),
		WITH_STORE(errors_are_reported_and_leave_no_descriptor),
		WITH_STORE(an_unknown_error_counts_as_spooled),
		WITH_STORE(a_link_is_not_followed),
		WITH_STORE(the_last_look_finds_what_was_stored_meanwhile),
		WITH_STORE(a_root_that_was_made_again_is_opened_again),
		WITH_STORE(a_directory_is_opened_in_either_layout),
		WITH_STORE(a_tag_is_the_checksum_with_an_end),
		WITH_STORE(another_attribute_is_not_a_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_store_verify.c - which files are compared with their checksums again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/fake_clock.h"
#include "support/file_fixture.h"

static int is_cached = 1;

static int fake_cached_look(int fd, off_t at, size_t size)
{
	(void)fd;
	assert_true(at == 0 && size > 0);
	return is_cached;
}

#define cached_look fake_cached_look
#include "store/store_find.c"
#include "store/store_verify.c"
#undef cached_look

#define SIZE 1000

static struct store store;
static char path[] = "/tmp/darkroom-verify-XXXXXX";

/* Opens the file as store_find() does, with the checksum of its first content. */
static struct store_found open_found(void)
{
	char content[SIZE] = { 0 };
	struct store_found found = { .fd = open(path, O_RDWR | O_CLOEXEC), .size = SIZE };
	struct stat st;

	assert_true(found.fd >= 0 && fstat(found.fd, &st) == 0);
	found.identity = identity_of(&st);
	checksum_of(content, sizeof content, found.tag);
	return found;
}

static void write_byte(char byte)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, &byte, 1, SIZE / 2), 1);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	close(fd);
}

static bool is_known(const struct store_found *found, size_t max, bool *is_copied)
{
	static char copy[SIZE];
	bool is_sound = store_verify_cached(&store, found, copy, max, is_copied);

	assert_true(!*is_copied || (is_sound && copy[SIZE / 2] == 0));
	return is_sound;
}

static int make(void **state)
{
	strcpy(path, "/tmp/darkroom-verify-XXXXXX");
	int err = file_make(path);

	(void)state;
	memset(store.verified, 0, sizeof store.verified);
	write_byte(0);
	fake_clock_stop();
	return err;
}

static int drop(void **state)
{
	(void)state;
	fake_clock_run();
	return unlink(path);
}

static void a_small_file_is_compared_each_time(void **state)
{
	bool is_copied;
	struct store_found found = open_found();

	(void)state;
	assert_true(is_known(&found, SIZE, &is_copied) && is_copied);
	write_byte(1); /* though nothing else tells that */
	assert_false(is_known(&found, SIZE, &is_copied));
	assert_int_equal(store_verify(&store, "", "", &found), -EBADMSG);
	write_byte(0);
	assert_true(is_known(&found, SIZE, &is_copied));
	close(found.fd);
}

static void a_large_file_is_compared_again_after_a_minute_and_from_the_disk(void **state)
{
	bool is_copied;
	struct store_found found = open_found();

	(void)state;
	assert_false(is_known(&found, SIZE - 1, &is_copied));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_verify(&store, "", "", &found), 0);
		fake_clock_advance((STORE_VERIFY_S - 1) * NS_PER_S);
		assert_true(is_known(&found, SIZE - 1, &is_copied) && !is_copied);
		is_cached = 0;
		assert_false(is_known(&found, SIZE - 1, &is_copied));
		is_cached = -1; /* the kernel cannot tell */
		assert_true(is_known(&found, SIZE - 1, &is_copied));
		is_cached = 1;
		fake_clock_advance(NS_PER_S);
		assert_false(is_known(&found, SIZE - 1, &is_copied));
	}
	close(found.fd);
}

static void a_large_file_is_compared_again_when_its_inode_changes(void **state)
{
	bool is_copied;
	struct store_found found = open_found();
	struct stat st, other;

	(void)state;
	assert_int_equal(store_verify(&store, "", "", &found), 0);
	assert_true(is_known(&found, SIZE - 1, &is_copied));
	assert_int_equal(fstat(found.fd, &st), 0);
	for (unsigned i = 0; i < 4; i++) {
		other = st;
		other.st_ino += i == 0;
		other.st_size += i == 1;
		other.st_ctim.tv_sec += i == 2;
		other.st_ctim.tv_nsec ^= i == 3;
		found.identity = identity_of(&other);
		assert_false(is_known(&found, SIZE - 1, &is_copied));
	}
	write_byte(1);
	assert_int_equal(store_verify(&store, "", "", &found), -EBADMSG);
	assert_false(is_known(&found, SIZE - 1, &is_copied));
	close(found.fd);
}

/* A file system may have no attributes, and a DELETE may come first. */
static void an_image_that_is_removed_meanwhile_is_not_damaged(void **state)
{
	static const char id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
	char root[] = "/tmp/darkroom-verify-XXXXXX", image[STORE_PATH_MAX];
	struct store_found found = open_found();

	(void)state;
	assert_non_null(mkdtemp(root));
	store.root = root;
	store.root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	found.tag[0] = '\0';
	store_image_path(image, STORE_BY_TIME, id, NULL);
	assert_int_equal(directory_make_all(store.root_fd, image, 0700), 0);
	assert_int_equal(store_verify(&store, id, "a.jpg", &found), -EUCLEAN);
	assert_int_equal(store_verify(&store, id, STORED_IMAGE, &found), -EBADMSG);
	for (char *end = image + strlen(image); end; end = strrchr(image, '/')) {
		*end = '\0';
		assert_int_equal(directory_unlink(store.root_fd, image, AT_REMOVEDIR), 0);
	}
	assert_int_equal(store_verify(&store, id, "a.jpg", &found), -ESTALE);
	assert_int_equal(store_verify(&store, id, STORED_IMAGE, &found), -ESTALE);
	close(store.root_fd);
	close(found.fd);
	assert_int_equal(rmdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_small_file_is_compared_each_time, make, drop),
		cmocka_unit_test_setup_teardown(
			a_large_file_is_compared_again_after_a_minute_and_from_the_disk, make,
			drop),
		cmocka_unit_test_setup_teardown(
			a_large_file_is_compared_again_when_its_inode_changes, make, drop),
		cmocka_unit_test_setup_teardown(an_image_that_is_removed_meanwhile_is_not_damaged,
		                                make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

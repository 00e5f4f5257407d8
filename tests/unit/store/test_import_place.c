/* test_import_place.c - the directory of an import, its lock, and the user it belongs to. */
#include "support/store_faults.h"
#include "support/text_streams.h"

#include <grp.h>

#include "store/store_query.h"

static uid_t user, owner;
static gid_t group;
static char said[512]; /* what was called, in order */
static unsigned id_calls, failing, aborts;

static void say(const char *what, long a, long b, long c)
{
	size_t used = strlen(said);

	snprintf(said + used, sizeof said - used, "%s(%ld,%ld,%ld) ", what, a, b, c);
}

/* Returns what a call that changes the user does. */
static int change(const char *what, long a, long b, long c)
{
	say(what, a, b, c);
	errno = EPERM;
	return ++id_calls == failing ? -1 : 0;
}

static int fake_setgroups(size_t count, const gid_t *list)
{
	assert_null(list);
	return change("groups", (long)count, 0, 0);
}

static int owned_fstat(int fd, struct stat *st)
{
	int result = fault_fstat(fd, st);

	st->st_uid = owner;
	st->st_gid = group;
	return result;
}

static void fake_recount(struct store *s)
{
	assert_non_null(s);
	say(exists(".import") ? "recount" : "recount without", 0, 0, 0);
}

static int fake_fail(const char *what, int err)
{
	assert_string_equal(what, ".import");
	say("fail", err, 0, 0);
	return 7;
}

#undef fstat
#define fstat owned_fstat
#define geteuid() user
#define setgroups fake_setgroups
#define setresgid(a, b, c) change("gid", (int)(a), (int)(b), (int)(c))
#define setresuid(a, b, c) change("uid", (int)(a), (int)(b), (int)(c))
#define seteuid(a) change("euid", (int)(a), 0, 0)
#define setegid(a) change("egid", (int)(a), 0, 0)
#define abort() (void)aborts++
#define usage_demand_recount fake_recount
#define store_query_fail fake_fail
#include "store/directory.c"
#include "store/import_place.c"

static struct store_query query;

#define BECOME "groups(0,0,0) gid(-1,7,0) uid(-1,5,0) "
#define LEAVE "euid(0,0,0) egid(0,0,0) "

static int setup(void **state)
{
	(void)state;
	no_fault();
	open_streams();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-place-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	memset(&query, 0xff, sizeof query);
	query.store.root_fd = open(test_root, O_RDONLY | O_DIRECTORY);
	query.store.incoming_fd = -1;
	user = 0;
	owner = 5;
	group = 7;
	failing = aborts = id_calls = 0;
	said[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	if (query.store.incoming_fd >= 0)
		close(query.store.incoming_fd);
	close(query.store.root_fd);
	assert_int_equal(aborts, 0);
	remove_test_root();
	close_streams();
	return 0;
}

static void check_said(const char *expected)
{
	assert_string_equal(said, expected);
	said[0] = '\0';
	id_calls = 0;
}

static void root_is_the_owner_for_a_while(void **state)
{
	(void)state;
	assert_int_equal(import_place_open(&query, false), 0);
	check_said(BECOME LEAVE "recount(0,0,0) ");
	import_place_enter(&query);
	check_said(BECOME);
	import_place_leave();
	check_said(LEAVE);
	import_place_close(&query);
	check_said(BECOME "recount without(0,0,0) " LEAVE);
}

static void root_is_the_owner_for_ever(void **state)
{
	(void)state;
	assert_int_equal(import_place_open(&query, true), 0);
	check_said("groups(0,0,0) gid(7,7,7) uid(5,5,5) recount(0,0,0) ");
	import_place_close(&query);
	check_said("recount without(0,0,0) ");
}

static void a_program_of_the_owner_changes_no_user(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* also after an import that changed its user */
		is_root = i > 0;
		user = 5;
		owner = 5;
		assert_int_equal(import_place_open(&query, false), 0);
		check_said("recount(0,0,0) ");
		import_place_close(&query);
		check_said("recount without(0,0,0) ");
		close(query.store.incoming_fd);
		user = 0;
		owner = 0;
		assert_int_equal(import_place_open(&query, false), 0);
		check_said("recount(0,0,0) ");
		import_place_close(&query);
		check_said("recount without(0,0,0) ");
		close(query.store.incoming_fd);
	}
	query.store.incoming_fd = -1;
}

static void a_user_that_cannot_be_changed_is_a_failure(void **state)
{
	static const char *const expected[] = {
		"groups(0,0,0) " LEAVE "fail(-1,0,0) ",
		"groups(0,0,0) gid(-1,7,0) " LEAVE "fail(-1,0,0) ",
		BECOME LEAVE "fail(-1,0,0) ",
	};

	(void)state;
	for (failing = 1; failing <= 3; failing++) {
		assert_int_equal(import_place_open(&query, false), 7);
		check_said(expected[failing - 1]);
		assert_false(exists(".import"));
	}
}

static void a_user_that_cannot_be_changed_later_ends_the_program(void **state)
{
	(void)state;
	assert_int_equal(import_place_open(&query, false), 0);
	id_calls = 0;
	failing = 3;
	import_place_enter(&query);
	assert_int_equal(aborts, 1);
	for (failing = 1; failing <= 2; failing++) {
		id_calls = 0;
		import_place_leave();
		assert_int_equal(aborts, 1 + failing);
	}
	aborts = 0;
}

static void a_root_that_cannot_be_read_is_a_failure(void **state)
{
	(void)state;
	fail_call(CALL_FSTAT, 1, EIO);
	assert_int_equal(import_place_open(&query, true), 7);
	check_said("fail(-5,0,0) ");
	assert_false(exists(".import"));
}

static void the_directory_is_private_empty_and_where_images_are_written(void **state)
{
	struct stat there, opened;
	char path[128];

	(void)state;
	user = 5;
	shell("mkdir -p .import/01KA && touch .import/01KA/a.jpg");
	assert_int_equal(import_place_open(&query, false), 0);
	assert_int_equal(entries(".import"), 0);
	snprintf(path, sizeof path, "%s/.import", test_root);
	assert_int_equal(stat(path, &there) |
	                         fstatat(query.store.incoming_fd, "", &opened, AT_EMPTY_PATH),
	                 0);
	assert_int_equal(there.st_ino, opened.st_ino);
	assert_int_equal(query.store.leftovers.count, 0);
	assert_int_equal(pthread_mutex_trylock(&query.store.leftovers.lock), 0);
	pthread_mutex_unlock(&query.store.leftovers.lock);
	import_place_close(&query);
	close(query.store.incoming_fd);
	assert_int_equal(import_place_open(&query, false), 0);
	assert_int_equal(stat(path, &there), 0);
	assert_int_equal(there.st_mode & 0777, 0700);
	check_written("", "");
}

static void a_directory_that_cannot_be_made_is_a_failure(void **state)
{
	(void)state;
	user = 5;
	fail_call(CALL_MKDIRAT, 1, ENOSPC);
	assert_int_equal(import_place_open(&query, false), 7);
	check_said("fail(-28,0,0) ");
	assert_int_equal(query.store.incoming_fd, -1);
}

static void two_imports_do_not_use_it_at_once(void **state)
{
	struct store_query other = query;

	(void)state;
	user = 5;
	assert_int_equal(import_place_open(&query, false), 0);
	check_said("recount(0,0,0) ");
	assert_int_equal(import_place_open(&other, false), EXIT_FAILURE);
	check_said("");
	check_written("", "darkroomd store: another import uses the store\n");
	close(other.store.incoming_fd);
	fail_call(CALL_FLOCK, 1, EIO);
	assert_int_equal(import_place_open(&other, false), 7);
	check_said("fail(-5,0,0) ");
	check_written("", "");
	close(other.store.incoming_fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(root_is_the_owner_for_a_while),
		TEST(root_is_the_owner_for_ever),
		TEST(a_program_of_the_owner_changes_no_user),
		TEST(a_user_that_cannot_be_changed_is_a_failure),
		TEST(a_user_that_cannot_be_changed_later_ends_the_program),
		TEST(a_root_that_cannot_be_read_is_a_failure),
		TEST(the_directory_is_private_empty_and_where_images_are_written),
		TEST(a_directory_that_cannot_be_made_is_a_failure),
		TEST(two_imports_do_not_use_it_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

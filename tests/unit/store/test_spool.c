/* test_spool.c - spooled images: listing, counting attempts, opening, quarantine and removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "log/log.h"
#include "store/spool.h"
#include "store/store_find.h"
#include "store/store_path.h"

static char root[64];
static struct store store;

/* Runs a command on a file of the spool. */
static void run(const char *command, const char *id, const char *name)
{
	char line[512];

	snprintf(line, sizeof line, "%s %s/.spool/%s%s", command, root, id, name);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-spool-XXXXXX");
	return mkdtemp(root) ? store_open(&store, root, false, &cleared) : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static const struct spool_names lake = { .file = "lake.jpg",
	                                 .token = "site",
	                                 .expires = 4102444800 };

/* Spools an image of the name "lake.jpg". */
static void spool(char id[ULID_LENGTH + 1])
{
	char note[SPOOL_NOTE_MAX];
	const struct store_file files[] = { { STORE_ORIGINAL, "jpeg", 4, NULL },
		                            { SPOOL_NOTE, note, spool_note(note, &lake), NULL } };
	struct store_item item = { .place = STORE_SPOOL, .id = id, .file = files, .file_count = 2 };

	ulid_new(id);
	store_put(&store, &item, 1);
	assert_int_equal(item.err, 0);
}

static void a_spooled_image_can_be_opened_until_it_is_unspooled(void **state)
{
	char id[ULID_LENGTH + 1], data[5] = "";
	struct spool_names names;
	uint64_t size;

	(void)state;
	ulid_new(id);
	assert_false(store_is_spooled(&store, id));
	assert_int_equal(spool_open(&store, id, &size, &names), -ENOENT);
	spool(id);
	assert_true(store_is_spooled(&store, id));
	int fd = spool_open(&store, id, &size, &names);

	assert_true(fd >= 0);
	assert_int_equal(size, 4);
	assert_int_equal(read(fd, data, 4), 4);
	close(fd);
	assert_string_equal(data, "jpeg");
	assert_string_equal(names.file, "lake.jpg");
	assert_string_equal(names.token, "site");
	assert_int_equal(names.expires, lake.expires);
	assert_int_equal(store_unspool(&store, id), 0);
	assert_int_equal(store_unspool(&store, id), -ENOENT);
	assert_false(store_is_spooled(&store, id));
}

static void a_note_of_an_earlier_version_names_no_token(void **state)
{
	char id[ULID_LENGTH + 1];
	struct spool_names names;
	uint64_t size;

	(void)state;
	spool(id);
	run("printf '1\\nsea.jpg' >", id, "/note");
	int fd = spool_open(&store, id, &size, &names);

	assert_true(fd >= 0);
	close(fd);
	assert_string_equal(names.file, "sea.jpg");
	assert_string_equal(names.token, "");
	assert_int_equal(names.expires, 0);
}

static mode_t mode_of_problem(const char *id)
{
	char path[STORE_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof path, "%s/" SPOOL_PROBLEM, id);
	assert_int_equal(fstatat(store.quarantine_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void an_image_that_left_has_no_attempts(void **state)
{
	char id[ULID_LENGTH + 1];

	(void)state;
	spool(id);
	for (unsigned attempts = 0; attempts < 4; attempts++) {
		assert_int_equal(spool_set_attempts(&store, id, attempts), 0);
		assert_int_equal(spool_attempts(&store, id), attempts);
	}
	assert_int_equal(spool_quarantine(&store, id, "damaged"), 0);
	assert_int_equal(mode_of_problem(id), 0600);
	assert_int_equal(spool_quarantine(&store, id, "damaged"), -ENOENT);
	assert_int_equal(spool_attempts(&store, id), -1);
}

static void files_not_written_by_the_store_are_invalid(void **state)
{
	char id[4][ULID_LENGTH + 1];
	struct spool_names names;
	uint64_t size;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		spool(id[i]);
	run("printf 'x\\nlake.jpg' >", id[0], "/note");
	run("head -c 1000 /dev/zero >", id[1], "/note");
	run(": >", id[2], "/original.jpg");
	run("rm", id[3], "/note");
	run("touch", "no-image", "");
	run("touch", "01K0000000000000000000000A", "");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(spool_open(&store, id[i], &size, &names), -EINVAL);
	assert_int_equal(spool_open(&store, "01K0000000000000000000000A", &size, &names), -EINVAL);
}

static void short_and_unreadable_notes_have_zero_attempts(void **state)
{
	static const char *const commands[] = { "printf 0 >",    "printf '/\\n' >",
		                                "printf '01' >", "printf ':\n' >",
		                                "rm -f",         "mkdir" };
	char id[ULID_LENGTH + 1];
	struct spool_names names;
	uint64_t size;

	(void)state;
	spool(id);
	for (unsigned i = 0; i < COUNT_OF(commands); i++) {
		run(commands[i], id, "/note");
		assert_int_equal(spool_open(&store, id, &size, &names), -EINVAL);
		assert_int_equal(spool_attempts(&store, id), 0);
	}
}

/* The longest note, without the zeros that end the names. */
static void names_that_do_not_end_are_cut(void **state)
{
	char id[ULID_LENGTH + 1], file[SPOOL_FILE_NAME_MAX];
	struct spool_names names;
	uint64_t size;

	(void)state;
	memset(file, '7', sizeof file - 1);
	file[sizeof file - 1] = '\0';
	spool(id);
	run("{ printf '0\n'; head -c 500 /dev/zero | tr '\\0' 7; } >", id, "/note");
	memset(&names, '#', sizeof names);
	close(spool_open(&store, id, &size, &names));
	assert_string_equal(names.file, file);
	assert_string_equal(names.token, "");
	/* one byte too long */
	run("{ printf '0\n'; head -c 128 /dev/zero | tr '\\0' 7; } >", id, "/note");
	close(spool_open(&store, id, &size, &names));
	assert_string_equal(names.file, file);
	assert_string_equal(names.token, "");
	/* what an earlier note has left in memory is not a token */
	run("printf '0\nab' >", id, "/note");
	close(spool_open(&store, id, &size, &names));
	assert_string_equal(names.file, "ab");
	assert_string_equal(names.token, "");
	/* a name of the longest length keeps its last byte */
	run("{ printf '0\n'; head -c 127 /dev/zero | tr '\\0' 7; printf '\\0site'; } >", id,
	    "/note");
	close(spool_open(&store, id, &size, &names));
	assert_string_equal(names.file, file);
	assert_string_equal(names.token, "site");
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void no_descriptor_stays_open(void **state)
{
	char id[ULID_LENGTH + 1];
	struct spool_names names;
	uint64_t size;

	(void)state;
	unsigned before = open_descriptors();

	spool(id);
	assert_int_equal(spool_set_attempts(&store, id, 2), 0);
	assert_int_equal(spool_attempts(&store, id), 2);
	close(spool_open(&store, id, &size, &names));
	run(": >", id, "/original.jpg");
	assert_int_equal(spool_open(&store, id, &size, &names), -EINVAL);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_spooled_image_can_be_opened_until_it_is_unspooled),
		WITH_STORE(a_note_of_an_earlier_version_names_no_token),
		WITH_STORE(an_image_that_left_has_no_attempts),
		WITH_STORE(files_not_written_by_the_store_are_invalid),
		WITH_STORE(short_and_unreadable_notes_have_zero_attempts),
		WITH_STORE(names_that_do_not_end_are_cut),
		WITH_STORE(no_descriptor_stays_open),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_spool_note.c - notes of spooled images: texts, limits, and system calls that fail. */
#include "base/check.h"
#include "support/store_faults.h"

#include "store/directory.c"
#include "store/spool.c"
#include "store/store.c"
#include "store/store_find.c"
#include "store/store_put.c"

#define ID "01K0000000000000000000000A"

static struct store store;
static struct spool_names names;
static unsigned descriptors;
static uint64_t size;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-note-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, true, &cleared))
		return -1;
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

/* Spools an image with the names. */
static void spool(const struct spool_names *of)
{
	char note[SPOOL_NOTE_MAX];
	const struct store_file files[] = { { STORE_ORIGINAL, "j", 1, NULL },
		                            { SPOOL_NOTE, note, spool_note(note, of), NULL } };
	struct store_item item = { .place = STORE_SPOOL, .id = ID, .file = files, .file_count = 2 };

	(void)store_unspool(&store, ID);
	store_put(&store, &item, 1);
	assert_int_equal(item.err, 0);
}

/* Opens the image. Its names are in `names`. */
static void open_spooled(void)
{
	memset(&names, '#', sizeof names);
	int fd = spool_open(&store, ID, &size, &names);

	assert_true(fd >= 0);
	assert_int_equal(size, 1);
	close(fd);
}

static int attempts(void)
{
	return spool_attempts(&store, ID);
}

static void names_and_texts_return_as_they_were(void **state)
{
	static const size_t lengths[] = { 0, 1, 2, 100, SPOOL_METADATA_MAX };
	struct spool_names all = { .token = "site", .expires = UINT64_MAX };

	(void)state;
	memset(all.file, 'f', sizeof all.file - 1);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		all.metadata.length = lengths[i];
		for (size_t k = 0; k < lengths[i]; k++)
			all.metadata.data[k] = k + 1 == lengths[i] ? '\0' : (char)('a' + k % 26);
		spool(&all);
		open_spooled();
		assert_string_equal(names.file, all.file);
		assert_string_equal(names.token, "site");
		assert_true(names.expires == UINT64_MAX);
		assert_int_equal(names.metadata.length, lengths[i]);
		assert_memory_equal(names.metadata.data, all.metadata.data, lengths[i]);
	}
}

static void a_focal_point_returns_as_it_was(void **state)
{
	static const char *const points[] = { "", "1", "0.5,0.25" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(points); i++)
		for (size_t length = 0; length < 3; length += 2) {
			struct spool_names all = { .file = "f", .token = "t", .expires = 12 };

			snprintf(all.focus, sizeof all.focus, "%s", points[i]);
			all.metadata.length = length;
			memcpy(all.metadata.data, "x", 2);
			spool(&all);
			open_spooled();
			assert_string_equal(names.focus, points[i]);
			assert_true(names.expires == 12);
			assert_int_equal(names.metadata.length, length);
			assert_memory_equal(names.metadata.data, "x", length);
		}
}

static void the_quarantine_says_why(void **state)
{
	char text[32] = "";

	(void)state;
	spool(&(struct spool_names){ .file = "f" });
	assert_int_equal(spool_quarantine(&store, ID, "it is damaged"), 0);
	int fd = openat(store.quarantine_fd, ID "/" SPOOL_PROBLEM, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fault_pread(fd, text, sizeof text - 1, 0), 14);
	assert_string_equal(text, "it is damaged\n");
	close(fd);
}

static void texts_without_an_end_are_left_out(void **state)
{
	static const char *const notes[] = {
		"printf '0\\na\\0b\\0007\\0x'",
		"printf '0\\na\\0b\\0007\\0'",
		"printf '0\\na\\0b\\0007'",
		"{ printf '0\\na\\0b\\0007\\0'; head -c 2048 /dev/zero | tr '\\0' x; printf '\\0'; }",
		"printf '0\\na\\0b'",
	};

	(void)state;
	spool(&(struct spool_names){ .file = "f" });
	for (size_t i = 0; i < COUNT_OF(notes); i++) {
		char command[256];

		snprintf(command, sizeof command, "%s >.spool/" ID "/note", notes[i]);
		shell(command);
		open_spooled();
		assert_string_equal(names.file, "a");
		assert_string_equal(names.token, "b");
		assert_int_equal(names.expires, i < 4 ? 7 : 0);
		assert_int_equal(names.metadata.length, 0);
	}
}

static void a_note_without_names_has_attempts(void **state)
{
	(void)state;
	spool(&(struct spool_names){ .file = "f" });
	shell("printf '5\\n' >.spool/" ID "/note");
	assert_int_equal(attempts(), 5);
	open_spooled();
	assert_string_equal(names.file, "");
	assert_string_equal(names.token, "");
	for (unsigned n = 8; n < 13; n++) {
		assert_int_equal(spool_set_attempts(&store, ID, n), 0);
		assert_int_equal(attempts(), n < 9 ? n : 9);
	}
}

static void attempts_are_flushed_if_they_must_survive(void **state)
{
	(void)state;
	spool(&(struct spool_names){ .file = "f" });
	no_fault();
	assert_int_equal(spool_set_attempts(&store, ID, 1), 0);
	assert_int_equal(calls[CALL_FDATASYNC], 1);
	fail_call(CALL_FDATASYNC, 1, EIO);
	assert_int_equal(spool_set_attempts(&store, ID, 1), -EIO);
	fail_call(CALL_PWRITE, 1, ENOSPC);
	assert_int_equal(spool_set_attempts(&store, ID, 2), -ENOSPC);
	assert_int_equal(calls[CALL_FDATASYNC], 0);
	store_survive_power(&store, false);
	fail_call(CALL_FDATASYNC, 1, EIO);
	assert_int_equal(spool_set_attempts(&store, ID, 3), 0);
	assert_int_equal(calls[CALL_FDATASYNC], 0);
	assert_int_equal(attempts(), 3);
}

static void sizes_are_those_of_spooled_originals(void **state)
{
	(void)state;
	size = 99;
	assert_int_equal(spool_size(&store, ID, &size), -ENOENT);
	spool(&(struct spool_names){ .file = "f" });
	shell("mkdir -p .spool/01K0000000000000000000000B &&"
	      " printf 12345 >.spool/01K0000000000000000000000B/original.jpg");
	assert_int_equal(spool_size(&store, ID, &size), 0);
	assert_int_equal(size, 1);
	assert_int_equal(spool_size(&store, "01K0000000000000000000000B", &size), 0);
	assert_int_equal(size, 5);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(names_and_texts_return_as_they_were),
		WITH_STORE(a_focal_point_returns_as_it_was),
		WITH_STORE(the_quarantine_says_why),
		WITH_STORE(texts_without_an_end_are_left_out),
		WITH_STORE(a_note_without_names_has_attempts),
		WITH_STORE(attempts_are_flushed_if_they_must_survive),
		WITH_STORE(sizes_are_those_of_spooled_originals),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

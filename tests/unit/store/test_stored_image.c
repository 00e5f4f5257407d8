/* test_stored_image.c - the parts of image.json, and its length. */
#include "base/check.h"
#include "store/stored_image.h"
#include "support/store_faults.h"

/* Reads as many bytes as a test wants, and fails once. */
static size_t pread_most;
static int pread_error;
static unsigned preads;

static ssize_t fake_pread(int fd, void *data, size_t size, off_t at)
{
	preads++;
	assert_true(preads < 100000);                              /* it would not end */
	assert_int_equal((size_t)at + size, STORED_IMAGE_MAX + 1); /* all that there is room for */
	if (pread_error) {
		errno = pread_error;
		pread_error = 0;
		return -1;
	}
	return pread(fd, data, size < pread_most ? size : pread_most, at);
}

static time_t test_now; /* of the test */

#include <time.h>
#define time(to) (assert_null(to), test_now)
#undef pread
#define pread fake_pread
#include "store/directory.c"
#undef pread
#include "storage/storage.c"
#include "store/stored_image.c"

#define ID "01K0000000000000000000000A"
#define HERE "01K0/00/" ID

static struct store store;
static unsigned descriptors, cleared;

static int setup(void **state)
{
	(void)state;
	no_fault();
	pread_most = SIZE_MAX;
	pread_error = 0;
	preads = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-image-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, false, &cleared))
		return -1;
	shell("mkdir -p " HERE);
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

static void write_document(const char *data, size_t length)
{
	char path[256];

	snprintf(path, sizeof path, "%s/" HERE "/image.json", test_root);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, length, f), length);
	assert_int_equal(fclose(f), 0);
}

static int open_document(void)
{
	uint64_t size;
	int fd = store_open_file(&store, ID, "image.json", &size);

	assert_true(fd >= 0);
	return fd;
}

static void the_record_is_not_public(void **state)
{
	static const char with[] = "{\"a\":1,\"record\":{\"b\":2}}\n", without[] = "{\"a\":1}\n";

	(void)state;
	assert_int_equal(stored_image_public(with, sizeof with - 1), 6);
	assert_int_equal(stored_image_public(without, sizeof without - 1), sizeof without - 1);
	/* The end of the name lies behind the end of the text. */
	assert_int_equal(stored_image_public(with, 16), 16);
	assert_int_equal(stored_image_public(with, 17), 6);
}

static void a_document_is_read_whole_up_to_its_limit(void **state)
{
	static char data[STORED_IMAGE_MAX + 2], read_data[STORED_IMAGE_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)('a' + i % 26);
	for (size_t length = 0; length <= STORED_IMAGE_MAX + 1; length += STORED_IMAGE_MAX / 2) {
		write_document(data, length);
		memset(read_data, '#', sizeof read_data);
		pread_most = length == STORED_IMAGE_MAX ? 1 : 5000;
		int fd = open_document();

		assert_int_equal(stored_image_read(fd, read_data), length);
		assert_memory_equal(read_data, data, length);
		assert_int_equal(read_data[length], '\0');
		assert_int_equal(read_data[STORED_IMAGE_MAX + 1], '#');
		close(fd);
	}
	pread_most = SIZE_MAX;
	for (size_t more = 1; more <= 2; more++) {
		pread_most = more == 1 ? STORED_IMAGE_MAX / 2 : SIZE_MAX; /* it gets all but one */
		write_document(data, STORED_IMAGE_MAX + more);
		int fd = open_document();

		assert_int_equal(stored_image_read(fd, read_data), -EFBIG);
		assert_int_equal(read_data[STORED_IMAGE_MAX + 1], '#');
		close(fd);
	}
}

static void what_clients_see_ends_as_an_object(void **state)
{
	static const char *const documents[] = { "{\"a\":1,\"record\":{\"b\":2}}\n",
		                                 "{\"a\":1}\n" };
	char space[64];
	struct text t;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(documents); i++) {
		write_document(documents[i], strlen(documents[i]));
		int fd = open_document();

		text_init(&t, space, sizeof space);
		assert_int_equal(stored_image_read_public(fd, &t), 0);
		assert_string_equal(space, "{\"a\":1}\n");
		text_init(&t, space, sizeof space);
		pread_error = EIO;
		assert_int_equal(stored_image_read_public(fd, &t), -EIO);
		assert_int_equal(t.length, 0);
		close(fd);
	}
}

static bool says_skipped(const char *id, const char *variant)
{
	char data[STORED_IMAGE_MAX + 1];
	uint64_t expires;
	int length = stored_image_load(&store, id, data, &expires);

	return length >= 0 && stored_image_says_skipped(data, (size_t)length, variant);
}

static bool has_skipped(const char *document, const char *variant)
{
	write_document(document, strlen(document));
	return says_skipped(ID, variant);
}

/* The longest document, and the longest name. */
static void the_longest_document_has_room(void **state)
{
	static char data[STORED_IMAGE_MAX + 1], space[2 * STORED_IMAGE_MAX];
	static const char begin[] = "{\"degraded_\":1,\"degraded\":[\"skip "
				    "1234567890123456789012345678901\"],\"";
	struct text t;

	(void)state;
	memset(data, 'x', STORED_IMAGE_MAX);
	memcpy(data, begin, sizeof begin - 1);
	memcpy(data + STORED_IMAGE_MAX - 4, "\":1}", 4);
	write_document(data, STORED_IMAGE_MAX);
	assert_true(says_skipped(ID, "1234567890123456789012345678901"));
	assert_false(says_skipped(ID, "123456789012345678901234567890"));
	int fd = open_document();

	text_init(&t, space, sizeof space);
	assert_int_equal(stored_image_read_public(fd, &t), 0);
	assert_int_equal(t.length, STORED_IMAGE_MAX);
	close(fd);
}

static void skipped_variants_are_those_of_the_list(void **state)
{
	static const char list[] = "{\"a\":1,\"degraded\":[\"quality 65\",\"skip blurred\"],\"b\":"
				   "[\"skip other\"],\"record\":{\"x\":1}}\n";

	(void)state;
	assert_true(has_skipped(list, "blurred"));
	assert_false(has_skipped(list, "blur"));
	assert_false(has_skipped(list, "other"));
	assert_false(has_skipped("{\"a\":[\"skip blurred\"]}\n", "blurred"));
	/* In the record it is not the daemon's list. */
	assert_false(
		has_skipped("{\"a\":1,\"record\":{\"x\":1,\"degraded\":[\"skip a\"]}}\n", "a"));
	/* A damaged list has no end. */
	assert_false(has_skipped("{\"a\":1,\"degraded\":[\"skip blurred\",\"b\":1}\n", "blurred"));
	assert_false(has_skipped("", "blurred"));
	assert_false(has_skipped("{\"a\":1,\"degraded\":{\"x\":[\"skip a\"]}}\n", "a"));
	assert_false(has_skipped("{\"a\":1,\"degraded\":[],\"b\":[\"skip a\"]}\n", "a"));
	assert_true(has_skipped("{\"a\":1,\"degraded\":[\"skip a\"]}\n", "a"));
	pread_error = EIO;
	assert_false(says_skipped(ID, "a"));
	assert_false(says_skipped("01K0000000000000000000000B", "a"));
}

/* ---- times and originals ---- */

static void the_earlier_end_counts(void **state)
{
	char id[ULID_LENGTH + 1];

	(void)state;
	ulid_bound(5999, 'A', id);
	assert_int_equal(stored_image_end(id, 0, 0), 0);
	assert_int_equal(stored_image_end(id, 7, 0), 7);
	assert_int_equal(stored_image_end(id, 0, 10000), 15);
	assert_int_equal(stored_image_end(id, 14, 10000), 14);
	assert_int_equal(stored_image_end(id, 16, 10000), 15);
}

static const char document[] =
	"{\"width\":2,\"height\":1,\"degraded\":[\"skip c\"],\"variants\":{\"medium\":{\"bytes\":1},"
	"\"med\":{\"bytes\":1},\"a\":{\"bytes\":1}}}\n";

static struct storage_explanation explained(const char *variant, uint64_t max_age_ms)
{
	static const struct storage files;
	struct storage_explanation e = {
		.id = ID, .label = variant, .max_age_ms = max_age_ms, .storage = &files
	};

	explain(document, sizeof document - 1, 0, &e);
	return e;
}

static void an_image_has_ended_at_its_end(void **state)
{
	(void)state;
	test_now = ulid_time(ID) + 9;
	assert_true(explained("a", 10000).exists);
	test_now++;
	assert_false(explained("a", 10000).exists);
	assert_true(explained("a", 0).exists);
}

static void an_explanation_lists_the_other_variants(void **state)
{
	(void)state;
	assert_string_equal(explained("x", 0).variants, "a, med, medium");
	assert_string_equal(explained("medium", 0).variants, "a, med");
	assert_string_equal(explained("med", 0).variants, "a, medium");
	assert_true(explained("c", 0).is_skipped);
	assert_false(explained("x", 0).is_skipped);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_record_is_not_public),
		WITH_STORE(a_document_is_read_whole_up_to_its_limit),
		WITH_STORE(what_clients_see_ends_as_an_object),
		WITH_STORE(the_longest_document_has_room),
		WITH_STORE(skipped_variants_are_those_of_the_list),
		cmocka_unit_test(the_earlier_end_counts),
		cmocka_unit_test(an_image_has_ended_at_its_end),
		cmocka_unit_test(an_explanation_lists_the_other_variants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

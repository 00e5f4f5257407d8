/* test_import_image.c - an image of an archive: its files, and what is wrong with it. */
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

static size_t rooms[8];
static unsigned room_count;

static void *noting_realloc(void *data, size_t size)
{
	rooms[room_count++ % 8] = size;
	return realloc(data, size);
}

#define realloc noting_realloc
#undef check_expected /* cmocka has one, too */
#include "store/import_image.c"
#undef realloc

#include "base/check.h"
#include "store/store_path.h"

#define ID "01K0000000000000000000000A"
#define OTHER_ID "01K0000000000000000000000B"

static struct import_image image;
static struct stored_info info;
static char root[64];
static struct store store;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-import-XXXXXX");
	return !mkdtemp(root) || store_open(&store, root, false, &cleared) ? -1 : 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	import_image_clear(&image);
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

/* ---- reading ---- */

static const char *source;
static size_t source_at, source_size, piece;

static long read_source(void *arg, void *data, size_t size)
{
	(void)arg;
	size_t left = source_size - source_at, n = left < size ? left : size;

	if (n == 0)
		return -EIO;
	n = n < piece ? n : piece;
	memcpy(data, source + source_at, n);
	source_at += n;
	return (long)n;
}

/* Adds a file of the archive. Returns what import_image_add() returns. */
static int add_piece(const char *name, const char *data, size_t size, const char *tag, size_t most,
                     uint64_t bytes_max)
{
	struct tar_reader r = { .read = read_source,
		                .left = size,
		                .head = { .type = TAR_FILE, .size = size } };

	snprintf(r.pax.tag, sizeof r.pax.tag, "%s", tag);
	source = data;
	source_at = 0;
	source_size = size;
	piece = most;
	int err = import_image_add(&image, name, &r, bytes_max);

	if (!err)
		assert_int_equal(r.left, image.why[0] ? size : 0);
	return err;
}

static void add(const char *name, const char *data, const char *tag)
{
	assert_int_equal(add_piece(name, data, strlen(data), tag, SIZE_MAX, 1 << 30), 0);
}

static void begin(void)
{
	import_image_clear(&image);
	memcpy(image.id, ID, sizeof image.id);
}

static void data_comes_in_pieces(void **state)
{
	enum { SIZE = (3 << 20) + 5 };
	static const size_t pieces[] = { 1000, 1 << 20, (1 << 20) + 1, SIZE_MAX };
	char *data = malloc(SIZE), sum[CHECKSUM_LENGTH + 1];

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i * 7 >> 3);
	checksum_of(data, SIZE, sum);
	for (unsigned i = 0; i < COUNT_OF(pieces); i++) {
		begin();
		room_count = 0;
		assert_int_equal(add_piece("a.jpg", data, SIZE, "tag", pieces[i], SIZE), 0);
		assert_int_equal(room_count, 3);
		assert_true(rooms[0] == 1 << 20 && rooms[1] == 2 << 20 && rooms[2] == SIZE);
		assert_int_equal(image.file_count, 1);
		assert_int_equal(image.bytes, SIZE);
		assert_string_equal(image.file[0].name, "a.jpg");
		assert_string_equal(image.file[0].tag, "tag");
		assert_string_equal(image.file[0].sum, sum);
		assert_int_equal(image.file[0].size, SIZE);
		assert_memory_equal(image.file[0].data, data, SIZE);
		assert_string_equal(image.why, "");
	}
	begin();
	source_size = source_at = 0;
	struct tar_reader r = { .read = read_source, .left = 5, .head = { .size = 5 } };

	assert_int_equal(import_image_add(&image, "a.jpg", &r, 5), -EIO);
	import_image_clear(&image);
	assert_int_equal(image.file_count, 0);
	assert_string_equal(image.id, "");
	assert_int_equal(add_piece("a.jpg", "AAA", 3, "", 1, 3), 0);
	assert_int_equal(image.file[0].size, 3);
	assert_memory_equal(image.file[0].data, "AAA", 3);
	/* Memory grows with the data, whatever is announced. */
	r.left = r.head.size = 200 << 20;
	room_count = 0;
	source = "0123456789";
	source_at = 0;
	source_size = strlen(source);
	assert_int_equal(import_image_add(&image, "b.jpg", &r, 1 << 30), -EIO);
	assert_true(room_count == 1 && rooms[0] == 1 << 20);
	import_image_clear(&image);
	add("empty.jpg", "", "");
	checksum_of("", 0, sum);
	assert_string_equal(image.file[0].sum, sum);
	free(data);
}

static void a_file_may_have_one_byte(void **state)
{
	(void)state;
	begin();
	assert_int_equal(add_piece("c.jpg", "C", 1, "", 1, 4), 0);
	assert_int_equal(image.file[0].size, 1);
	assert_memory_equal(image.file[0].data, "C", 1);
	assert_int_equal(image.bytes, 1);
}

static void bounds_hold(void **state)
{
	char name[16];

	(void)state;
	begin();
	assert_int_equal(add_piece("a.jpg", "12345", 5, "", 9, 8), 0);
	assert_int_equal(add_piece("b.jpg", "678", 3, "", 9, 8), 0);
	assert_string_equal(image.why, "");
	assert_int_equal(add_piece("c.jpg", "9", 1, "", 9, 8), 0);
	assert_string_equal(image.why, "c.jpg: too large: limits.body_bytes bounds it");
	assert_int_equal(image.file_count, 2);
	add("d.jpg", "", ""); /* nothing is added to what is wrong */
	assert_int_equal(image.file_count, 2);
	begin();
	add("a.jpg", "1", "");
	add("b.jpg", "1", "");
	add("b.jpg", "1", "");
	assert_string_equal(image.why, "b.jpg: is there twice");
	begin();
	for (unsigned i = 0; i < EXPORT_FILES_MAX; i++) {
		snprintf(name, sizeof name, "%u.jpg", i);
		add(name, "1", "");
		assert_string_equal(image.why, "");
	}
	add("x.jpg", "1", "");
	assert_string_equal(image.why, "x.jpg: too many files");
	assert_int_equal(image.file_count, EXPORT_FILES_MAX);
}

/* ---- verifying ---- */

struct document {
	const char *id, *more;
	const char *bytes_a; /* of the variant */
	const char *sum_a;   /* NULL: the right one */
	bool is_old, has_original, is_rotten;
};

/* Adds image.json, with the right sum at its end. */
static void add_document(const struct document *d, const char *tag)
{
	static char text[STORED_IMAGE_MAX + 2];
	char sum_a[CHECKSUM_LENGTH + 1], sum_o[CHECKSUM_LENGTH + 1];
	char own[CHECKSUM_LENGTH + 1], original[256] = "";

	checksum_of("AAA", 3, sum_a);
	checksum_of("OOOO", 4, sum_o);
	if (d->has_original)
		snprintf(original, sizeof original, "\"original\":{\"bytes\":4,\"xxh128\":\"%s\"},",
		         sum_o);
	int n = snprintf(text, sizeof text,
	                 "{\"id\":\"%s\"%s,\"width\":1,\"height\":1,\"variants\":{\"a\":{\"bytes\":"
	                 "%s}}",
	                 d->id ? d->id : ID, d->more ? d->more : "", d->bytes_a ? d->bytes_a : "3");

	if (d->is_old) {
		snprintf(text + n, sizeof text - (size_t)n, "}\n");
	} else {
		n += snprintf(text + n, sizeof text - (size_t)n,
		              ",\"record\":{\"upload\":{\"bytes\":4},%s\"variants\":{\"a\":{"
		              "\"xxh128\":\"%s\"}}",
		              original, d->sum_a ? d->sum_a : sum_a);
		checksum_of(text, (size_t)n, own);
		own[0] = (char)(own[0] ^ d->is_rotten);
		snprintf(text + n, sizeof text - (size_t)n, ",\"xxh128\":\"%s\"}}\n", own);
	}
	add("image.json", text, tag);
}

static const char *verify(void)
{
	import_image_verify(&image, &info);
	return image.why;
}

static void an_image_is_whole_and_exact(void **state)
{
	(void)state;
	begin();
	add("a.jpg", "AAA", "");
	add_document(&(struct document){ .id = NULL }, "");
	assert_string_equal(verify(), "");
	assert_int_equal(image.expires, 0);
	assert_int_equal(info.file_count, 1);
	begin();
	add("original.jpg", "OOOO", "");
	add("a.jpg", "AAA", "");
	add_document(&(struct document){ .has_original = true }, "");
	assert_string_equal(verify(), "");
}

static void what_is_wrong_is_named(void **state)
{
	static const char none[] = "image.json: missing or damaged";
	static const char others[] = "image.json: names other files than there are";
	static const struct {
		const char *a; /* NULL: no such file */
		struct document document;
		const char *why;
	} cases[] = {
		{ "AAA", { .id = OTHER_ID }, none },
		{ "AAA", { .id = "" }, none },
		{ "AAA", { .is_rotten = true }, none },
		{ "AAA", { .bytes_a = "\"3\"" }, none },
		{ NULL, { .id = NULL }, "a.jpg: missing" },
		{ "AAB", { .id = NULL }, "a.jpg: damaged" },
		{ "AAA", { .bytes_a = "4" }, "a.jpg: damaged" },
		{ "AAA", { .sum_a = "00000000000000000000000000000000" }, "a.jpg: damaged" },
		{ "AAA", { .has_original = true }, "original.jpg: missing" },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		begin();
		if (cases[i].a)
			add("a.jpg", cases[i].a, "");
		add_document(&cases[i].document, "");
		assert_string_equal(verify(), cases[i].why);
		assert_string_equal(verify(), cases[i].why);
	}
	begin();
	add("a.jpg", "AAA", "");
	assert_string_equal(verify(), none);
	begin();
	add("a.jpg", "AAA", "");
	add("b.jpg", "BBB", "");
	add_document(&(struct document){ .id = NULL }, "");
	assert_string_equal(verify(), others);
}

static void a_document_has_a_bounded_size(void **state)
{
	static char more[STORED_IMAGE_MAX];

	(void)state;
	begin();
	add("image.json", "", "");
	assert_string_equal(verify(), "image.json: missing or damaged");
	for (size_t beyond = 0; beyond < 2; beyond++) {
		begin();
		add_document(&(struct document){ .more = ",\"p\":1" }, "");
		size_t digits = STORED_IMAGE_MAX - image.file[0].size + beyond;

		snprintf(more, sizeof more, ",\"p\":1%0*d", (int)digits, 0);
		begin();
		add("a.jpg", "AAA", "");
		add_document(&(struct document){ .more = more }, "");
		assert_int_equal(image.file[1].size, STORED_IMAGE_MAX + beyond);
		assert_string_equal(verify(), beyond ? "image.json: missing or damaged" : "");
	}
}

/* The tags of files: those of earlier versions have no other checksum. */
static void tags_are_compared(void **state)
{
	char right[STORE_TAG_MAX], wrong[STORE_TAG_MAX], document_sum[CHECKSUM_LENGTH + 1];

	(void)state;
	checksum_of("AAA", 3, right);
	strcpy(wrong, right);
	wrong[CHECKSUM_LENGTH - 1] ^= 1;
	for (unsigned old = 0; old < 2; old++) {
		struct document d = { .is_old = old };

		begin();
		add("a.jpg", "AAA", wrong);
		add_document(&d, "");
		assert_string_equal(verify(), "a.jpg: damaged");
		begin();
		add("a.jpg", "AAA", right);
		add_document(&d, "");
		assert_string_equal(verify(), old ? "image.json: has no checksum" : "");
		checksum_of(image.file[1].data, image.file[1].size, document_sum);
		begin();
		add("a.jpg", "AAA", "short");
		add_document(&d, document_sum);
		assert_string_equal(verify(), old ? "a.jpg: has no checksum" : "");
		begin();
		right[CHECKSUM_LENGTH] = '\0';
		strcat(right, ".1763800000"); /* the time is not compared here */
		add("a.jpg", "AAA", right);
		add("original.jpg", "OOOO", "");
		checksum_of("OOOO", 4, image.file[1].tag);
		add_document(&d, document_sum);
		assert_string_equal(verify(),
		                    old ? "" : "image.json: names other files than there are");
	}
}

static void the_time_of_its_end_is_read(void **state)
{
	static const struct {
		const char *more;
		uint64_t expires;
	} cases[] = {
		{ ",\"expires\":\"1970-01-01T00:00:01Z\"", 1 },
		{ ",\"expires\":\"2026-11-22T11:40:05Z\"", 1795347605 },
		{ ",\"expires\":\"1970-01-01T00:00:00Z\"", 0 },
		{ ",\"expires\":\"1969-12-31T00:00:00Z\"", 0 },
		{ ",\"expires\":\"2026-11-22T11:40:05Zx\"", 0 },
		{ ",\"expires\":\"soon\"", 0 },
		{ ",\"expires\":5", 0 },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		begin();
		add("a.jpg", "AAA", "");
		add_document(&(struct document){ .more = cases[i].more }, "");
		assert_string_equal(verify(), "");
		assert_int_equal(image.expires, cases[i].expires);
	}
}

/* ---- comparing ---- */

static void shell(const char *command)
{
	char line[256];

	snprintf(line, sizeof line, "cd %s && %s", root, command);
	assert_int_equal(system(line), 0);
}

static void an_image_is_compared_with_the_stored_one(void **state)
{
	(void)state;
	begin();
	add("a.jpg", "AAA", "");
	add("b.jpg", "BB", "");
	assert_int_equal(import_image_compare(&image, &store), IMPORT_ABSENT);
	shell("mkdir -p .spool/" ID);
	assert_int_equal(import_image_compare(&image, &store), IMPORT_DIFFERS);
	shell("rm -r .spool/" ID);
	shell("mkdir -p 01K0/00/" ID);
	shell("cd 01K0/00/" ID " && printf AAA > a.jpg && printf BB > b.jpg");
	int fd = dup(0);

	close(fd);
	assert_int_equal(import_image_compare(&image, &store), IMPORT_SAME);
	assert_int_equal(dup(0), fd); /* no descriptor stays open */
	close(fd);
	shell("printf BC > 01K0/00/" ID "/b.jpg");
	assert_int_equal(import_image_compare(&image, &store), IMPORT_DIFFERS);
	shell("printf BBB > 01K0/00/" ID "/b.jpg");
	assert_int_equal(import_image_compare(&image, &store), IMPORT_DIFFERS);
	shell("cd 01K0/00/" ID " && printf BB > b.jpg && printf AAB > a.jpg");
	assert_int_equal(import_image_compare(&image, &store), IMPORT_DIFFERS);
	shell("cd 01K0/00/" ID " && printf AAA > a.jpg && rm b.jpg");
	assert_int_equal(import_image_compare(&image, &store), IMPORT_DIFFERS);
	import_image_clear(&image);
	memcpy(image.id, ID, sizeof image.id);
	assert_int_equal(import_image_compare(&image, &store), IMPORT_SAME);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(data_comes_in_pieces),
		TEST(bounds_hold),
		TEST(a_file_may_have_one_byte),
		TEST(an_image_is_whole_and_exact),
		TEST(what_is_wrong_is_named),
		TEST(a_document_has_a_bounded_size),
		TEST(tags_are_compared),
		TEST(the_time_of_its_end_is_read),
		TEST(an_image_is_compared_with_the_stored_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_profile.c - the file with the weights of a run: it is read as it was printed, and each
 * fault in it is reported with its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "layout/partition.h"
#include "sched/core/profile.h"
#include "stages.h"
#include "support/file_fixture.h"

static char path[] = "/tmp/darkroom-test-profile-XXXXXX";
static struct text errors;

static int make_file(void **state)
{
	(void)state;
	return file_make(path);
}

static int remove_file(void **state)
{
	(void)state;
	text_fini(&errors);
	return unlink(path);
}

static int read_bytes(struct partition_weights *w, const char *data, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	return profile_read(w, path, &errors);
}

static int read_text(struct partition_weights *w, const char *data)
{
	return read_bytes(w, data, strlen(data));
}

static struct partition_weights some(void)
{
	struct partition_weights w = { .stage_count = STAGE_ID_COUNT };

	for (unsigned i = 0; i < STAGE_ID_COUNT; i++) {
		w.stage_ns[i] = (i + 1) * UINT64_C(123456789012);
		w.stage_events[i] = 1000 * i;
	}
	w.edge_events[STAGE_JPEG_DECODE][STAGE_SCALE] = 3000;
	w.edge_events[STAGE_SCALE][STAGE_SCALE] = 7;
	w.edge_events[STAGE_SCALE][STAGE_BLUR] = UINT64_C(1) << 55;
	w.edge_events[STAGE_STATS][STAGE_ACCEPT_READ] = 1;
	return w;
}

/* Returns the weights as a profile; the caller frees it. */
static struct text printed(const struct partition_weights *w)
{
	struct text t;

	text_init_growable(&t, 1 << 20);
	profile_print(w, &t);
	assert_false(t.overflowed);
	return t;
}

static void a_profile_is_read_as_it_was_printed(void **state)
{
	struct partition_weights w = some(), back;
	struct text t = printed(&w);

	(void)state;
	assert_int_equal(read_text(&back, t.data), 0);
	assert_memory_equal(&back, &w, sizeof w);
	assert_string_equal(errors.data, "");
	text_fini(&t);
}

static void stages_and_edges_may_be_missing(void **state)
{
	struct partition_weights w;

	(void)state;
	assert_int_equal(
		read_text(&w, "[stage.blur]\nservice_ns = 5\n[stage.scale]\nto_blur=0 ; none\n"),
		0);
	assert_int_equal(w.stage_ns[STAGE_BLUR], 5);
	assert_int_equal(w.stage_ns[STAGE_SCALE], 0);
	assert_int_equal(w.stages, 0);
	assert_int_equal(w.stage_count, STAGE_ID_COUNT);
}

static void faults_are_reported_with_their_lines(void **state)
{
	static const struct {
		const char *data, *line, *says;
	} bad[] = {
		{ "[stage.blur]\nservice_ns = 12x\n",
		  ":2: ", "stage.blur.service_ns = \"12x\": expected a whole number" },
		{ "[stage.blur]\nservice_ns = -1\n", ":2: ", "\"-1\"" },
		{ "[stage.blur]\nservice_ns = 1e9\n", ":2: ", "\"1e9\"" },
		{ "[stage.blur]\nservice_ns = 0x10\n", ":2: ", "\"0x10\"" },
		{ "[stage.blur]\nservice_ns =\n", ":2: ", "service_ns = \"\"" },
		{ "[stage.blur]\nevents = 1 2\n", ":2: ", "\"1 2\"" },
		{ "[stage.blur]\nservice_ns = 72057594037927936\n", ":2: ", "not more than 2^56" },
		{ "[stage.blur]\nservice_ns = 99999999999999999999999999\n",
		  ":2: ", "not more than 2^56" },
		{ "[stage.blur]\nservice_us = 1\n", ":2: ", "stage.blur.service_us = " },
		{ "[stage.blur]\n\nto_jpeg_decode = 1\n",
		  ":3: ", "to_jpeg_decode = \"1\": expected service_ns, events, or to_NAME" },
		{ "[stage.blur]\nto_ = 1\n", ":2: ", "stage.blur.to_ = " },
		{ "[stage.blurr]\nservice_ns = 1\n", ":1: ", "[stage.blurr]: expected" },
		{ "[server]\nservice_ns = 1\n", ":1: ", "[server]: expected" },
		{ "[stage.]\nservice_ns = 1\n", ":1: ", "[stage.]: expected" },
		{ "[stage.blur]\nservice_ns = 1\nservice_ns = 2\n", ":3: ", "first on line 2" },
		{ "[stage.blur]\nservice_ns = 1\n[stage.blur]\n", ":3: ", "first on line 1" },
		{ "service_ns = 1\n", ":1: ", "before the first" },
		{ "[stage.blur\nservice_ns = 1\n", ":1: ", "[SECTION]" },
		{ "[stage.blur]\nevents = 1\n", ": ", "no stage has taken any time" },
		{ "", ": ", "no stage has taken any time" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct partition_weights w;
		int err = read_text(&w, bad[i].data);

		if (err != -EINVAL || strncmp(errors.data, path, strlen(path)) != 0 ||
		    !strstr(errors.data, bad[i].line) || !strstr(errors.data, bad[i].says))
			print_error("%zu: %d \"%s\"\n", i, err, errors.data);
		assert_int_equal(err, -EINVAL);
		assert_int_equal(strncmp(errors.data, path, strlen(path)), 0);
		assert_non_null(strstr(errors.data, bad[i].line));
		assert_non_null(strstr(errors.data, bad[i].says));
	}
}

static void all_faults_are_reported_at_once(void **state)
{
	struct partition_weights w;

	(void)state;
	assert_int_equal(
		read_text(&w,
	                  "[stage.blur]\nservice_ns = x\nevents = y\n[stage.none]\nevents = 1\n"),
		-EINVAL);
	assert_non_null(strstr(errors.data, ":2: "));
	assert_non_null(strstr(errors.data, ":3: "));
	assert_non_null(strstr(errors.data, ":4: "));
	assert_null(strstr(errors.data, ":5: "));
}

static void unreadable_files_are_named(void **state)
{
	struct partition_weights w;

	(void)state;
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(profile_read(&w, "/nonexistent/profile", &errors), -ENOENT);
	assert_non_null(strstr(errors.data, "/nonexistent/profile"));
	assert_true(profile_read(&w, "/tmp", &errors) < 0);
}

/* Random bytes cause neither a crash nor an overflow of sums. */
static void random_bytes_are_read_safely(void **state)
{
	struct partition_weights w = some();
	uint64_t seed = 7;
	struct text good = printed(&w);
	size_t size = good.length;
	char data[8192];

	(void)state;
	assert_true(size <= sizeof data);
	for (unsigned round = 0; round < 500; round++) {
		memcpy(data, good.data, size);
		for (unsigned k = 0; k < 4; k++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			data[(seed >> 33) % size] = (char)(seed >> 25);
		}
		if (read_bytes(&w, data, (seed >> 40) % 3 ? size : (seed >> 33) % size) == 0) {
			struct partition p;

			w.stages = (1u << STAGE_ID_COUNT) - 1;
			assert_int_equal(partition_build(&p, &w, 2, 4, NULL), 0);
		} else {
			assert_true(errors.length > 0);
		}
	}
	text_fini(&good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_is_read_as_it_was_printed),
		cmocka_unit_test(stages_and_edges_may_be_missing),
		cmocka_unit_test(faults_are_reported_with_their_lines),
		cmocka_unit_test(all_faults_are_reported_at_once),
		cmocka_unit_test(unreadable_files_are_named),
		cmocka_unit_test(random_bytes_are_read_safely),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}

/* test_profile.c - the file with the weights of a run: it is read as it was written, and each
 * fault in it is reported with its line. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

static int write_profile(const struct partition_weights *w)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600), err;

	assert_true(fd >= 0);
	err = profile_write(w, fd);
	close(fd);
	return err;
}

static void a_profile_is_read_as_it_was_written(void **state)
{
	struct partition_weights w = some(), back;
	char longer[10000];

	(void)state;
	memset(longer, 'x', sizeof longer);
	(void)read_bytes(&back, longer, sizeof longer); /* longer contents are replaced */
	assert_int_equal(write_profile(&w), 0);
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(profile_read(&back, path, &errors), 0);
	assert_memory_equal(&back, &w, sizeof w);
	assert_string_equal(errors.data, "");
}

static void a_failed_write_leaves_an_empty_file(void **state)
{
	struct rlimit limit, small;
	struct partition_weights w = some(), back;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){ .rlim_cur = 200, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	signal(SIGXFSZ, SIG_IGN);
	int err = write_profile(&w);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(err, -EFBIG);
	text_fini(&errors);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(profile_read(&back, path, &errors), -EINVAL);
	assert_non_null(strstr(errors.data, "no stage has taken any time"));
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
		  ":2: ", "value \"12x\": expected a whole number" },
		{ "[stage.blur]\nservice_ns = -1\n", ":2: ", "\"-1\"" },
		{ "[stage.blur]\nservice_ns = 1e9\n", ":2: ", "\"1e9\"" },
		{ "[stage.blur]\nservice_ns = 0x10\n", ":2: ", "\"0x10\"" },
		{ "[stage.blur]\nservice_ns =\n", ":2: ", "value \"\"" },
		{ "[stage.blur]\nevents = 1 2\n", ":2: ", "\"1 2\"" },
		{ "[stage.blur]\nservice_ns = 72057594037927936\n", ":2: ", "not more than 2^56" },
		{ "[stage.blur]\nservice_ns = 99999999999999999999999999\n",
		  ":2: ", "not more than 2^56" },
		{ "[stage.blur]\nservice_us = 1\n", ":2: ", "key \"service_us\"" },
		{ "[stage.blur]\n\nto_jpeg_decode = 1\n",
		  ":3: ", "key \"to_jpeg_decode\": expected service_ns, events, or to_NAME" },
		{ "[stage.blur]\nto_ = 1\n", ":2: ", "key \"to_\"" },
		{ "[stage.blurr]\nservice_ns = 1\n", ":1: ", "section \"stage.blurr\"" },
		{ "[server]\nservice_ns = 1\n", ":1: ", "section \"server\"" },
		{ "[stage.]\nservice_ns = 1\n", ":1: ", "section" },
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
	char good[8192], data[8192];
	size_t size;
	FILE *f;

	(void)state;
	assert_int_equal(write_profile(&w), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	size = fread(good, 1, sizeof good, f);
	fclose(f);
	for (unsigned round = 0; round < 500; round++) {
		memcpy(data, good, size);
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_is_read_as_it_was_written),
		cmocka_unit_test(a_failed_write_leaves_an_empty_file),
		cmocka_unit_test(stages_and_edges_may_be_missing),
		cmocka_unit_test(faults_are_reported_with_their_lines),
		cmocka_unit_test(all_faults_are_reported_at_once),
		cmocka_unit_test(unreadable_files_are_named),
		cmocka_unit_test(random_bytes_are_read_safely),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}

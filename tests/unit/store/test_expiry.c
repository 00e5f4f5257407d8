/* test_expiry.c - notes of the times of images, and figures that change with each image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "access/tokens.h"
#include "store/checksum.h"
#include "store/expiry.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/usage.h"
#include "support/stored_fixture.h"

#define NOW UINT64_C(1763800000)

static char root[64];
static struct store store;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-expiry-XXXXXX");
	return !mkdtemp(root) || store_open(&store, root, false, &cleared) ? -1 : 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static const char *put(const char *token, size_t bytes, uint64_t expires)
{
	return stored_put(&store, NULL, token, bytes, expires);
}

static void what_is_due_is_listed_by_the_hour(void **state)
{
	static const char id[] = "01K0000000000000000000000A";
	struct expiry_due due[8];

	(void)state;
	assert_int_equal(expiry_list(&store, NOW, due, 8), 0);
	assert_int_equal(expiry_note(&store, id, NOW + 1), 0);
	assert_int_equal(expiry_note(&store, id, NOW - 7200), 0);
	assert_int_equal(expiry_note(&store, id, NOW), 0);
	assert_int_equal(expiry_note(&store, id, UINT64_C(10000000000)), -ERANGE);
	assert_int_equal(expiry_list(&store, NOW, due, 8), 2);
	assert_int_equal(due[0].expires, NOW - 7200);
	assert_int_equal(due[1].expires, NOW);
	assert_string_equal(due[1].id, id);
	assert_int_equal(expiry_list(&store, NOW, due, 1), 1);
	expiry_forget(&store, id, NOW - 7200);
	expiry_forget(&store, id, NOW);
	assert_int_equal(expiry_list(&store, NOW, due, 8), 0);
	assert_int_equal(expiry_list(&store, NOW + 1, due, 8), 1);
}

static void only_a_sweep_changes_the_time_of_the_last_one(void **state)
{
	static const char id[] = "01K0000000000000000000000A";
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	(void)state;
	assert_int_equal(expiry_note_sweep(&store), 0);
	assert_in_range(time(NULL) - expiry_last_sweep(&store), 0, 60);
	assert_int_equal(utimensat(store.root_fd, ".expiry/swept", times, 0), 0);
	assert_int_equal(expiry_note(&store, id, NOW + 7200), 0);
	assert_int_equal(expiry_last_sweep(&store), 1000);
}

static void files_have_the_time_in_their_tag(void **state)
{
	char tag[STORE_TAG_MAX], other[STORE_TAG_MAX];
	struct expiry_due due[1];
	uint64_t size;

	(void)state;
	const char *id = put("", 10, NOW);
	int fd = store_open_file(&store, id, "a.jpg", &size);

	assert_int_equal(store_tag(fd, tag), NOW);
	assert_int_equal(strlen(tag), CHECKSUM_LENGTH);
	close(fd);
	assert_int_equal(expiry_list(&store, NOW, due, 1), 1);
	assert_string_equal(due[0].id, id);
	int free_fd = dup(0);

	close(free_fd);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0);
	assert_int_equal(dup(0), free_fd); /* none stays open */
	close(free_fd);
	assert_int_equal(expiry_list(&store, NOW, due, 1), 0);
	id = put("", 10, 0);
	fd = store_open_file(&store, id, "a.jpg", &size);
	assert_int_equal(store_tag(fd, other), 0);
	close(fd);
	assert_int_equal(expiry_list(&store, NOW, due, 1), 0);
}

/* ---- figures ---- */

static void check_figures(uint64_t images, uint64_t bytes, bool is_complete)
{
	struct usage_total total = usage_total(&store.usage);

	assert_int_equal(total.all.images, images);
	assert_int_equal(total.all.bytes, bytes);
	assert_int_equal(total.is_complete, is_complete);
}

static void images_are_counted_once_beside_a_count(void **state)
{
	char first[ULID_LENGTH + 1], second[ULID_LENGTH + 1], new[ULID_LENGTH + 1];

	(void)state;
	strcpy(first, put("site", 100, 0));
	strcpy(second, put("site", 20, 0));
	usage_switch(&store.usage, &store, true);
	check_figures(0, 0, false);
	put("app", 3, 0); /* not listed yet: the count will see it */
	check_figures(0, 0, false);
	assert_int_equal(usage_count(&store.usage, &store, 1), 0); /* lists */
	strcpy(new, put("app", 400, 0));                           /* is not in the list */
	check_figures(1, 400, false);
	assert_int_equal(store_remove(&store, STORE_IMAGES, second), 0); /* is in it */
	check_figures(1, 400, false);
	assert_int_equal(store_remove(&store, STORE_IMAGES, new), 0);
	check_figures(0, 0, false);
	assert_int_equal(usage_count(&store.usage, &store, 100), 1);
	check_figures(2, 103, true);
	assert_int_equal(store_remove(&store, STORE_IMAGES, first), 0);
	check_figures(1, 3, true);
}

static void figures_outlive_a_clean_stop_only(void **state)
{
	unsigned cleared;

	(void)state;
	usage_switch(&store.usage, &store, true);
	assert_int_equal(usage_count(&store.usage, &store, 100), 1);
	put("site", 7, 0);
	put("", 5, 0);
	usage_save(&store.usage, &store);
	store_close(&store);
	assert_int_equal(store_open(&store, root, false, &cleared), 0);
	usage_switch(&store.usage, &store, true);
	check_figures(2, 12, true);
	store_close(&store); /* as a crash */
	assert_int_equal(store_open(&store, root, false, &cleared), 0);
	usage_switch(&store.usage, &store, true);
	check_figures(0, 0, false);
	assert_int_equal(usage_count(&store.usage, &store, 100), 1);
	check_figures(2, 12, true);
	usage_save(&store.usage, &store);
	usage_demand_recount(&store); /* darkroomd store remove, while no daemon runs */
	store_close(&store);
	assert_int_equal(store_open(&store, root, false, &cleared), 0);
	usage_switch(&store.usage, &store, true);
	check_figures(0, 0, false);
}

static void a_damaged_file_of_figures_is_ignored(void **state)
{
	static const char *const texts[] = { "", "darkroom-usage 1 20000\n", "x\n1 2 3 =\n",
		                             "darkroom-usage 1 20000\n1 2\n",
		                             "darkroom-usage 1 20000\n1 2 0 =" };
	char path[128];

	(void)state;
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(path, sizeof path, "%s/" USAGE_FILE, root);
		FILE *f = fopen(path, "w");

		assert_true(f && fputs(texts[i], f) >= 0 && fclose(f) == 0);
		usage_switch(&store.usage, &store, true);
		check_figures(0, 0, false);
		assert_int_not_equal(access(path, F_OK), 0);
		usage_switch(&store.usage, &store, false);
	}
}

static void a_quota_counts_what_is_stored_and_what_is_in_progress(void **state)
{
	const struct token_quota limits = { .images = 2, .bytes = 100, .uploads = 4 };
	struct usage *u = &store.usage;
	uint64_t used = 0;

	(void)state;
	usage_switch(u, &store, true);
	assert_int_equal(usage_count(u, &store, 100), 1);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 60, &used), USAGE_GRANTED);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 41, &used), USAGE_BYTES);
	assert_int_equal(used, 60);
	assert_int_equal(usage_reserve(u, "other", &limits, 2, 100, &used), USAGE_GRANTED);
	assert_int_equal(usage_reserve(u, "site", &limits, 2, 1, &used), USAGE_IMAGES);
	assert_int_equal(used, 1);
	put("site", 30, 0);
	usage_release(u, "site", 1, 60, 0);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 70, &used), USAGE_GRANTED);
	usage_release(u, "site", 1, 70, 0);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 1, &used), USAGE_GRANTED);
	usage_release(u, "site", 1, 1, 0);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 1, &used), USAGE_GRANTED);
	usage_release(u, "site", 1, 1, 0);
	assert_int_equal(usage_reserve(u, "site", &limits, 1, 1, &used), USAGE_UPLOADS);
	assert_int_equal(used, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_due_is_listed_by_the_hour, setup, teardown),
		cmocka_unit_test_setup_teardown(only_a_sweep_changes_the_time_of_the_last_one,
		                                setup, teardown),
		cmocka_unit_test_setup_teardown(files_have_the_time_in_their_tag, setup, teardown),
		cmocka_unit_test_setup_teardown(images_are_counted_once_beside_a_count, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(figures_outlive_a_clean_stop_only, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_file_of_figures_is_ignored, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(
			a_quota_counts_what_is_stored_and_what_is_in_progress, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_recovery.c - results of recovered images, and failures of starting them. */
#include "support/recovery_harness.h"

/* ---- results ---- */

static void results_follow_from_the_problem(void **state)
{
	static const struct {
		unsigned status;
		const char *slug;
		enum recovery_result result;
	} cases[] = {
		{ 413, "too-many-pixels", RECOVERY_REFUSED },
		{ 499, "too-many-pixels", RECOVERY_REFUSED },
		{ 500, "storage-failed", RECOVERY_LATER },
		{ 500, "internal", RECOVERY_FAULT },
		{ 503, "overloaded", RECOVERY_LATER },
		{ 507, "storage-full", RECOVERY_LATER },
	};
	static struct image image;

	(void)state;
	assert_int_equal(result_of(&image), RECOVERY_STORED);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		atomic_store(&image.has_failed, true);
		image.problem.status = cases[i].status;
		image.problem.slug = cases[i].slug;
		assert_int_equal(result_of(&image), cases[i].result);
	}
}

static void check_started(struct image *image)
{
	uint32_t width, height;

	assert_int_equal(image->source_size, 4);
	assert_memory_equal(image->source, "jpeg", 4);
	assert_string_equal(image->file_name, "lake.jpg");
	assert_string_equal(image->part_name, "");
	assert_true(image->is_spooled);
	assert_null(image->upload->waiter);
	assert_int_equal(image->upload->body_refs, 1);
	assert_int_equal(image->upload->undone, 1);
	assert_string_equal(image->upload->token_name, "site");
	assert_int_equal(image->upload->expires, lake.expires);
	assert_string_equal(image->upload->focus, "0.25,0.5");
	assert_int_equal(image->upload->metadata.length, 4);
	assert_memory_equal(image->upload->metadata.data, "a\0b", 4);
	assert_int_equal(image->upload->level, 0); /* whatever the load is */
	assert_int_equal(image->upload->images_max, 1);
	assert_ptr_equal(image->upload->bad_part + 0, image->upload->image);
	assert_int_equal(body_bytes(), 4 * started_count);
	assert_int_equal(service.in_flight, started_count);
	assert_int_equal(attempts_of(image->id), 1); /* counted before it starts */
	assert_true(inflight_find(&service.inflight, image->id, &width, &height));
}

static void a_stored_image_is_recovered(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	when_started = check_started;
	assert_false(pass_once());
	assert_int_equal(started_total, 1);
	assert_int_equal(r->recovered, 1);
	assert_int_equal(r->quarantined, 0);
	assert_int_equal(error_count + warning_count, 0);
	assert_int_equal(notice_count, 1);
	assert_false(pass_once()); /* nothing is left */
	assert_int_equal(notice_count, 1);
	assert_true(store_has_image(&service.store, id));
	assert_int_equal(attempts_of(id), -1);
	assert_false(r->is_called);
}

static void without_room_on_the_disk_no_attempt_counts(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = RECOVERY_LATER;
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	assert_int_equal(r->recovered + r->quarantined, 0);
	assert_false(is_quarantined(id));
	result_next = RECOVERY_STORED;
	assert_false(pass_once());
	assert_int_equal(r->recovered, 1);
}

static void an_image_that_fails_three_times_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = RECOVERY_FAULT;
	for (int i = 1; i <= SPOOL_ATTEMPTS_MAX; i++) {
		assert_true(pass_once());
		assert_int_equal(attempts_of(id), i);
		assert_false(is_quarantined(id));
	}
	assert_false(pass_once());
	assert_int_equal(started_total, SPOOL_ATTEMPTS_MAX);
	assert_true(is_quarantined(id));
	assert_int_equal(r->quarantined, 1);
	assert_int_equal(r->recovered, 0);
}

static void a_refused_image_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = RECOVERY_REFUSED;
	assert_false(pass_once());
	assert_true(is_quarantined(id));
	assert_int_equal(r->quarantined, 1);
	assert_int_equal(attempts_of(id), -1);
}

static void an_image_that_cannot_be_quarantined_does_not_count(void **state)
{
	const char *id = spool_one('A', 3);
	int fd = service.store.quarantine_fd;

	(void)state;
	service.store.quarantine_fd = -1;
	assert_false(pass_once());
	assert_int_equal(r->quarantined, 0);
	assert_int_equal(attempts_of(id), 3);
	service.store.quarantine_fd = fd;
	quarantine(r, "01K0000000000000000000000Z", "it is not there");
	assert_int_equal(r->quarantined, 0);
}

static void a_damaged_entry_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0), *other = spool_one('B', 0);

	(void)state;
	char path[128];

	snprintf(path, sizeof path, "%s/.spool/%s/note", root, id);
	assert_int_equal(unlink(path), 0);
	assert_false(pass_once());
	assert_true(is_quarantined(id));
	assert_true(store_has_image(&service.store, other));
	assert_int_equal(r->recovered, 1);
}

static void an_image_larger_than_the_budget_is_quarantined(void **state)
{
	(void)state;
	for (uint64_t total = 8; total >= 6; total -= 2) {
		const char *id = spool_one('A', 0);

		budget_fini(&service.budget);
		budget_init(&service.budget, total);
		assert_int_equal(budget_max(&service.budget), total / 2);
		assert_false(pass_once());
		assert_int_equal(r->recovered, 1); /* the first one fits */
		assert_int_equal(is_quarantined(id), total == 6);
		if (total == 8)
			assert_int_equal(store_remove(&service.store, STORE_IMAGES, id), 0);
	}
}

static void a_stored_image_only_leaves_the_spool(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	store_image(id);
	assert_false(pass_once());
	assert_int_equal(started_total, 0);
	assert_int_equal(attempts_of(id), -1);
	assert_int_equal(r->recovered, 0);
	id = spool_one('B', 0);
	store_image(id);
	int fd = service.store.trash_fd;

	service.store.trash_fd = -1; /* it cannot be unspooled */
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	service.store.trash_fd = fd;
	assert_int_equal(r->known, 1); /* the first one */
	assert_false(pass_once());
	assert_int_equal(attempts_of(id), -1);
	assert_int_equal(r->known, 2);
}

/* ---- failures of feeding ---- */

static void an_attempt_that_cannot_be_counted_is_made(void **state)
{
	(void)state;
	spool_one('A', 0);
	count_error = -EIO;
	assert_false(pass_once());
	assert_int_equal(warning_count, 1);
	assert_int_equal(r->recovered, 1);
}

/* The upload of a client has the same id. */
static void an_image_in_flight_keeps_its_slot_free(void **state)
{
	struct spooled spooled = { .attempts = 0 };
	struct budget_body none = { 0 };
	uint64_t size;

	(void)state;
	memcpy(spooled.id, spool_one('A', 0), sizeof spooled.id);
	struct upload *u = upload_new(&service, 0, NULL, &none, 1, 0);
	struct image *image = upload_add_image(u, NULL, 0, "", 0, "", 0);

	memcpy(image->id, spooled.id, sizeof image->id);
	inflight_add(&service.inflight, image);
	int fd = open_one(&spooled, &size);

	assert_int_equal(feed(r, &spooled, fd, size, &room, &lake), -EALREADY);
	for (unsigned i = 0; i < RECOVERY_AT_ONCE; i++)
		assert_false(r->slot[i].is_taken);
	assert_null(inflight_remove(&service.inflight, image));
	upload_unref(u);
}

static void small_bodies_are_those_up_to_the_limit(void **state)
{
	uint64_t small = budget_small_max(&service.budget);

	(void)state;
	assert_true(reserve_room(r, &room, small));
	assert_int_equal(service.budget.used[BUDGET_SMALL_BODY], small);
	release_room(r, &room);
	assert_true(reserve_room(r, &room, small + 1));
	assert_int_equal(service.budget.used[BUDGET_BODY], small + 1);
	release_room(r, &room);
}

/* Reading sets no errno at the end of a file. */
static void a_file_that_ends_early_is_not_read_forever(void **state)
{
	uint8_t data[8];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	errno = EINTR;
	assert_int_equal(read_all(fd, data, sizeof data), -EIO);
	close(fd);
}

static void a_failed_start_keeps_nothing(void **state)
{
	struct spooled spooled = { .attempts = 0 };
	uint64_t size;

	(void)state;
	memcpy(spooled.id, spool_one('A', 0), sizeof spooled.id);
	for (int i = 0; i < 5; i++) {
		int fd = open_one(&spooled, &size), expected = i == 4 ? -EIO : -ENOMEM;

		pool_gets_left = i < 2 ? i : 1000;
		if (i == 2) { /* the file is shorter than it was */
			assert_true(budget_body_try(&service.budget, &room, 1));
			size++;
			expected = -EIO;
		}
		if (i == 3) { /* its client removes it */
			assert_int_equal(store_unspool(&service.store, spooled.id), 0);
			expected = -ENOENT;
		}
		if (i == 4)
			read_error = EIO;
		assert_int_equal(feed(r, &spooled, fd, size, &room, &lake), expected);
		assert_int_equal(body_bytes(), 0);
		assert_int_equal(service.in_flight, 0);
		assert_int_equal(started_total, 0);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
		if (i == 3)
			spool_one('A', 0);
	}
}

static void a_start_that_fails_is_delayed(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	pool_gets_left = 0;
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	pool_gets_left = 1000;
	read_error = EINTR;
	read_most = 1;
	when_started = check_started;
	assert_false(pass_once());
	assert_int_equal(r->recovered, 1);
}

static void a_spool_that_cannot_be_listed_is_delayed(void **state)
{
	int fd = service.store.spool_fd;

	(void)state;
	spool_one('A', 0);
	service.store.spool_fd = -1;
	assert_true(pass_once());
	service.store.spool_fd = fd;
	assert_false(pass_once());
	assert_int_equal(r->recovered, 1);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_follow_from_the_problem),
		WITH_STORE(a_stored_image_is_recovered),
		WITH_STORE(without_room_on_the_disk_no_attempt_counts),
		WITH_STORE(an_image_that_fails_three_times_is_quarantined),
		WITH_STORE(a_refused_image_is_quarantined),
		WITH_STORE(an_image_that_cannot_be_quarantined_does_not_count),
		WITH_STORE(a_damaged_entry_is_quarantined),
		WITH_STORE(an_image_larger_than_the_budget_is_quarantined),
		WITH_STORE(a_stored_image_only_leaves_the_spool),
		WITH_STORE(an_attempt_that_cannot_be_counted_is_made),
		WITH_STORE(an_image_in_flight_keeps_its_slot_free),
		WITH_STORE(small_bodies_are_those_up_to_the_limit),
		cmocka_unit_test(a_file_that_ends_early_is_not_read_forever),
		WITH_STORE(a_failed_start_keeps_nothing),
		WITH_STORE(a_start_that_fails_is_delayed),
		WITH_STORE(a_spool_that_cannot_be_listed_is_delayed),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

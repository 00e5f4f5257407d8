/* test_upload_key.c - what becomes of a key whose record another node writes as well. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/pool.h"
#include "image/image_service.h"

static int write_error;
static struct conf_epoch epoch;
static unsigned removals;

static int read_none(struct storage *st, struct key_record *r)
{
	(void)st, (void)r;
	return -ENOENT;
}

static int fail_to_write(struct storage *st, struct key_record *r)
{
	(void)st;
	assert_false(r->is_settled);
	return write_error;
}

static int fate_told, fates_asked;

static int tell_fate(struct storage *st, const char *id, bool ends)
{
	(void)st, (void)id;
	fates_asked += ends;
	return fate_told;
}

static int write_nothing(struct storage *st, struct key_record *r)
{
	(void)st, (void)r;
	fail();
	return -EIO;
}

static int count_removal(struct storage *st, const char *id)
{
	(void)st, (void)id;
	removals++;
	return 0;
}

/* A settled record of another content. */
static int read_other(struct storage *st, struct key_record *r)
{
	(void)st;
	memset(r->fingerprint, 1, sizeof r->fingerprint);
	r->age_s = 0;
	epoch.conf.store.idempotency_age_ms = 60000;
	r->is_settled = true;
	r->failed = 0;
	r->count = 1;
	r->id = pool_get(sizeof *r->id);
	assert_non_null(r->id);
	memcpy(r->id[0], "01K0000000000000000000000A", sizeof *r->id);
	return 0;
}

static int fail_to_look(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
                        storage_reader *reader, void *arg)
{
	(void)st, (void)id, (void)count, (void)reader, (void)arg;
	return -EIO;
}

static int is_there;

static int look(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
                storage_reader *reader, void *arg)
{
	(void)st, (void)id, (void)count;
	if (is_there > 0)
		reader("", 0, 0, arg);
	return is_there < 0 ? is_there : 0;
}

static int read_unsettled(struct storage *st, struct key_record *r)
{
	int err = read_other(st, r);

	r->is_settled = false;
	return err;
}

static int note_write(struct storage *st, struct key_record *r)
{
	(void)st, (void)r;
	return 0;
}

#include "image/upload_key.c"

static const struct store_class shared = { .is_shared = true,
	                                   .key_read = read_none,
	                                   .key_write = fail_to_write };
static struct image_service images = { .storage.class = &shared };
static struct upload_keys keys;
static struct upload upload = { .service = &images, .epoch = &epoch };

/* Returns the status of the refusal; 0: the upload may start. */
static unsigned begin_with(int error)
{
	struct upload_key *k = upload_key_new();

	if (!k)
		abort();
	k->upload = &upload;
	write_error = error;
	assert_false(upload_key_serve(&images, k));
	bool is_new = k->verdict == UPLOAD_KEY_NEW;
	unsigned status = k->problem.status;

	/* Only the key of an upload that starts is in progress. */
	assert_ptr_equal(images.keys->bucket[0], is_new ? k : NULL);
	assert_true(is_new == !status);
	if (is_new)
		give(images.keys, k);
	upload_key_free(k);
	return status;
}

static void the_first_node_that_writes_a_record_has_the_key(void **state)
{
	(void)state;
	images.keys = &keys;
	upload_keys_init(&keys);
	assert_int_equal(begin_with(0), 0);
	assert_int_equal(begin_with(-EEXIST), 409);
	assert_int_equal(begin_with(-EAGAIN), 409);
	assert_int_equal(begin_with(-EIO), 500);
	assert_int_equal(begin_with(-EOPNOTSUPP), 500);
	upload_keys_fini(images.keys);
	pool_thread_fini();
}

/* Its images are not looked at: that may take long, and may fail. */
static void another_content_is_refused_at_once(void **state)
{
	static const struct store_class files = { .key_read = read_other, .read = fail_to_look };
	struct image_service service = { .storage.class = &files, .keys = &keys };
	struct upload_key *k = upload_key_new();

	(void)state;
	assert_non_null(k);
	upload_keys_init(&keys);
	k->upload = &upload;
	assert_false(upload_key_serve(&service, k));
	assert_int_equal(k->problem.status, 422);
	upload_key_free(k);
	upload_keys_fini(&keys);
	pool_thread_fini();
}

/* The upload may have been answered. Its image.json is damaged, or there is no descriptor for it.
 */
static void an_image_that_cannot_be_read_is_not_removed(void **state)
{
	const struct store_class files = { .key_read = read_unsettled,
		                           .key_write = note_write,
		                           .read = look,
		                           .fate = store_of_files.fate,
		                           .remove = count_removal };
	struct image_service service = { .storage.class = &files, .keys = &keys };

	(void)state;
	upload_keys_init(&keys);
	assert_int_equal(inflight_init(&service.inflight, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct upload_key *k = upload_key_new();

		assert_non_null(k);
		k->upload = &upload;
		is_there = i ? -EMFILE : 1;
		removals = 0;
		assert_false(upload_key_serve(&service, k));
		assert_int_equal(k->problem.status, i ? 500 : 422);
		assert_int_equal(removals, 0);
		upload_key_free(k);
	}
	inflight_fini(&service.inflight);
	upload_keys_fini(&keys);
	pool_thread_fini();
}

/* Then the images tell what was made, and the record stays as it is. */
static void a_part_that_has_failed_cannot_come_later(void **state)
{
	static const struct store_class shared_store = { .is_shared = true,
		                                         .key_write = write_nothing,
		                                         .fate = tell_fate };
	static const struct {
		int fate;
		unsigned status;
	} kinds[] = { { S3_HAS_FAILED, 0 }, { S3_THERE, 409 }, { S3_REMOVED, 409 }, { -EIO, 500 } };
	static struct image good, bad;
	struct image *list[2] = { &good, &bad };
	struct image_service service = { .storage.class = &shared_store, .keys = &keys };
	struct upload parts = { .epoch = &epoch, .image_count = 2, .image = list };

	(void)state;
	upload_keys_init(&keys);
	atomic_store(&bad.has_failed, true);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct upload_key *k = upload_key_new();

		assert_non_null(k);
		k->upload = &parts;
		k->verdict = UPLOAD_KEY_NEW;
		keys.bucket[0] = k;
		fate_told = kinds[i].fate;
		fates_asked = 0;
		assert_false(upload_key_serve(&service, k));
		assert_int_equal(fates_asked, 1);
		assert_int_equal(k->problem.status, kinds[i].status);
		assert_int_equal(k->verdict,
		                 kinds[i].status ? UPLOAD_KEY_REFUSED : UPLOAD_KEY_ENDED);
		upload_key_free(k);
	}
	upload_keys_fini(&keys);
	pool_thread_fini();
}

/* Otherwise a loss of power brings back the record that was not settled: images that have failed
 * would be missed in it, and the others removed. */
static void a_record_that_could_not_be_settled_stays_removed(void **state)
{
	struct key_record r = { .name = { 1 } };
	struct store files;
	struct storage st = { .files = &files };
	char root[] = "/tmp/darkroom-keys-XXXXXX", command[64];
	unsigned cleared;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(store_open(&files, root, true, &cleared), 0);
	atomic_store(&files.flushes, 0);
	for (unsigned i = 0; i < 4; i++) {
		r.failed = i & 1;
		r.is_settled = i & 2;
		assert_int_equal(store_of_files.key_remove(&st, &r), 0);
		assert_int_equal(atomic_load(&files.flushes), i == 3);
	}
	store_close(&files);
	snprintf(command, sizeof command, "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_node_that_writes_a_record_has_the_key),
		cmocka_unit_test(another_content_is_refused_at_once),
		cmocka_unit_test(an_image_that_cannot_be_read_is_not_removed),
		cmocka_unit_test(a_part_that_has_failed_cannot_come_later),
		cmocka_unit_test(a_record_that_could_not_be_settled_stays_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

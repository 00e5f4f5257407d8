/* test_upload_key.c - what becomes of a key whose record another node writes as well. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/image_service.h"
#include "image/key_store.h"

static int write_error;

static bool always_shared(const struct image_service *s)
{
	(void)s;
	return true;
}

static int read_none(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                     struct key_record *r, char version[KEY_VERSION_MAX])
{
	(void)s;
	(void)name;
	(void)r;
	(void)version;
	return -ENOENT;
}

static int fail_to_write(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                         const struct key_record *r, char version[KEY_VERSION_MAX])
{
	(void)s;
	(void)name;
	(void)version;
	assert_false(r->is_settled);
	return write_error;
}

#undef fail /* upload_key.c has its own */
#define key_store_is_shared always_shared
#define key_store_read read_none
#define key_store_write fail_to_write
#include "image/upload_key.c"

static struct image_service images;
static struct conf_epoch epoch;
static const struct upload upload = { .service = &images, .epoch = &epoch };

static enum upload_key_verdict begin_with(int error)
{
	struct upload_key *k = upload_key_new();

	if (!k)
		abort();
	k->upload = &upload;
	write_error = error;
	upload_key_begin(&images, k);
	enum upload_key_verdict verdict = k->verdict;

	/* Only the key of an upload that starts is in progress. */
	assert_ptr_equal(images.keys.bucket[0], verdict == UPLOAD_KEY_NEW ? k : NULL);
	if (verdict == UPLOAD_KEY_NEW)
		give(&images.keys, k);
	assert_int_equal(k->err, verdict == UPLOAD_KEY_FAILED ? error : 0);
	upload_key_free(k);
	return verdict;
}

static void the_first_node_that_writes_a_record_has_the_key(void **state)
{
	(void)state;
	upload_keys_init(&images.keys);
	assert_int_equal(begin_with(0), UPLOAD_KEY_NEW);
	assert_int_equal(begin_with(-EEXIST), UPLOAD_KEY_IN_PROGRESS);
	assert_int_equal(begin_with(-EAGAIN), UPLOAD_KEY_IN_PROGRESS);
	assert_int_equal(begin_with(-EIO), UPLOAD_KEY_FAILED);
	assert_int_equal(begin_with(-EOPNOTSUPP), UPLOAD_KEY_FAILED);
	upload_keys_fini(&images.keys);
	pool_thread_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_node_that_writes_a_record_has_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * put_harness.h - store_put.c and what it uses, with tags and exchanges that a test sees.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PUT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PUT_HARNESS_H

#include <sys/xattr.h>

#include "base/check.h"
#include "store/store_path.h"
#include "store/usage.h"
#include "store_faults.h"

/* The last attribute that was written, and how many were. */
static char attribute[64];
static unsigned attribute_count;

static inline int fake_fsetxattr(int fd, const char *name, const void *value, size_t size,
                                 int flags)
{
	(void)fd;
	assert_string_equal(name, STORE_TAG_ATTRIBUTE);
	assert_non_null(value);
	assert_true(size < sizeof attribute);
	assert_int_equal(flags, 0);
	memcpy(attribute, value, size);
	attribute[size] = '\0';
	attribute_count++;
	return 0;
}

static int exchange_error;
static unsigned exchange_count;

static inline int fake_renameat2(int from_at, const char *from, int to_at, const char *to,
                                 unsigned flags)
{
	exchange_count++;
	if (exchange_error) {
		errno = exchange_error;
		return -1;
	}
	return renameat2(from_at, from, to_at, to, flags);
}

#include "store/store.c"
#include "store/store_find.c"
#define renameat2 fake_renameat2
#include "store/directory.c"
#define fsetxattr fake_fsetxattr
#include "store/store_put.c"

#define ID "01K0000000000000000000000A"
#define SUM "0123456789abcdef0123456789abcdef"

static struct store store;
static unsigned descriptors;

static inline int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	attribute_count = exchange_count = 0;
	exchange_error = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-put-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, true, &cleared))
		return -1;
	descriptors = open_descriptors();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

static const struct store_file two_files[] = { { "a.jpg", "content", 7, SUM },
	                                       { "b.jpg", "other", 5, NULL } };

static inline struct store_item item_of(enum store_place place, const char *id)
{
	return (struct store_item){ .place = place,
		                    .id = id,
		                    .file = two_files,
		                    .file_count = 2,
		                    .token = "site",
		                    .old_fd = -1,
		                    .is_published = true /* of an earlier attempt */ };
}

/* Puts the item, and checks that what lies behind it is left alone. */
static inline int put_one(struct store_item item)
{
	struct store_item items[2] = { item, item_of(STORE_SPOOL, "01K0000000000000000000000Z") };

	items[1].err = -ENOENT;
	store_put(&store, items, 1);
	assert_int_equal(items[1].err, -ENOENT);
	assert_false(exists(".spool/01K0000000000000000000000Z"));
	return items[0].err;
}

static inline struct usage_sum sum_of_all(void)
{
	return usage_total(&store.usage).all;
}

#endif

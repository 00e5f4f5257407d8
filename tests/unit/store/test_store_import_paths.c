/* test_store_import_paths.c - paths of an archive's members that are those of a store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/tool/store_import.c"

#define ID "01K0000000000000000000000A"

static void paths_are_those_of_a_store(void **state)
{
	static const char *const good[] = { "a.jpg", "image.json", "original.jpg", "z_9-0.jpg",
		                            "a234567890123456789012345678901.jpg" };
	static const char *const bad[] = {
		"A.jpg", ".jpg",    "a.jpeg",      "a.png",
		"a.jp",  "a.b.jpg", "image.jsonx", "a/b.jpg",
		"",      "jpg",     "a b.jpg",     "a234567890123456789012345678901x.jpg"
	};
	char path[160], id[ULID_LENGTH + 1], name[STORED_NAME_MAX];

	(void)state;
	for (unsigned dot = 0; dot < 2; dot++) {
		for (unsigned i = 0; i < COUNT_OF(good); i++) {
			snprintf(path, sizeof path, "%s01K0/00/" ID "/%s", dot ? "./" : "",
			         good[i]);
			assert_true(split_path(path, id, name));
			assert_string_equal(id, ID);
			assert_string_equal(name, good[i]);
		}
		for (unsigned i = 0; i < COUNT_OF(bad); i++) {
			snprintf(path, sizeof path, "%s01K0/00/" ID "/%s", dot ? "./" : "", bad[i]);
			assert_false(split_path(path, id, name));
		}
	}
	static const char *const others[] = {
		"/01K0/00/" ID "/a.jpg",
		"../01K0/00/" ID "/a.jpg",
		"././01K0/00/" ID "/a.jpg",
		"01K0/01/" ID "/a.jpg",
		"01K1/00/" ID "/a.jpg",
		"0A/" ID "/a.jpg",
		ID "/a.jpg",
		"a.jpg",
		"01K0/00/" ID,
		"01K0/00/x" ID "/a.jpg",
		"01K0//00/" ID "/a.jpg",
		"/a.jpg",
		"01K0/00/01K000000000000000000000IL/a.jpg",
		"1K0000000000000000000000A/a.jpg",
	};

	for (unsigned i = 0; i < COUNT_OF(others); i++)
		assert_false(split_path(others[i], id, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_those_of_a_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

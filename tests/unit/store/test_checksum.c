/* test_checksum.c - checksums of memory and of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "store/checksum.h"

/* The known sums are those that xxh128sum prints. */
static void sums_are_those_of_xxh128sum(void **state)
{
	char sum[CHECKSUM_LENGTH + 1];

	(void)state;
	checksum_of("", 0, sum);
	assert_string_equal(sum, "99aa06d3014798d86001c324468d497f");
	checksum_of("a", 1, sum);
	assert_string_equal(sum, "a96faf705af16834e6c632b61e964e1f");
}

static void a_file_has_the_sum_of_its_content(void **state)
{
	static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, 200000 };
	static char data[200000];
	char of_data[CHECKSUM_LENGTH + 1], of_file[CHECKSUM_LENGTH + 1];
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 31 >> 3);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		FILE *f = tmpfile();

		assert_non_null(f);
		assert_int_equal(fwrite(data, 1, sizes[i], f), sizes[i]);
		assert_int_equal(fflush(f), 0);
		checksum_of(data, sizes[i], of_data);
		assert_int_equal(checksum_of_file(fileno(f), of_file, &size), 0);
		assert_string_equal(of_file, of_data);
		assert_int_equal(size, sizes[i]);
		fclose(f);
	}
	assert_true(checksum_of_file(-1, of_file, &size) < 0);
}

static void parts_have_the_sum_of_the_whole(void **state)
{
	static const size_t cuts[] = { 0, 1, 255, 256, 1024, 50000, 99999, 100000 };
	static char data[100000];
	XXH3_state_t *sum = XXH3_createState();
	char of_data[CHECKSUM_LENGTH + 1], of_parts[CHECKSUM_LENGTH + 1];

	(void)state;
	assert_non_null(sum);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 13 >> 2);
	checksum_of(data, sizeof data, of_data);
	for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
		XXH3_128bits_reset(sum);
		XXH3_128bits_update(sum, data, cuts[i]);
		assert_int_equal(checksum_of_end(sum, "damaged", 7, of_parts), 0);
		assert_string_not_equal(of_parts, of_data);
		/* The state is that of the beginning still. */
		assert_int_equal(
			checksum_of_end(sum, data + cuts[i], sizeof data - cuts[i], of_parts), 0);
		assert_string_equal(of_parts, of_data);
	}
	XXH3_freeState(sum);
	XXH3_freeState(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_xxh128sum),
		cmocka_unit_test(a_file_has_the_sum_of_its_content),
		cmocka_unit_test(parts_have_the_sum_of_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

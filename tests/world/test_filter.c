/* test_filter.c - runs only the tests whose names match the pattern in WORLD_TESTS, if it is set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void filter_tests(void)
{
	if (getenv("WORLD_TESTS"))
		cmocka_set_test_filter(getenv("WORLD_TESTS"));
}

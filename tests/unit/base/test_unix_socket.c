/* test_unix_socket.c - sockets at a path. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/unix_socket.h"
#include "conf/conf.h"

static void only_the_path_of_a_dead_process_is_reused(void **state)
{
	char directory[] = "/tmp/darkroom-test-XXXXXX", path[64], long_path[CONF_SOCKET_MAX + 1];
	struct unix_socket first, second;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/s", directory);
	assert_int_equal(unix_socket_open(&first, path, 0600, 1), 0);
	assert_return_code(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unix_socket_open(&second, path, 0600, 1), -EADDRINUSE);
	unix_socket_close(&second);
	assert_return_code(lstat(path, &st), 0);
	close(first.fd); /* as if its process had been killed */
	assert_int_equal(unix_socket_open(&second, path, 0600, 1), 0);
	unix_socket_close(&second);
	assert_int_equal(lstat(path, &st), -1);
	fclose(fopen(path, "w"));
	assert_int_equal(unix_socket_open(&second, path, 0600, 1), -EEXIST);
	unix_socket_close(&second);
	assert_return_code(unlink(path), 0);
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	assert_int_equal(unix_socket_open(&second, long_path, 0600, 1), -ENAMETOOLONG);
	assert_return_code(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_path_of_a_dead_process_is_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

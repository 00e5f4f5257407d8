/* test_listener.c - which listeners only this machine can connect to, where administration is
 * served then, and stale paths. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "base/unix_socket.h"
#include "http/admin.h"
#include "http/listener.h"
#include "http/route.h"
#include "log/log.h"

/* A socket with that address; it does not listen. -1: the machine has no such addresses. */
static int bound(const char *text)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	bool is_v6 = strchr(text, ':');
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	assert_int_equal(is_v6 ? inet_pton(AF_INET6, text, &v6.sin6_addr)
	                       : inet_pton(AF_INET, text, &v4.sin_addr),
	                 1);
	if (is_v6 ? bind(fd, (struct sockaddr *)&v6, sizeof v6)
	          : bind(fd, (struct sockaddr *)&v4, sizeof v4)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void loopback_is_local(void **state)
{
	static const struct {
		const char *address;
		bool is_local;
	} cases[] = { { "127.0.0.1", true },
		      { "127.1.2.3", true },
		      { "0.0.0.0", false },
		      { "::1", true },
		      { "::", false },
		      { "::ffff:127.0.0.1", true },
		      { "::ffff:0.0.0.0", false } };
	unsigned done = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd = bound(cases[i].address);

		if (fd < 0)
			continue;
		assert_int_equal(listener_is_local(fd), cases[i].is_local);
		close(fd);
		done++;
	}
	assert_true(done >= 3); /* a machine without IPv6 */
	assert_false(listener_is_local(-1));
}

static void urls(void **state)
{
	char url[CONF_TEXT_MAX];
	int fd = bound("127.0.0.1");

	(void)state;
	listener_url(fd, url, sizeof url);
	assert_int_equal(strncmp(url, "http://127.0.0.1:", 17), 0);
	assert_true(atoi(url + 17) > 0);
	close(fd);
	listener_url(-1, url, sizeof url);
	assert_string_equal(url, "(unknown)");
}

/* Where administration is served, by what is configured and how public the public listener is. */
static void check_place(const char *listen, uint64_t on_public, const char *public_address,
                        bool is_on_public, bool is_own)
{
	static struct conf conf;
	struct admin admin;
	int fd = bound(public_address);

	assert_true(fd >= 0);
	snprintf(conf.server.admin_listen, sizeof conf.server.admin_listen, "%s", listen);
	conf.server.admin_on_public = on_public;
	assert_int_equal(admin_open(&admin, &conf, &fd, 1, -1), 0);
	assert_int_equal(admin.is_on_public, is_on_public);
	assert_int_equal(admin.fd >= 0, is_own);
	admin_close(&admin);
	close(fd);
}

static void administration_is_not_open_to_others_unasked(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	check_place("auto", CONF_DEFAULT, "127.0.0.1", true, false);
	check_place("no", CONF_DEFAULT, "0.0.0.0", false, false);
	check_place("no", CONF_YES, "0.0.0.0", true, false);
	check_place("no", CONF_NO, "127.0.0.1", false, false);
	check_place("127.0.0.1:0", CONF_DEFAULT, "0.0.0.0", false, true);
	check_place("127.0.0.1:0", CONF_DEFAULT, "127.0.0.1", true, true);
}

static void paths_are_taken_over_only_from_the_dead(void **state)
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
	close(first.fd); /* as if it had been killed */
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

static void routes_have_audiences(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < ROUTE_COUNT; kind++) {
		bool is_public = route_is_for((enum route_kind)kind, ROUTE_PUBLIC);
		bool is_admin = route_is_for((enum route_kind)kind, ROUTE_ADMIN);

		assert_int_equal(is_public || is_admin, kind != ROUTE_NONE);
		assert_int_equal(route_is_for((enum route_kind)kind, ROUTE_PUBLIC | ROUTE_ADMIN),
		                 is_public || is_admin);
	}
	assert_false(route_is_for(ROUTE_STATS, ROUTE_PUBLIC));
	assert_false(route_is_for(ROUTE_METRICS, ROUTE_PUBLIC));
	assert_false(route_is_for(ROUTE_IMAGES, ROUTE_ADMIN));
	assert_false(route_is_for(ROUTE_IMAGE, ROUTE_ADMIN));
	assert_true(route_is_for(ROUTE_READYZ, ROUTE_PUBLIC) &&
	            route_is_for(ROUTE_READYZ, ROUTE_ADMIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_local),
		cmocka_unit_test(urls),
		cmocka_unit_test(administration_is_not_open_to_others_unasked),
		cmocka_unit_test(paths_are_taken_over_only_from_the_dead),
		cmocka_unit_test(routes_have_audiences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

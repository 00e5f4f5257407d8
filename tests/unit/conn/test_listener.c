/* test_listener.c - what the address of a listener tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/unix_socket.h"
#include "conf/conf.h"
#include "conn/listeners.h"
#include "support/socket_fixture.h"

static void a_loopback_address_is_local(void **state)
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
		int fd = socket_bound_to(cases[i].address);

		if (fd < 0)
			continue;
		assert_int_equal(listener_is_local(fd), cases[i].is_local);
		close(fd);
		done++;
	}
	assert_true(done >= 3); /* the machine may have no IPv6 */
	assert_false(listener_is_local(-1));
}

static void the_url_has_the_bound_port(void **state)
{
	char url[CONF_TEXT_MAX];
	int fd = socket_bound_to("127.0.0.1");

	(void)state;
	listener_url(fd, url, sizeof url);
	assert_int_equal(strncmp(url, "http://127.0.0.1:", 17), 0);
	assert_true(atoi(url + 17) > 0);
	close(fd);
	listener_url(-1, url, sizeof url);
	assert_string_equal(url, "(unknown)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loopback_address_is_local),
		cmocka_unit_test(the_url_has_the_bound_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

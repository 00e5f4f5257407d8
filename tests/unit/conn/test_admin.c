/* test_admin.c - where administrative resources are served. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "conn/listeners.c"
#include "log/log.h"
#include "support/socket_fixture.h"

/* Checks where administration is served for a configuration and a public address. */
static void check_admin(const char *listen, uint64_t on_public, const char *public_address,
                        bool is_on_public, bool is_own)
{
	static struct conf conf;
	struct admin admin;
	int fd = socket_bound_to(public_address);

	assert_true(fd >= 0);
	snprintf(conf.server.admin_listen, sizeof conf.server.admin_listen, "%s", listen);
	conf.server.admin_on_public = on_public;
	assert_int_equal(admin_open(&admin, &conf, &fd, 1, -1), 0);
	assert_int_equal(admin.is_on_public, is_on_public);
	assert_int_equal(admin.fd >= 0, is_own);
	admin_close(&admin);
	close(fd);
}

static void administration_is_local_unless_configured_otherwise(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	check_admin("auto", CONF_DEFAULT, "127.0.0.1", true, false);
	check_admin("no", CONF_DEFAULT, "0.0.0.0", false, false);
	check_admin("no", CONF_YES, "0.0.0.0", true, false);
	check_admin("no", CONF_NO, "127.0.0.1", false, false);
	check_admin("127.0.0.1:0", CONF_DEFAULT, "0.0.0.0", false, true);
	check_admin("127.0.0.1:0", CONF_DEFAULT, "127.0.0.1", true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(administration_is_local_unless_configured_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_proxy_header.c - headers of the PROXY protocol, whole, in part and malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "admission/clients.h"
#include "base/network.h"
#include "http/forwarded.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define TCP4 SIGNATURE "\x21\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x10\0\x1f\x90"
#define TCP6_SOURCE "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
#define TCP6 SIGNATURE "\x21\x21\0\x24" TCP6_SOURCE TCP6_SOURCE "\x10\0\x1f\x90"
#define TEXT(literal) literal, sizeof(literal) - 1

/* A header, followed by a request, names the client. Each shorter part of it needs more bytes. */
static void expect(const char *header, size_t length, const char *client)
{
	static const char request[] = "GET / HTTP/1.1\r\n\r\n";
	char data[512];
	struct client_key found = { { 1 } }, wanted = found;

	if (client)
		assert_true(network_parse_address(client, strlen(client), wanted.address));
	memcpy(data, header, length);
	memcpy(data + length, request, sizeof request);
	assert_int_equal(proxy_header_parse(data, length + sizeof request, found.address), length);
	assert_memory_equal(&found, &wanted, sizeof found);
	for (size_t part = 0; part < length; part++)
		assert_int_equal(proxy_header_parse(data, part, found.address), 0);
}

static void refuse(const char *data, size_t length)
{
	struct client_key found = { { 1 } };
	const struct client_key before = found;

	assert_int_equal(proxy_header_parse(data, length, found.address), -EINVAL);
	assert_memory_equal(&found, &before, sizeof found);
}

static void version_2_names_the_client(void **state)
{
	(void)state;
	expect(TEXT(TCP4), "192.0.2.1");
	expect(TEXT(TCP6), "2001:db8::7");
}

static void additional_fields_are_skipped(void **state)
{
	(void)state;
	expect(TEXT(SIGNATURE "\x21\x11\0\x13\xc0\0\x02\x01\x7f\0\0\x01\x10\0\x1f\x90"
	                      "\x04\0\x04wxyz"),
	       "192.0.2.1");
}

static void a_header_without_a_client_leaves_the_peer(void **state)
{
	(void)state;
	expect(TEXT(SIGNATURE "\x20\0\0\0"), NULL);
	expect(TEXT(SIGNATURE "\x20\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x10\0\x1f\x90"), NULL);
	expect(TEXT(SIGNATURE "\x21\0\0\0"), NULL);
	expect(TEXT(SIGNATURE "\x21\x31\0\x02zz"), NULL);
	expect(TEXT("PROXY UNKNOWN\r\n"), NULL);
	expect(TEXT("PROXY UNKNOWN 192.0.2.1 127.0.0.1 1 2\r\n"), NULL);
}

static void version_1_names_the_client(void **state)
{
	(void)state;
	expect(TEXT("PROXY TCP4 192.0.2.1 127.0.0.1 4096 8080\r\n"), "192.0.2.1");
	expect(TEXT("PROXY TCP6 2001:db8::7 ::1 4096 8080\r\n"), "2001:db8::7");
}

static void a_malformed_header_is_refused(void **state)
{
	char line[200];

	(void)state;
	refuse(TEXT("GET / HTTP/1.1\r\n"));
	refuse(TEXT("\r\n\r\nGET"));
	refuse(TEXT(SIGNATURE "\x22\x11\0\x0c"));   /* a command that does not exist */
	refuse(TEXT(SIGNATURE "\x11\x11\0\x0c"));   /* version 1 */
	refuse(TEXT(SIGNATURE "\x21\x11\0\x0b"));   /* too short for two addresses */
	refuse(TEXT(SIGNATURE "\x21\x21\0\x23"));   /* the same */
	refuse(TEXT(SIGNATURE "\x21\x11\x07\xf1")); /* one byte over PROXY_HEADER_MAX */
	refuse(TEXT("PROXY TCP4 192.0.2.1\r\n"));
	refuse(TEXT("PROXY TCP4 192.0.2 127.0.0.1 1 2\r\n"));
	refuse(TEXT("PROXY TCP5 192.0.2.1 127.0.0.1 1 2\r\n"));
	refuse(TEXT("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\n"));
	refuse(TEXT("PROXY \n"));
	refuse(TEXT("PROXY TC\r\n"));
	memset(line, 'x', sizeof line);
	memcpy(line, "PROXY UNKNOWN", 13);
	refuse(line, 107);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2_names_the_client),
		cmocka_unit_test(additional_fields_are_skipped),
		cmocka_unit_test(a_header_without_a_client_leaves_the_peer),
		cmocka_unit_test(version_1_names_the_client),
		cmocka_unit_test(a_malformed_header_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

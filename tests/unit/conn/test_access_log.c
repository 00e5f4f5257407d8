/* test_access_log.c - lines about requests: their members, and the escapes of hostile bytes.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/access_log.c"
#include "stage_ids.h"

#define HEAD "time=2026-01-31T23:59:59.007Z client=192.0.2.1 id=abc method=GET path="
#define TAIL " status=200 bytes_in=1 bytes_out=2 total_ms=1.234 queue_ms=0.000"
#define NOW_NS 1234568

static struct io_loop io;
static char input[2048];

/* Makes c that of a request for the path. */
static void begin(struct conn *c, const char *path, size_t length)
{
	memset(c, 0, sizeof *c);
	assert_true(length <= sizeof input);
	memcpy(input, path, length);
	c->io = &io;
	c->input = input;
	c->request.target.length = length;
	c->request.parser.method = HTTP_GET;
	c->request.head_length = 1;
	c->response.status = 200;
	c->phase.bytes = 2;
	c->request_start_ns = 1;
	strcpy(c->access.id, "abc");
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", c->client.address), 1);
}

static const char *line_of(struct conn *c, bool is_complete, bool is_json)
{
	static char data[LOG_ACCESS_MAX];
	const struct timespec now = { .tv_sec = 1769903999, .tv_nsec = 7123456 };
	struct text t;

	text_init(&t, data, sizeof data);
	put_line(&t, c, is_complete, is_json, &now, NOW_NS);
	assert_false(t.overflowed);
	return data;
}

static const char *text_of(struct conn *c)
{
	return line_of(c, true, false);
}

static const char *json_of(struct conn *c)
{
	return line_of(c, true, true);
}

#define TEXT_OF(path, expected)                                        \
	do {                                                           \
		struct conn c_;                                        \
		begin(&c_, path, sizeof(path) - 1);                    \
		assert_string_equal(text_of(&c_), HEAD expected TAIL); \
	} while (0)

static void text_escapes_bytes_that_could_fake_a_line(void **state)
{
	(void)state;
	TEXT_OF("/images/01?x", "/images/01?x");
	TEXT_OF("/a=b", "\"/a=b\"");
	TEXT_OF("/a status=500", "\"/a status=500\"");
	TEXT_OF("/\"\\", "\"/\\\"\\\\\"");
	TEXT_OF("/\r\ntime=\t\x1b[31m\x7f\0", "\"/\\x0d\\x0atime=\\x09\\x1b[31m\\x7f\\x00\"");
	TEXT_OF("/\xc3\xa4\xc2\x9b\xff", "\"/\\xc3\\xa4\\xc2\\x9b\\xff\"");
}

static void lines_have_the_members_of_an_upload(void **state)
{
	struct conn c;

	(void)state;
	begin(&c, "/images", 7);
	c.request.parser.method = HTTP_POST;
	strcpy(c.token_name, "camera");
	c.access.files = 3;
	c.access.failed = 1;
	c.access.image[0] = (struct access_image){ "01M7ZBD1E2WRMWW5YCA7WHDA32", 640, 480 };
	c.access.image[1] = (struct access_image){ "01M7ZBD1E2WRMWW5YCA7WHDA33", 1, 2 };
	c.access.image_count = 2;
	c.read_ns = 1000;
	c.timing.wait_ns[STAGE_SCALE] = 2000000;
	c.timing.wait_ns[STAGE_BLUR] = 3000000;
	c.timing.service_ns[STAGE_BLUR] = 1234567;
	assert_string_equal(
		text_of(&c),
		"time=2026-01-31T23:59:59.007Z client=192.0.2.1 token=camera id=abc method=POST "
		"path=/images "
		"status=200 bytes_in=1 bytes_out=2 files=3 failed=1 "
		"images=01M7ZBD1E2WRMWW5YCA7WHDA32:640x480,01M7ZBD1E2WRMWW5YCA7WHDA33:1x2 "
		"total_ms=1.234 read_ms=0.000 queue_ms=5.000 blur_ms=1.234");
	assert_string_equal(
		json_of(&c),
		"{\"time\":\"2026-01-31T23:59:59.007Z\",\"client\":\"192.0.2.1\","
		"\"token\":\"camera\",\"id\":\"abc\","
		"\"method\":\"POST\",\"path\":\"/images\",\"status\":200,\"complete\":true,"
		"\"bytes_in\":1,"
		"\"bytes_out\":2,\"files\":3,\"failed\":1,"
		"\"images\":[{\"id\":\"01M7ZBD1E2WRMWW5YCA7WHDA32\","
		"\"width\":640,\"height\":480},{\"id\":\"01M7ZBD1E2WRMWW5YCA7WHDA33\","
		"\"width\":1,\"height\":2}],"
		"\"total_ms\":1.234,\"read_ms\":0.000,\"queue_ms\":5.000,"
		"\"stages_ms\":{\"blur\":1.234}}");
}

/* An invalid request, whose client closed before the response. */
static void absent_members_are_left_out(void **state)
{
	struct conn c;

	(void)state;
	begin(&c, "", 0);
	c.response.status = 0;
	assert_string_equal(line_of(&c, false, false),
	                    "time=2026-01-31T23:59:59.007Z client=192.0.2.1 id=abc method=- path=- "
	                    "status=- "
	                    "complete=no bytes_in=1 bytes_out=0 total_ms=1.234 queue_ms=0.000");
	assert_string_equal(line_of(&c, false, true),
	                    "{\"time\":\"2026-01-31T23:59:59.007Z\",\"client\":\"192.0.2.1\","
	                    "\"id\":\"abc\","
	                    "\"complete\":false,\"bytes_in\":1,\"bytes_out\":0,\"total_ms\":1.234,"
	                    "\"queue_ms\":0.000,"
	                    "\"stages_ms\":{}}");
}

static void json_escapes_invalid_bytes(void **state)
{
	static const char path[] = "/\"\\\r\n\t\x1b\xff\xc3\xa4\0";
	struct conn c;

	(void)state;
	begin(&c, path, sizeof path - 1);
	assert_non_null(strstr(
		json_of(&c), "\"path\":\"/\\\"\\\\\\r\\n\\t\\u001b\xEF\xBF\xBD\xc3\xa4\\u0000\","));
}

/* All members are as long as possible, and every byte needs the longest escape. */
static void the_longest_line_fits(void **state)
{
	static char path[sizeof input];
	struct conn c;

	(void)state;
	memset(path, 1, sizeof path);
	begin(&c, path, sizeof path);
	memset(c.access.id, '=', sizeof c.access.id - 1);
	memset(&c.client, 0xff, sizeof c.client);
	for (unsigned i = 0; i < ACCESS_IMAGES_MAX; i++)
		c.access.image[i] = (struct access_image){ "01M7ZBD1E2WRMWW5YCA7WHDA32", UINT32_MAX,
			                                   UINT32_MAX };
	c.access.image_count = ACCESS_IMAGES_MAX;
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++)
		c.timing.service_ns[i] = UINT64_MAX;
	c.timing.wait_ns[0] = UINT64_MAX;
	c.access.files = c.access.failed = UINT32_MAX;
	c.request.head_length = c.phase.bytes = c.read_ns = UINT64_MAX;
	assert_true(strlen(text_of(&c)) > 2000);
	assert_true(strlen(json_of(&c)) > 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_escapes_bytes_that_could_fake_a_line),
		cmocka_unit_test(lines_have_the_members_of_an_upload),
		cmocka_unit_test(absent_members_are_left_out),
		cmocka_unit_test(json_escapes_invalid_bytes),
		cmocka_unit_test(the_longest_line_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_access_log_format.c - lines about requests: their members, and the escapes of hostile bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/text.h"
#include "http/access_log_format.h"
#include "image/upload.h"
#include "log/log.h"

#define HEAD "time=2026-01-31T23:59:59.007Z client=192.0.2.1 id=abc method=GET path="
#define TAIL " status=200 bytes_in=1 bytes_out=2 total_ms=1.234 queue_ms=0.000"

static const char *const names[] = { "accept_read", "blur" };
static const uint64_t times[] = { 0, 1234567 };

static struct access_line line_of(const char *path, size_t length)
{
	return (struct access_line){ .time = "2026-01-31T23:59:59",
		                     .time_ms = 7,
		                     .client = "192.0.2.1",
		                     .id = "abc",
		                     .token = "",
		                     .method = "GET",
		                     .path = { path, length },
		                     .status = 200,
		                     .is_complete = true,
		                     .bytes_in = 1,
		                     .bytes_out = 2,
		                     .total_ns = 1234567,
		                     .stage_name = names,
		                     .stage_ns = times };
}

static const char *text_of(const struct access_line *line)
{
	static char data[LOG_ACCESS_MAX];
	struct text t;

	text_init(&t, data, sizeof data);
	access_line_text(line, &t);
	assert_false(t.overflowed);
	return data;
}

static const char *json_of(const struct access_line *line)
{
	static char data[LOG_ACCESS_MAX];
	struct text t;

	text_init(&t, data, sizeof data);
	access_line_json(line, &t);
	assert_false(t.overflowed);
	return data;
}

#define TEXT_OF(path, expected)                                             \
	do {                                                                \
		struct access_line line_ = line_of(path, sizeof(path) - 1); \
		assert_string_equal(text_of(&line_), HEAD expected TAIL);   \
	} while (0)

static void text_escapes_bytes_that_could_fake_a_line(void **state)
{
	(void)state;
	TEXT_OF("/images/01?x", "/images/01?x");
	TEXT_OF("", "-");
	TEXT_OF("/a=b", "\"/a=b\"");
	TEXT_OF("/a status=500", "\"/a status=500\"");
	TEXT_OF("/\"\\", "\"/\\\"\\\\\"");
	TEXT_OF("/\r\ntime=\t\x1b[31m\x7f\0", "\"/\\x0d\\x0atime=\\x09\\x1b[31m\\x7f\\x00\"");
	TEXT_OF("/\xc3\xa4\xc2\x9b\xff", "\"/\\xc3\\xa4\\xc2\\x9b\\xff\"");
}

static void lines_have_the_members_of_an_upload(void **state)
{
	struct access_image image[] = { { "01M7ZBD1E2WRMWW5YCA7WHDA32", 640, 480 },
		                        { "01M7ZBD1E2WRMWW5YCA7WHDA33", 1, 2 } };
	struct access_line line = line_of("/images", 7);

	(void)state;
	line.method = "POST";
	line.token = "camera";
	line.files = 3;
	line.failed = 1;
	line.image = image;
	line.image_count = 2;
	line.read_ns = 999;
	line.queue_ns = 5000000;
	line.stage_count = 2;
	assert_string_equal(
		text_of(&line),
		"time=2026-01-31T23:59:59.007Z client=192.0.2.1 token=camera id=abc method=POST "
		"path=/images "
		"status=200 bytes_in=1 bytes_out=2 files=3 failed=1 "
		"images=01M7ZBD1E2WRMWW5YCA7WHDA32:640x480,01M7ZBD1E2WRMWW5YCA7WHDA33:1x2 "
		"total_ms=1.234 read_ms=0.000 queue_ms=5.000 blur_ms=1.234");
	assert_string_equal(
		json_of(&line),
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
	struct access_line line = line_of("", 0);

	(void)state;
	line.method = NULL;
	line.status = 0;
	line.is_complete = false;
	assert_string_equal(text_of(&line),
	                    "time=2026-01-31T23:59:59.007Z client=192.0.2.1 id=abc method=- path=- "
	                    "status=- "
	                    "complete=no bytes_in=1 bytes_out=2 total_ms=1.234 queue_ms=0.000");
	assert_string_equal(json_of(&line),
	                    "{\"time\":\"2026-01-31T23:59:59.007Z\",\"client\":\"192.0.2.1\","
	                    "\"id\":\"abc\","
	                    "\"complete\":false,\"bytes_in\":1,\"bytes_out\":2,\"total_ms\":1.234,"
	                    "\"queue_ms\":0.000,"
	                    "\"stages_ms\":{}}");
}

static void json_escapes_invalid_bytes(void **state)
{
	static const char path[] = "/\"\\\r\n\t\x1b\xff\xc3\xa4\0";
	struct access_line line = line_of(path, sizeof path - 1);

	(void)state;
	assert_non_null(
		strstr(json_of(&line),
	               "\"path\":\"/\\\"\\\\\\r\\n\\t\\u001b\xEF\xBF\xBD\xc3\xa4\\u0000\","));
}

/* All members are as long as possible, and every byte needs the longest escape. */
static void the_longest_line_fits(void **state)
{
	static char path[ACCESS_PATH_MAX + 3], id[REQUEST_ID_MAX];
	struct access_image image[ACCESS_IMAGES_MAX];
	const char *stage[STAGE_COUNT_MAX];
	uint64_t ns[STAGE_COUNT_MAX];
	struct access_line line = line_of(path, sizeof path);

	(void)state;
	memset(path, 1, sizeof path);
	memset(id, '=', sizeof id - 1);
	for (unsigned i = 0; i < COUNT_OF(image); i++)
		image[i] = (struct access_image){ "01M7ZBD1E2WRMWW5YCA7WHDA32", UINT32_MAX,
			                          UINT32_MAX };
	for (unsigned i = 0; i < COUNT_OF(ns); i++) {
		stage[i] = "a_stage_of_a_long_name_of_forty_bytes_!";
		ns[i] = UINT64_MAX;
	}
	line.id = id;
	line.client = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255";
	line.files = line.failed = UINT32_MAX;
	line.bytes_in = line.bytes_out = line.total_ns = line.read_ns = line.queue_ns = UINT64_MAX;
	line.image = image;
	line.image_count = COUNT_OF(image);
	line.stage_name = stage;
	line.stage_ns = ns;
	line.stage_count = COUNT_OF(ns);
	assert_true(strlen(text_of(&line)) > 2000);
	assert_true(strlen(json_of(&line)) > 3000);
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

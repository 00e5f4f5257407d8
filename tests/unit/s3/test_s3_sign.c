/*
 * test_s3_sign.c - the examples of "Signature Calculations for the Authorization Header" and of
 * "Authenticating Requests: Using Query Parameters" of the Amazon S3 API Reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "s3/s3_sign.h"

#define DATE "20130524T000000Z"
#define REGION "us-east-1"
#define HOST "examplebucket.s3.amazonaws.com"
#define NO_BODY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct s3_keys keys = { .id = "AKIAIOSFODNN7EXAMPLE",
	                             .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	                             .session = "" };

static void check_signature(const struct s3_request *r, const char *names, const char *signature)
{
	char authorization[S3_AUTHORIZATION_MAX], expected[S3_AUTHORIZATION_MAX];
	struct text text;

	text_init(&text, expected, sizeof expected);
	text_printf(&text,
	            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
	            "aws4_request,SignedHeaders=%s,Signature=%s",
	            names, signature);
	assert_true(s3_sign(&keys, r, DATE, authorization));
	assert_string_equal(authorization, expected);
}

#define HASH_AND_DATE(hash) "x-amz-content-sha256:" hash "\nx-amz-date:" DATE "\n"

static void get_of_an_object(void **state)
{
	const struct s3_request r = { REGION, "GET", "/test.txt",
		                      "host:" HOST "\nrange:bytes=0-9\n" HASH_AND_DATE(NO_BODY),
		                      NO_BODY };

	(void)state;
	check_signature(&r, "host;range;x-amz-content-sha256;x-amz-date",
	                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void put_of_an_object(void **state)
{
#define BODY "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
	char path[64];
	struct text escaped;

	(void)state;
	text_init(&escaped, path, sizeof path);
	s3_escape(&escaped, "/test$file.text", true);
	const struct s3_request r = { REGION, "PUT", path,
		                      "date:Fri, 24 May 2013 00:00:00 GMT\nhost:" HOST
		                      "\n" HASH_AND_DATE(
					      BODY) "x-amz-storage-class:REDUCED_REDUNDANCY\n",
		                      BODY };

	check_signature(&r, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
	                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void queries(void **state)
{
	struct s3_request r = { REGION, "GET",
		                "/?lifecycle=", "host:" HOST "\n" HASH_AND_DATE(NO_BODY), NO_BODY };

	(void)state;
	check_signature(&r, "host;x-amz-content-sha256;x-amz-date",
	                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	r.target = "/?max-keys=2&prefix=J";
	check_signature(&r, "host;x-amz-content-sha256;x-amz-date",
	                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void escaping(void **state)
{
	char out[128];
	struct text text;

	(void)state;
	text_init(&text, out, sizeof out);
	s3_escape(&text, "/a b~c-._+é%/", true);
	assert_string_equal(out, "/a%20b~c-._%2B%C3%A9%25/");
	text_init(&text, out, sizeof out);
	s3_escape(&text, "image/01", false);
	assert_string_equal(out, "image%2F01");
}

static void dates(void **state)
{
	char date[S3_DATE_MAX];

	(void)state;
	s3_date(1369353600, date);
	assert_string_equal(date, DATE);
}

/* A name or a value of any length must not be cut silently. */
static void too_long_a_signature_is_refused(void **state)
{
	static char name[300], line[sizeof name + 4];
	const struct s3_request r = { REGION, "GET", "/", line, NO_BODY };
	char authorization[S3_AUTHORIZATION_MAX];
	struct s3_request other;

	(void)state;
	memset(name, 'x', sizeof name - 1);
	snprintf(line, sizeof line, "%s:x\n", name);
	assert_false(s3_sign(&keys, &r, DATE, authorization));
	other = r;
	other.region = name;
	name[150] = '\0';
	strcpy(line, "host:x\n");
	assert_false(s3_sign(&keys, &other, DATE, authorization));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_of_an_object),
		cmocka_unit_test(put_of_an_object),
		cmocka_unit_test(queries),
		cmocka_unit_test(escaping),
		cmocka_unit_test(dates),
		cmocka_unit_test(too_long_a_signature_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

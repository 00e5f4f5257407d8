/*
 * test_multipart.c - the form parser: the same parts for all cuts of the input, and a result for
 * every hostile one.
 *
 * Every document is parsed in one turn, and in any two and any three. It is an exact copy, so that
 * the address sanitizer sees every access beyond it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/multipart.h"

#define HEADER_MAX 200

struct document {
	const char *what;
	const char *boundary;
	const char *bytes;
	const char *expected; /* "name|file name|type|body;" for each part, "!" if the rest is
	                         malformed */
};

#define PART(name, more, body) \
	"Content-Disposition: form-data; name=\"" name "\"" more "\r\n\r\n" body

#define A10 "aaaaaaaaaa"
#define A100 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10

static const struct document documents[] = {
	{ "one part", "b", "--b\r\n" PART("a", "", "x") "\r\n--b--\r\n", "a|-||x;" },
	{ "no line end at the end", "b", "--b\r\n" PART("a", "", "x") "\r\n--b--", "a|-||x;" },
	{ "preamble, epilogue", "b",
	  "hello\r\n--b\r\n" PART("a", "", "x") "\r\n--b--\r\nbye\r\n--b\r\n", "a|-||x;" },
	{ "padding", "b",
	  "--b \t\r\n" PART("a", "", "x") "\r\n--b  \r\n" PART("c", "", "y") "\r\n--b-- \t\r\n",
	  "a|-||x;c|-||y;" },
	{ "file", "b",
	  "--b\r\n" PART("f", "; filename=\"x.jpg\"\r\nContent-Type: image/jpeg; q=1",
	                 "\r\n\r\n") "\r\n--b--",
	  "f|x.jpg|image/jpeg|\r\n\r\n;" },
	{ "empty body", "b", "--b\r\n" PART("a", "", "") "\r\n--b--", "a|-||;" },
	{ "empty body, shared line end", "b",
	  "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n--b--", "a|-||;" },
	{ "no parts", "b", "--b--\r\n", "" },
	{ "almost boundaries", "bcd",
	  "--bcd\r\n" PART("a", "", "\r\n--bc\r\r\n--bcX\r\n\r\n--b") "\r\n--bcd--",
	  "a|-||\r\n--bc\r\r\n--bcX\r\n\r\n--b;" },
	{ "a longer boundary is data", "b",
	  "--b\r\n" PART("a", "", "\r\n--bX\r\n--b-x\r\n--b--y") "\r\n--b--",
	  "a|-||\r\n--bX\r\n--b-x\r\n--b--y;" },
	{ "the boundary inside a line is data", "b", "--b\r\n" PART("a", "", "x--b--") "\r\n--b--",
	  "a|-||x--b--;" },
	{ "first line almost the boundary", "b", "--bb\r\n--b\r\n" PART("a", "", "x") "\r\n--b--",
	  "a|-||x;" },
	{ "escapes", "b",
	  "--b\r\n" PART("a\\\"b", "; filename=\"c%22\\\\d;e.jpg\"", "x") "\r\n--b--",
	  "a\"b|c\"\\d;e.jpg||x;" },
	{ "extended file name", "b",
	  "--b\r\n" PART("a", "; filename*=UTF-8''%e2%82%AC%20x.jpg", "x") "\r\n--b--",
	  "a|\xe2\x82\xac x.jpg||x;" },
	{ "folded header", "b",
	  "--b\r\nContent-Disposition: form-data;\r\n name=a;\r\n\tfilename=f\r\n\r\nx\r\n--b--",
	  "a|f||x;" },
	{ "case, tokens", "b",
	  "--b\r\ncontent-DISPOSITION:Form-Data;NAME=a;FileName=\r\n\r\nx\r\n--b--", "a|||x;" },
	{ "file without a name", "b",
	  "--b\r\nContent-Disposition: form-data; filename=f\r\n\r\nx\r\n--b--", "|f||x;" },
	{ "unescaped quotes", "b",
	  "--b\r\n" PART("a", "; filename=\"a\"b\".jpg\"; c=d", "x") "\r\n--b--",
	  "a|a\"b\".jpg||x;" },
	{ "file name of Internet Explorer", "b",
	  "--b\r\n" PART("a", "; filename=\" ? % * | \" < > . ; ' @ = { } [ ] ` ~.txt\"",
	                 "x") "\r\n--b--",
	  "a| ? % * | \" < > . ; ' @ = { } [ ] ` ~.txt||x;" },
	{ "quotes before a semicolon", "b",
	  "--b\r\n" PART("a", "; filename=\"a\";b\"; c=\"d\" ; ", "x") "\r\n--b--", "a|a\";b||x;" },
	{ "boundary of all characters", "'()+_,-./:=? a",
	  "--'()+_,-./:=? a\r\n" PART("a", "", "x") "\r\n--'()+_,-./:=? a--", "a|-||x;" },
	{ "boundary of dashes", "---",
	  "-----\r\n" PART("a", "", "-\r\n---\r\n----") "\r\n-------\r\n",
	  "a|-||-\r\n---\r\n----;" },

	{ "empty", "b", "", "!" },
	{ "no boundary", "b", "hello world\r\n", "!" },
	{ "a boundary only", "b", "--b", "!" },
	{ "a delimiter only", "b", "--b\r\n", "!" },
	{ "ends in header", "b", "--b\r\nContent-Dispo", "!" },
	{ "ends in body", "b", "--b\r\n" PART("a", "", "xyz\r\n--"), "!" },
	{ "second part does not end", "b",
	  "--b\r\n" PART("a", "", "x") "\r\n--b\r\n" PART("b", "", "y"), "a|-||x;!" },
	{ "line feeds only", "b", "--b\nContent-Disposition: form-data; name=\"a\"\n\nx\n--b--\n",
	  "!" },
	{ "no headers", "b", "--b\r\n\r\nx\r\n--b--", "!" },
	{ "no disposition", "b", "--b\r\nContent-Type: image/jpeg\r\n\r\nx\r\n--b--", "!" },
	{ "no colon", "b", "--b\r\nhello\r\n\r\nx\r\n--b--", "!" },
	{ "no name", "b", "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "!" },
	{ "not form-data", "b", "--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
	  "!" },
	{ "disposition twice without names", "b",
	  "--b\r\nContent-Disposition: form-data; filename=a\r\n"
	  "Content-Disposition: form-data; filename=a\r\n\r\nx\r\n--b--",
	  "!" },
	{ "disposition twice", "b",
	  "--b\r\nContent-Disposition: form-data; name=a\r\n"
	  "Content-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
	  "!" },
	{ "header name beyond ASCII", "b",
	  "--b\r\nX\xc3\xa4: y\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--", "!" },
	{ "control character in a header name", "b",
	  "--b\r\nX\x7f: y\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--", "!" },
	{ "neither name nor file name", "b",
	  "--b\r\nContent-Disposition: form-data; filenam=a\r\n\r\nx\r\n--b--", "!" },
	{ "text behind the quotes", "b", "--b\r\n" PART("a", "; filename=\"a\"b", "x") "\r\n--b--",
	  "!" },
	{ "quote not closed", "b",
	  "--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--", "!" },
	{ "bare line feed in header", "b", "--b\r\nA: b\nC: d\r\n\r\nx\r\n--b--", "!" },
	{ "space in header name", "b", "--b\r\nA b: c\r\n\r\nx\r\n--b--", "!" },
	{ "header without end", "b", "--b\r\nA: " A100 A100 "\r\n\r\nx\r\n--b--", "!" },
};

static void append(char *out, size_t size, const char *bytes, size_t length)
{
	size_t at = strlen(out);

	assert_true(at + length < size);
	memcpy(out + at, bytes, length);
	out[at + length] = '\0';
}

static void append_part(char *out, size_t size, const struct multipart_part *part, const char *base)
{
	char text[128];

	multipart_text(span_slice(part->name, base), false, text, sizeof text);
	append(out, size, text, strlen(text));
	append(out, size, "|", 1);
	if (part->has_file_name)
		multipart_text(span_slice(part->file_name, base), part->is_file_name_extended, text,
		               sizeof text);
	else
		strcpy(text, "-");
	append(out, size, text, strlen(text));
	append(out, size, "|", 1);
	append(out, size, base + part->type.at, part->type.length);
	append(out, size, "|", 1);
	append(out, size, base + part->body.at, part->body.length);
	append(out, size, ";", 1);
}

/* Parses in turns that end at the cuts, which ascend; the last cut is the end. */
static void run(const struct document *d, const size_t *cuts, unsigned cut_count, char *out,
                size_t size)
{
	struct multipart m;
	struct multipart_part part;
	enum multipart_result result = MULTIPART_MORE;
	size_t length = cuts[cut_count - 1];
	char *copy = malloc(length ? length : 1);
	const struct slice body = { copy, length };

	out[0] = '\0';
	assert_non_null(copy);
	memcpy(copy, d->bytes, length);
	multipart_init(&m, d->boundary, strlen(d->boundary), HEADER_MAX);
	for (unsigned i = 0; i < cut_count && result == MULTIPART_MORE; i++)
		while ((result = multipart_next(&m, body, cuts[i], &part)) == MULTIPART_PART)
			append_part(out, size, &part, copy);
	assert_int_not_equal(result, MULTIPART_MORE);
	if (result == MULTIPART_BAD) {
		assert_non_null(m.error);
		append(out, size, "!", 1);
		assert_int_equal(multipart_next(&m, body, length, &part), MULTIPART_BAD);
	}
	free(copy);
}

static void the_parts_do_not_depend_on_the_cuts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(documents); i++) {
		const struct document *d = &documents[i];
		size_t length = strlen(d->bytes);
		char out[1024];

		run(d, &length, 1, out, sizeof out);
		if (strcmp(out, d->expected) != 0)
			fail_msg("%s: '%s' instead of '%s'", d->what, out, d->expected);
		for (size_t a = 0; a <= length; a++) {
			for (size_t b = a; b <= length; b++) {
				size_t cuts[] = { a, b, length };

				run(d, cuts, 3, out, sizeof out);
				if (strcmp(out, d->expected) != 0)
					fail_msg("%s cut at %zu and %zu: '%s'", d->what, a, b, out);
			}
		}
	}
}

/* The parser checks some bytes behind a CR one by one; the delimiter may begin at any of them. */
static void a_delimiter_is_found_behind_other_line_ends(void **state)
{
	(void)state;
	for (int n = 0; n < 30; n++) {
		for (int i = 0; i <= n; i++) {
			char filling[32], bytes[256], expected[64], out[1024];
			const struct document d = { "line ends", "b", bytes, expected };

			memset(filling, 'x', sizeof filling);
			memset(filling, '\r', (size_t)i);
			snprintf(bytes, sizeof bytes,
			         "--b\r\n" PART("a", "", "%.*s") "\r\n--b--\r%.*s", n, filling,
			         30 - n, filling);
			snprintf(expected, sizeof expected, "a|-||%.*s;", n, filling);
			const size_t length = strlen(bytes);

			run(&d, &length, 1, out, sizeof out);
			assert_string_equal(out, expected);
		}
	}
}

static void a_form_is_parsed_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(documents); i++) {
		size_t length = strlen(documents[i].bytes);
		size_t *cuts = calloc(length + 1, sizeof *cuts);
		char out[1024];

		assert_non_null(cuts);
		for (size_t n = 0; n <= length; n++)
			cuts[n] = n;
		run(&documents[i], cuts, (unsigned)length + 1, out, sizeof out);
		assert_string_equal(out, documents[i].expected);
		free(cuts);
	}
}

/* Replaces every single byte of a valid form; no access may be outside it. */
static void a_mutated_form_ends_or_is_malformed(void **state)
{
	static const char replacements[] = { '\0', '\r', '\n', '-', '"', ';', ':', '\\', 'b', ' ' };
	static const char form[] = "--b\r\n" PART(
		"a", "; filename=\"x\\\"\"\r\nContent-Type: image/jpeg", "\r\n--x") "\r\n--b--\r\n";

	(void)state;
	for (size_t at = 0; at < sizeof form - 1; at++) {
		for (size_t r = 0; r < COUNT_OF(replacements); r++) {
			char *copy = malloc(sizeof form - 1);
			struct multipart m;
			struct multipart_part part;
			enum multipart_result result;
			unsigned parts = 0;

			assert_non_null(copy);
			memcpy(copy, form, sizeof form - 1);
			copy[at] = replacements[r];
			multipart_init(&m, "b", 1, HEADER_MAX);
			while ((result = multipart_next(&m, (struct slice){ copy, sizeof form - 1 },
			                                sizeof form - 1, &part)) ==
			       MULTIPART_PART) {
				parts++;
				assert_true(part.body.at + part.body.length <= sizeof form - 1);
			}
			assert_true(parts <= 1);
			assert_true(result == MULTIPART_END || result == MULTIPART_BAD);
			free(copy);
		}
	}
}

static void a_mixed_part_has_files_without_names(void **state)
{
	static const char bytes[] =
		"--b\r\nContent-Disposition: attachment; filename=\"f\"\r\n\r\nx\r\n"
		"--b\r\nContent-Disposition: file; filename=g\r\nContent-Type: image/jpeg\r\n\r\ny"
		"\r\n--b\r\n\r\nz\r\n--b\r\nContent-Disposition: inline\r\n\r\n\r\n--b--";
	struct multipart m;
	struct multipart_part part;
	char out[128] = "";
	enum multipart_result result;

	(void)state;
	multipart_init_mixed(&m, "b", 1, HEADER_MAX, 0);
	while ((result = multipart_next(&m, (struct slice){ bytes, sizeof bytes - 1 },
	                                sizeof bytes - 1, &part)) == MULTIPART_PART)
		append_part(out, sizeof out, &part, bytes);
	assert_int_equal(result, MULTIPART_BAD);
	assert_string_equal(out, "|f||x;|g|image/jpeg|y;|-||z;");
}

static void check_text(const char *raw, bool is_extended, size_t size, const char *expected)
{
	char out[64];
	size_t length = multipart_text((struct slice){ raw, strlen(raw) }, is_extended, out, size);

	assert_string_equal(out, expected);
	assert_int_equal(length, strlen(expected));
}

static void names_are_decoded_and_cut_to_whole_characters(void **state)
{
	(void)state;
	check_text("plain", false, 64, "plain");
	check_text("C:\\x\\y.jpg", false, 64, "C:\\x\\y.jpg");
	check_text("%22%0D%0a%41%", false, 64, "\"\r\n%41%");
	check_text("UTF-8'en'%41%zz%4", true, 64, "A%zz%4");
	check_text("no quotes%41", true, 64, "no quotesA");
	check_text("UTF-8''%00", true, 64, "?");
	check_text("abcdef", false, 4, "abc");
	check_text("ab\xe2\x82\xac", false, 5, "ab");
	check_text("ab\xe2\x82\xac", false, 6, "ab\xe2\x82\xac");
	check_text("\x80\x80\x80", false, 3, "\x80\x80");
	check_text("x", false, 1, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_do_not_depend_on_the_cuts),
		cmocka_unit_test(a_delimiter_is_found_behind_other_line_ends),
		cmocka_unit_test(a_form_is_parsed_byte_by_byte),
		cmocka_unit_test(a_mutated_form_ends_or_is_malformed),
		cmocka_unit_test(a_mixed_part_has_files_without_names),
		cmocka_unit_test(names_are_decoded_and_cut_to_whole_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

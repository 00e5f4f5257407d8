/*
 * test_tokens.c - the file of tokens: accepted and refused lines, messages, and what a failed
 * reload leaves.
 */
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

#include "access/tokens.h"
#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"
#include "support/fake_clock.h"
#include "support/file_fixture.h"

/* The hashes of "abc" (example of FIPS 180-4) and of the empty message. */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

#define FILE_LENGTH_MAX (TOKENS_MAX * 240)

static char path[] = "/tmp/darkroom-test-tokens-XXXXXX";
static struct text errors;

static int set_up_all(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	return file_make(path);
}

static int tear_down_all(void **state)
{
	(void)state;
	return unlink(path);
}

static int set_up(void **state)
{
	(void)state;
	text_init_growable(&errors, 1 << 16);
	return chmod(path, 0600);
}

static int tear_down(void **state)
{
	(void)state;
	text_fini(&errors);
	return 0;
}

static void put(const char *content, size_t length)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(content, 1, length, f), length);
	assert_int_equal(fclose(f), 0);
}

static void hashes_are_sha256(void **state)
{
	uint8_t hash[TOKEN_HASH_SIZE];
	char hex[2 * TOKEN_HASH_SIZE + 1];

	(void)state;
	token_hash("abc", 3, hash);
	for (size_t i = 0; i < sizeof hash; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	assert_string_equal(hex, ABC);
}

static void a_line_has_a_name_a_hash_and_scopes(void **state)
{
	static const char content[] =
		"# comment\n\n  first\t" ABC "  delete upload\r\n\tsecond " EMPTY " delete";
	struct tokens t;

	(void)state;
	put(content, sizeof content - 1);
	assert_int_equal(tokens_open(&t, path), 0);
	assert_true(tokens_are_needed(&t));
	assert_int_equal(t.count, 2);
	assert_string_equal(t.token[0].name, "first");
	struct token token;

	assert_true(tokens_find(&t, "abc", 3, &token));
	assert_string_equal(token.name, "first");
	assert_int_equal(token.scopes, TOKEN_DELETE | TOKEN_UPLOAD);
	assert_true(tokens_find(&t, "", 0, &token));
	assert_string_equal(token.name, "second");
	assert_int_equal(token.scopes, TOKEN_DELETE);
	assert_false(tokens_find(&t, "abcd", 4, &token));
	assert_string_equal(token.name, "");
	assert_false(tokens_find(&t, ABC, strlen(ABC), &token)); /* the hash is not a token */
	tokens_close(&t);
}

static void refuse(const char *content, size_t length, const char *line, const char *expected)
{
	char message[256];

	put(content, length);
	text_fini(&errors);
	text_init_growable(&errors, 1 << 16);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
	snprintf(message, sizeof message, "%s:%s: %s", path, line, expected);
	assert_non_null(strstr(errors.data, message));
}

#define REFUSE(content, line, expected) refuse(content, sizeof(content) - 1, line, expected)

static void messages_name_the_line_without_its_words(void **state)
{
	char secret[] = "first darkroom_thisIsTheTokenItself0123456789012345678901\n",
	     long_name[160];

	(void)state;
	REFUSE("first\n", "1", "expected a SHA-256 hash");
	REFUSE("first " ABC "0\n", "1", "expected a SHA-256 hash");
	REFUSE("#\nfirst ba7816bf\n", "2", "expected a SHA-256 hash");
	REFUSE("first ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n", "1",
	       "expected a SHA-256 hash");
	REFUSE("first " ABC " all\n", "1", "expected upload, delete, list, own, original or sign");
	REFUSE("first " ABC " images=\n", "1",
	       "expected upload, delete, list, own, original or sign");
	REFUSE("first " ABC " images=0\n", "1",
	       "expected upload, delete, list, own, original or sign");
	/* It would be written with more digits than are read. */
	REFUSE("first " ABC " bytes=9789999T\n", "1",
	       "expected upload, delete, list, own, original or sign");
	REFUSE("first " ABC " bytes=1X\n", "1",
	       "expected upload, delete, list, own, original or sign");
	REFUSE("first " ABC " bytes=999999999999999T\n", "1",
	       "expected upload, delete, list, own, original or sign");
	REFUSE("first " ABC "\0 upload\n", "1", "expected a SHA-256 hash");
	REFUSE("fi/rst " ABC "\n", "1",
	       "expected NAME HASH [upload] [delete] [list] [own] [original] [sign] [QUOTA=N]");
	REFUSE("first\0 " ABC "\n", "1", "expected NAME");
	REFUSE("first " ABC "\nfirst " EMPTY "\n", "2",
	       "expected a name and a hash that no earlier line has");
	REFUSE("first " ABC "\nsecond " ABC "\n", "2",
	       "expected a name and a hash that no earlier line has");
	snprintf(long_name, sizeof long_name, "%064d " ABC, 0);
	refuse(long_name, strlen(long_name), "1", "expected NAME");
	REFUSE("first\nsecond\n", "2", "expected a SHA-256 hash"); /* every line */
	assert_non_null(strstr(errors.data, ":1: "));
	refuse(secret, strlen(secret), "1", "expected a SHA-256 hash");
	assert_null(strstr(errors.data, "thisIs"));
}

static void only_a_trusted_regular_file_is_read(void **state)
{
	struct tokens t;

	(void)state;
	put("first " ABC "\n", strlen("first " ABC "\n"));
	assert_return_code(chmod(path, 0602), 0);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
	assert_non_null(strstr(errors.data, "expected a file that neither its group nor other "
	                                    "users can write to"));
	assert_return_code(chmod(path, 0620), 0);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
	assert_int_equal(tokens_check_file("/tmp", &errors), -EINVAL);
	assert_non_null(strstr(errors.data, "expected a regular file"));
	assert_int_equal(tokens_check_file("/nowhere/at/all", &errors), -ENOENT);
	assert_int_equal(tokens_check_file("", &errors), 0); /* tokens are off */
	assert_int_equal(tokens_open(&t, ""), 0);
	assert_false(tokens_are_needed(&t));
	tokens_close(&t);
}

static int check_in(const char *directory, mode_t mode)
{
	char file[64];

	assert_return_code(chmod(directory, mode), 0);
	snprintf(file, sizeof file, "%s/tokens", directory);
	return tokens_check_file(file, &errors);
}

/* Another user could replace the file, but not in a directory with the sticky bit, such as /tmp. */
static void a_file_that_others_can_replace_is_refused(void **state)
{
	char directory[] = "/tmp/darkroom-test-tokens-XXXXXX", file[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(file, sizeof file, "%s/tokens", directory);
	put("first " ABC "\n", strlen("first " ABC "\n"));
	assert_return_code(rename(path, file), 0);
	assert_int_equal(check_in(directory, 0755), 0);
	assert_int_equal(check_in(directory, 01777), 0);
	assert_int_equal(errors.length, 0);
	assert_int_equal(check_in(directory, 0775), -EINVAL);
	assert_int_equal(check_in(directory, 0707), -EINVAL);
	assert_non_null(strstr(errors.data, "expected a directory that neither its group nor other "
	                                    "users can write to"));
	assert_return_code(rename(file, path), 0);
	assert_return_code(rmdir(directory), 0);
}

static void more_than_4096_tokens_are_refused(void **state)
{
	FILE *f = fopen(path, "w");

	(void)state;
	for (unsigned i = 0; i <= TOKENS_MAX; i++)
		fprintf(f, "t%u %064x\n", i, i);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
	assert_non_null(strstr(errors.data, ":4097: expected at most 4096 tokens"));
	assert_return_code(truncate(path, 10 << 20), 0);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
	assert_non_null(strstr(errors.data, "the file is too long"));
	assert_return_code(truncate(path, 0), 0);
	f = fopen(path, "w");
	for (unsigned i = 0; i < FILE_LENGTH_MAX; i++)
		fputc(i % 80 == 79 ? '\n' : '#', f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(tokens_check_file(path, &errors), 0);
	assert_return_code(truncate(path, FILE_LENGTH_MAX + 1), 0);
	assert_int_equal(tokens_check_file(path, &errors), -EINVAL);
}

static bool add(const char *word, unsigned *scopes, struct token_quota *quota)
{
	return token_add_right(word, strlen(word), scopes, quota);
}

static void rights_are_written_as_they_were_read(void **state)
{
	unsigned scopes = 0;
	struct token_quota quota = { 0 };
	char data[128];
	struct text t;

	(void)state;
	text_init(&t, data, sizeof data);
	token_print_rights(scopes, &quota, &t);
	assert_int_equal(t.length, 0);
	assert_true(add("delete", &scopes, &quota));
	assert_true(add("images=3", &scopes, &quota));
	assert_true(add("bytes=2K", &scopes, &quota));
	assert_true(add("uploads=5", &scopes, &quota));
	assert_false(add("others=7", &scopes, &quota));
	assert_false(add("images=", &scopes, &quota));
	token_print_rights(scopes, &quota, &t);
	assert_string_equal(data, " delete images=3 bytes=2048 uploads=5");
}

static void count_token(const char *name, const struct token_quota *quota, void *arg)
{
	unsigned *count = arg;

	(void)name;
	(void)quota;
	++*count;
}

/* A function that leaves the lock taken, or releases it twice, stops the next reload. */
static void each_reader_leaves_the_lock_free(void **state)
{
	struct token token;
	struct tokens t;
	unsigned count = 0;

	(void)state;
	put("first " ABC " sign\n", strlen("first " ABC " sign\n"));
	assert_int_equal(tokens_open(&t, path), 0);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0)
			assert_true(tokens_find(&t, "abc", 3, &token));
		else if (i == 1)
			assert_true(tokens_find_signer(&t, "first", &token));
		else
			tokens_each(&t, count_token, &count);
		assert_int_equal(pthread_rwlock_trywrlock(&t.lock), 0);
		assert_int_equal(pthread_rwlock_unlock(&t.lock), 0);
	}
	assert_string_equal(token.name, "first");
	assert_int_equal(count, 1);
	tokens_close(&t);
}

static void a_wrong_file_leaves_the_tokens_unchanged(void **state)
{
	struct token token;
	struct tokens t;

	(void)state;
	put("first " ABC "\n", strlen("first " ABC "\n"));
	assert_int_equal(tokens_open(&t, path), 0);
	put("first " ABC "\nx\n", strlen("first " ABC "\nx\n"));
	assert_int_equal(tokens_reload(&t, &errors), -EINVAL);
	assert_true(tokens_find(&t, "abc", 3, &token));
	put("#\n", 2);
	assert_int_equal(tokens_reload(&t, &errors), 0);
	assert_false(tokens_find(&t, "abc", 3, &token)); /* an empty file is valid */
	tokens_close(&t);
}

static bool finds(struct tokens *t, const char *token)
{
	struct token found;

	return tokens_find(t, token, strlen(token), &found);
}

/* A second later. */
static void look(struct tokens *t)
{
	fake_clock_advance(NS_PER_S);
	assert_int_equal(tokens_tick(t), 1000);
}

static void a_changed_file_is_read_when_nobody_writes_it_any_more(void **state)
{
	struct tokens t;

	(void)state;
	put("first " ABC "\n", strlen("first " ABC "\n"));
	assert_int_equal(tokens_open(&t, path), 0);
	fake_clock_stop();
	look(&t);
	put("", 0); /* as a shell begins */
	look(&t);
	put("second " EMPTY "\n", strlen("second " EMPTY "\n"));
	look(&t);
	assert_true(finds(&t, "abc"));
	assert_int_equal(tokens_tick(&t), 1001); /* it is not due */
	assert_true(finds(&t, "abc"));
	look(&t);
	assert_false(finds(&t, "abc"));
	assert_true(finds(&t, ""));
	fake_clock_run();
	tokens_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_sha256),
		cmocka_unit_test_setup_teardown(a_line_has_a_name_a_hash_and_scopes, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(messages_name_the_line_without_its_words, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(only_a_trusted_regular_file_is_read, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_others_can_replace_is_refused, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(more_than_4096_tokens_are_refused, set_up,
		                                tear_down),
		cmocka_unit_test(rights_are_written_as_they_were_read),
		cmocka_unit_test_setup_teardown(each_reader_leaves_the_lock_free, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_wrong_file_leaves_the_tokens_unchanged, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			a_changed_file_is_read_when_nobody_writes_it_any_more, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}

/*
 * token_command.c - makes a token of 32 random bytes. Main thread.
 */
#include "token_command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/base16.h>
#include <nettle/base64.h>

#include "base/text.h"
#include "options.h"
#include "token_line.h"
#include "tokens.h"

#define RANDOM_SIZE 32
#define PREFIX "darkroom_" /* lets programs find leaked secrets, for example in repositories */

/* Writes "darkroom_" and 43 characters of A-Z, a-z, 0-9, - and _. False: there are no random
 * numbers, which is reported. */
static bool make_token(char *token, size_t size)
{
	uint8_t bytes[RANDOM_SIZE];
	char text[BASE64_ENCODE_LENGTH(RANDOM_SIZE) + BASE64_ENCODE_FINAL_LENGTH + 1];
	struct base64_encode_ctx context;
	ssize_t n;

	do
		n = getrandom(bytes, sizeof bytes, 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof bytes) {
		perror("darkroomd token: getrandom");
		return false;
	}
	base64url_encode_init(&context);
	size_t length = base64_encode_update(&context, text, sizeof bytes, bytes);

	length += base64_encode_final(&context, text + length);
	text[length] = '\0';
	text[strcspn(text, "=")] = '\0';
	snprintf(token, size, PREFIX "%s", text);
	return true;
}

static int usage(const char *what)
{
	fprintf(stderr, "darkroomd token: %s\nTry 'darkroomd --help'.\n", what);
	return OPTIONS_EXIT_USAGE;
}

int token_command(char *const *words, size_t count)
{
	char token[128], hex[BASE16_ENCODE_LENGTH(TOKEN_HASH_SIZE) + 1] = "", rights_data[160];
	uint8_t hash[TOKEN_HASH_SIZE];
	struct token_quota quota = { 0 };
	struct text rights;
	unsigned set = 0;

	if (count == 0 || !token_name_is_valid(words[0], strlen(words[0])))
		return usage(
			"expected a name of at most 63 of a-z, A-Z, 0-9, '.', '_', '@' and '-'");
	for (size_t i = 1; i < count; i++) {
		unsigned scope = token_scope_of(words[i], strlen(words[i]));

		if (!scope && !token_quota_parse(words[i], &quota))
			return usage(
				"expected upload, delete, list or original, or images=, bytes= or "
				"uploads= with a number above 0, after the name");
		set |= scope;
	}
	text_init(&rights, rights_data, sizeof rights_data);
	token_print_scopes(set, &rights);
	token_print_quota(&quota, &rights);
	if (!make_token(token, sizeof token))
		return EXIT_FAILURE;
	token_hash(token, strlen(token), hash);
	base16_encode_update(hex, sizeof hash, hash);
	fputs("The token, which is not kept anywhere, and its line for access.tokens_file:\n",
	      stderr);
	printf("%s\n%s %s%s\n", token, words[0], hex, rights_data);
	return options_finish_output();
}

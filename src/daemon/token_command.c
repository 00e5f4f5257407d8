/*
 * token_command.c - makes a token of 32 random bytes, and signs permissions. Main thread.
 */
#include "verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <nettle/base16.h>
#include <nettle/base64.h>

#include "access/tokens.h"
#include "base/text.h"
#include "options.h"

#define TOKEN_MAX 256 /* bytes of a line with a token */
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

static int sign_usage(const char *what)
{
	fprintf(stderr,
	        "darkroomd token sign: %s; expected NAME SECONDS IMAGES BYTES, and the token on "
	        "standard input\n",
	        what);
	return OPTIONS_EXIT_USAGE;
}

/* token sign: reads the token from standard input, and prints the path with the permission. */
static int sign_command(char *const *words, size_t count)
{
	char token[TOKEN_MAX], hex[BASE16_ENCODE_LENGTH(PERMISSION_SIGNATURE_SIZE) + 1] = "";
	uint8_t hash[TOKEN_HASH_SIZE], signature[PERMISSION_SIGNATURE_SIZE];
	struct permission p = { .images = 0 };

	if (count != 4 || !token_name_is_valid(words[0], strlen(words[0])))
		return sign_usage(count ? words[0] : "no name");
	uint64_t seconds = token_number(words[1], strlen(words[1]));

	p.images = token_number(words[2], strlen(words[2]));
	p.bytes = token_number(words[3], strlen(words[3]));
	if (!seconds || seconds > PERMISSION_SECONDS_MAX || !p.images || !p.bytes)
		return sign_usage("a number is 0, no number, or more than a day");
	if (!fgets(token, sizeof token, stdin) || token[strcspn(token, "\r\n")] == '\0')
		return sign_usage("no line with a token");
	token[strcspn(token, "\r\n")] = '\0';
	memcpy(p.name, words[0], strlen(words[0]));
	p.expires = (uint64_t)time(NULL) + seconds;
	token_hash(token, strlen(token), hash);
	permission_sign(&p, hash, signature);
	base16_encode_update(hex, sizeof signature, signature);
	printf("/images?token=%s&expires=%" PRIu64 "&images=%" PRIu64 "&bytes=%" PRIu64
	       "&signature=%s\n",
	       p.name, p.expires, p.images, p.bytes, hex);
	return options_finish_output();
}

int verb_token(char *const *words, size_t count)
{
	char token[128], hex[BASE16_ENCODE_LENGTH(TOKEN_HASH_SIZE) + 1] = "";
	uint8_t hash[TOKEN_HASH_SIZE];
	struct token_quota quota = { 0 };
	struct text rights = TEXT_LOCAL(160);
	unsigned set = 0;

	if (count > 0 && strcmp(words[0], "sign") == 0)
		return sign_command(words + 1, count - 1);
	if (count == 0 || !token_name_is_valid(words[0], strlen(words[0])))
		return usage(
			"expected a name of at most 63 of a-z, A-Z, 0-9, '.', '_', '@' and '-'");
	for (size_t i = 1; i < count; i++)
		if (!token_add_right(words[i], strlen(words[i]), &set, &quota))
			return usage("expected " TOKEN_RIGHTS_FORM ", after the name");
	set = set ? set : TOKEN_SCOPES_UNSAID | TOKEN_OWN;
	token_print_rights(set, &quota, &rights);
	if (!make_token(token, sizeof token))
		return EXIT_FAILURE;
	token_hash(token, strlen(token), hash);
	base16_encode_update(hex, sizeof hash, hash);
	fputs("The token, which is not kept anywhere, and its line for access.tokens_file:\n",
	      stderr);
	printf("%s\n%s %s%s\n", token, words[0], hex, rights.data);
	return options_finish_output();
}

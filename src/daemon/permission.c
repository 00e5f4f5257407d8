/* permission.c - signs a permission, and prints one. */
#include "permission.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nettle/base16.h>
#include <nettle/hmac.h>

#include "base/text.h"
#include "options.h"
#include "token_line.h"

#define TOKEN_MAX 256

void permission_sign(const struct permission *p, const uint8_t hash[TOKEN_HASH_SIZE],
                     uint8_t signature[PERMISSION_SIGNATURE_SIZE])
{
	char data[TOKEN_NAME_MAX + 128];
	struct hmac_sha256_ctx context;
	struct text t;

	text_init(&t, data, sizeof data);
	text_printf(&t, "POST\n/images\n%s\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n", p->name,
	            p->expires, p->images, p->bytes);
	hmac_sha256_set_key(&context, TOKEN_HASH_SIZE, hash);
	hmac_sha256_update(&context, t.length, (const uint8_t *)t.data);
	hmac_sha256_digest(&context, PERMISSION_SIGNATURE_SIZE, signature);
}

static int usage(const char *what)
{
	fprintf(stderr,
	        "darkroomd token sign: %s; expected NAME SECONDS IMAGES BYTES, and the token on "
	        "standard input\n",
	        what);
	return OPTIONS_EXIT_USAGE;
}

int permission_command(char *const *words, size_t count)
{
	char token[TOKEN_MAX], hex[BASE16_ENCODE_LENGTH(PERMISSION_SIGNATURE_SIZE) + 1] = "";
	uint8_t hash[TOKEN_HASH_SIZE], signature[PERMISSION_SIGNATURE_SIZE];
	struct permission p = { .images = 0 };

	if (count != 4 || !token_name_is_valid(words[0], strlen(words[0])))
		return usage(count ? words[0] : "no name");
	uint64_t seconds = token_number(words[1], strlen(words[1]));

	p.images = token_number(words[2], strlen(words[2]));
	p.bytes = token_number(words[3], strlen(words[3]));
	if (!seconds || seconds > PERMISSION_SECONDS_MAX || !p.images || !p.bytes)
		return usage("a number is 0, no number, or more than a day");
	if (!fgets(token, sizeof token, stdin) || token[strcspn(token, "\r\n")] == '\0')
		return usage("no line with a token");
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
